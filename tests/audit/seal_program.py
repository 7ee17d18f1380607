"""Plays a run, or resumes one, and is killed with SIGKILL when a model is called for the Nth time:

python seal_program.py STORE N [RUN]
"""

import os
import signal
import sys
from itertools import count

import parley

calls = count(1)
last = 0


def pay(view):
    """Pay five coins, until the process is killed."""
    if next(calls) == last:
        os.kill(os.getpid(), signal.SIGKILL)
    return '{"reason": "why not", "coins": 5}'


def refuse(view):
    """A reply that breaks the form: it leaves failed attempts and violations."""
    return "no"


MODELS = {"anna": "bot/altruist", "bert": pay, "carl": refuse}
FUNCTIONS = {"bert": pay, "carl": refuse}
GIVEN = {"repeats": 3, "rounds": 2, "concurrency": 1}

if __name__ == "__main__":
    store, number, *run = sys.argv[1:]
    last = int(number)
    if run:
        parley.resume(run[0], functions=FUNCTIONS, max_calls=1000)
    else:
        parley.run("public_goods", MODELS, store=store, **GIVEN)
