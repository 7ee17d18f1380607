"""Made by the code before its modules were moved; not to be made anew.

The run files beside this script, and what the commands said of them, are what later versions have
to read. A file that later code makes again would only say that this code agrees with itself. The
script is kept to tell how they were made:

    python make.py            writes NAME.parley for every run that is not there yet
    python make.py expected   writes NAME.json for every run that has none

The name of the machine was taken out of the files; else they are as the runs left them.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))
STORE = Path("made")
RUNS = """
public_goods: run public_goods -m bot/free-rider -m bot/altruist -m bot/reciprocator --repeats 3
    --seed 1 --set feedback=investments
violations: run public_goods -m odd=scripted/nonsense.txt -m bot/null -m bot/altruist --repeats 2
    --set rounds=4 --seed 2
standardised: run public_goods -m odd=scripted/nonsense.txt -m bot/gradual --standardise always
    --repeats 2 --set rounds=2 --seed 3
idiom_solitaire: run idiom_solitaire -m bot/speaker -m bot/dead-end -M speaker.strength=1 -M
    dead-end.strength=1 --repeats 3 --set dictionary=idioms.txt --set traditional=false --set
    common=0 --seed 4
code_review: run code_review -m good=bot/coder -m weak=bot/coder -M good.strength=0.9 -M
    weak.strength=0.2 -M good.review=0.9 --set rounds=2 --role judge=bot/judge --dataset samples
    --items 2 --seed 5
unsafe: run code_review -m good=bot/coder -m weak=bot/coder -M good.strength=0.9 -M
    weak.strength=0.2 -M good.review=0.9 --set rounds=2 --dataset samples --items 1 --seed 6
    --unsafe-run-code-without-isolation
translation: run translation -m good=bot/translator -m weak=bot/translator -M good.strength=0.9 -M
    weak.strength=0.2 --role judge=first=bot/judge --role judge=second=bot/random --dataset
    samples --items 3 --seed 7 --set rounds=2
kieval: run kieval -m good=bot/candidate -m fair=bot/candidate -m weak=bot/imitator -M
    good.knowledge=0.9 -M fair.memorised=0.5 --role interactor=bot/interactor --role
    evaluator=bot/evaluator --set rounds=2 --dataset samples --items 3 --seed 8
kieval_plain: run kieval -m good=bot/candidate -m weak=bot/candidate -M good.knowledge=0.9 -M
    weak.knowledge=0.1 --set verify=no --role evaluator=more=bot/evaluator --role
    interactor=bot/interactor --role evaluator=bot/evaluator --set rounds=2 --dataset samples
    --items 3 --seed 8 --exclude weak
word_guessing: run word_guessing -m bot/guesser -m bot/injector -m bot/random -m
    second=bot/guesser --set open_guesses=true --set rounds=2 --set topics=food,science --dataset
    samples --items 4 --seed 9
qa: run qa -m good=bot/student -m fair=bot/student -m weak=bot/random -M good.knowledge=0.9 -M
    good.memorised=0.2 --dataset samples --items 12 --set shots=2 --seed 10
prisoners_dilemma: run prisoners_dilemma.py -m bot/tit-for-tat -m bot/defector -m bot/random
    --repeats 2 --set rounds=3 --seed 11
poem: run poem.yaml -m bot/writer -m bot/null -m bot/forger --role judge=bot/judge --seed 12
race: run public_goods -m bot/free-rider -m bot/altruist -m bot/gradual --plan race --seats 2
    --top 1 --half-width 8 --max-blocks 40 --set rounds=1 --seed 13
until_stable: run qa -m good=bot/student -m weak=bot/student -M good.knowledge=0.9 -M
    weak.knowledge=0.1 --dataset samples --until-stable --half-width 0.45 --target new_items --set
    shots=0 --seed 14
versus: run translation -m good=bot/translator -m weak=bot/translator -M good.strength=0.9 -M
    weak.strength=0.2 --plan versus --adversary other=bot/forger --dataset samples --items 2
    --repeats 1 --seed 15
excluded: run public_goods -m bot/altruist -m bot/gradual -m out=bot/free-rider --exclude out
    --repeats 2 --set rounds=2 --seed 16
budget: run public_goods -m bot/gradual -m bot/random --repeats 6 --set rounds=3 --seed 17
    --max-calls 20 --concurrency 2
killed: run public_goods -m bot/gradual -m bot/random --repeats 8 --set rounds=3 --seed 18
    --concurrency 2
priced: run public_goods -m dear=openai-compatible/mock -m cheap=openai-compatible/mock --repeats
    2 --set rounds=3 --seed 19 --yes
rejudged: rejudge translation.parley --role judge=first=bot/judge --role judge=third=bot/injector
    --seed 3
"""
KILLED = """
import os, signal, sys
from parley.cli import main
from parley.participants.bot import Bot
said, reply = [], Bot.reply
async def counted(self, view):
    said.append(view)
    if len(said) > 30:
        os.kill(os.getpid(), signal.SIGKILL)
    return await reply(self, view)
Bot.reply = counted
sys.argv[0] = "parley"
main()
"""


def made(name: str, words: str) -> None:
    """Play a run and keep its file under a name of its own, with its screening's beside it."""
    from tests.endpoint import endpoint

    shutil.rmtree(STORE, ignore_errors=True)
    command = ["-c", KILLED] if name == "killed" else ["-m", "parley"]
    command = [sys.executable, *command, *words.split(), "--store", str(STORE), "--name", name]
    with endpoint(0) as server:
        environment = {**os.environ, "OPENAI_COMPATIBLE_BASE_URL": f"{server.url}/v1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == {"killed": -signal.SIGKILL, "budget": 4}.get(name, 0), done.stderr
    for path in STORE.glob("*.parley"):
        with sqlite3.connect(path) as connection:
            (config,) = connection.execute("SELECT config FROM runs").fetchone()
            connection.execute("UPDATE runs SET owner = 'elsewhere:1:1' WHERE owner IS NOT NULL")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA secure_delete = 1")
        connection.execute("VACUUM")
        connection.close()
        screening = "_screening" if json.loads(config)["verify"] else ""
        shutil.move(path, f"{name}{screening}.parley")
    shutil.rmtree(STORE)


if __name__ == "__main__":
    os.chdir(HERE)
    if sys.argv[1:] == ["expected"]:
        from tests.test_nets import names, said_of, said_of_all

        for name in (*names(), "store"):
            if not (file := Path(f"{name}.json")).exists():
                found = said_of_all(HERE) if name == "store" else said_of(name, HERE)
                texts = {key: json.dumps(value, ensure_ascii=False) for key, value in found.items()}
                lines = (f'"{key}": {text}' for key, text in texts.items())
                file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    else:
        for line in RUNS.strip().replace("\n    ", " ").splitlines():
            name, _, words = line.partition(": ")
            if not Path(f"{name}.parley").exists():
                made(name, words)
