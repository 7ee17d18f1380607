"""Records the runs of this folder, and what the commands say of them:

    python make.py              plays every run anew, and writes NAME.parley and NAME.json
    python make.py NAME …       only these

Until the first release, whoever changes the format of a run's file records all runs anew, in a
commit of its own. Its diff of the JSON files shows what became different: nothing but what was
meant to. What differs from one recording to the next (ids, times, digests) is left out of them.

It needs the sandbox. The name of the machine is not in the files.
"""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2]))
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
os_tasks: run os_tasks -m good=bot/solver -m weak=bot/solver -m bot/idler -M good.strength=0.9 -M
    weak.strength=0.3 --items 4 --seed 20
evolve: run qa -m bot/copier -m bot/student --dataset samples --items 8 --set shots=0 --plan evolve
    --evolve retriever=bm25 --evolve k=2 --seed 21
critic: run qa -m bot/student --role critic=bot/critic -M critic.false_yes=0.3 --dataset samples
    --items 4 --set shots=0 --plan evolve --evolve feedback=critic --evolve retriever=bm25 --seed 22
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
RECORDING = """
import sys
from parley.cli import main
from parley.testing import fix_quotation_secret
sys.argv[0] = "parley"
with fix_quotation_secret():
    main()
"""
KILLED = """
import os, signal
from parley.participants.bot import Bot
said, reply = [], Bot.reply
async def counted(self, *given):
    said.append(given)
    if len(said) > 30:
        os.kill(os.getpid(), signal.SIGKILL)
    return await reply(self, *given)
Bot.reply = counted
"""
# Further words of a command, by run. A file that a record names is never loaded by itself.
AUDITED = {
    "prisoners_dilemma": ["--task", "prisoners_dilemma.py"],
    "poem": ["--task", "poem.yaml"],
}
SCORED = {"kieval": ["--scores", "scores.csv"], "qa": ["--scores", "scores.csv"]}
DIGEST = re.compile(r"\b[0-9a-f]{64}\b")  # over times, too
# What is another time, or another machine's, whenever a run is recorded.
PASSING = {
    "at", "began", "created", "ended", "folder", "latency", "parley", "path", "python", "seconds",
    "uid",
}  # fmt: skip


def run_command(*words, cwd, code=None):
    """Run a command in a process of its own."""
    from tests.endpoint import endpoint

    program = ["-c", code] if code else ["-m", "parley"]
    with endpoint(0) as server:
        environment = {**os.environ, "OPENAI_COMPATIBLE_BASE_URL": f"{server.url}/v1"}
        return subprocess.run(
            [sys.executable, *program, *words],
            capture_output=True, text=True, env=environment, cwd=cwd,
        )  # fmt: skip


def record(name, words):
    """Play a run, and keep its file under this name, and that of its screening beside it."""
    store = Path("made")
    code = KILLED + RECORDING if name == "killed" else RECORDING
    done = run_command(*words, "--store", str(store), "--name", name, cwd=HERE, code=code)
    assert done.returncode == {"killed": -signal.SIGKILL, "budget": 4}.get(name, 0), done.stderr
    for path in store.glob("*.parley"):
        with closing(sqlite3.connect(path)) as connection:
            (config,) = connection.execute("SELECT config FROM runs").fetchone()
            # its process is on another machine, and has given no sign of life for long
            dead = "owner = 'elsewhere:1:1:0', heartbeat = 0"
            connection.execute(f"UPDATE runs SET {dead} WHERE owner IS NOT NULL")
            connection.commit()
            connection.execute("PRAGMA journal_mode = DELETE")  # so that reading writes no file
            connection.execute("PRAGMA secure_delete = 1")
            connection.execute("VACUUM")
        screening = "_screening" if json.loads(config)["screening"] else ""
        shutil.move(path, f"{name}{screening}.parley")
    shutil.rmtree(store)


def commands(name, matches):
    """What is asked of each run."""
    file = f"{name}.parley"
    yield "show", file, "--json"
    if name in SCORED:
        yield "show", file, "--json", *SCORED[name]
        yield "show", file, "--json", "--interval", "bootstrap"
    for match in sorted({1, matches}):
        yield "show", file, str(match), "--json"
    yield "audit", file, "--json", *AUDITED.get(name, [])


def what_is_said(name, cwd, ask=run_command):
    """What the commands say of a run; times are left out, and ids are names."""
    with closing(sqlite3.connect(f"file:{cwd / name}.parley?mode=ro", uri=True)) as connection:
        (matches,) = connection.execute("SELECT MAX(number) FROM matches").fetchone()
    found = {}
    for words in commands(name, matches):
        done = ask(*words, cwd=cwd)
        said = json.loads(done.stdout) if done.stdout else done.stderr
        found[" ".join(words)] = {"code": done.returncode, "said": said}
    return without_passing(found, ids(cwd))


def ids(folder):
    """The ids of all runs of this folder, with their names."""
    found = {}
    for path in folder.glob("*.parley"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            found[connection.execute("SELECT id FROM runs").fetchone()[0]] = path.stem
    return found


def without_passing(value, names, key=""):
    """A document without what is different in every recording."""
    if isinstance(value, dict):
        return {each: without_passing(found, names, each) for each, found in value.items()}
    if key in PASSING and value is not None:
        return "…"
    if isinstance(value, list):
        return [without_passing(each, names, key) for each in value]
    if isinstance(value, str):
        for id, name in names.items():
            value = value.replace(id, name)
        value = DIGEST.sub("DIGEST", value)
    return round(value, 9) if isinstance(value, float) else value


def lay_out(value, before=""):
    """JSON in lines of up to 240 characters where its lists and objects allow it."""
    text = json.dumps(value, ensure_ascii=False)
    if len(before) + len(text) <= 240 or not isinstance(value, dict | list) or not value:
        return text
    more = before + " "
    if isinstance(value, list):
        return "[\n" + ",\n".join(more + lay_out(each, more) for each in value) + f"\n{before}]"
    pairs = (f"{more}{json.dumps(key)}: {lay_out(each, more)}" for key, each in value.items())
    return "{\n" + ",\n".join(pairs) + f"\n{before}}}"


if __name__ == "__main__":
    os.chdir(HERE)
    runs = RUNS.strip().replace("\n    ", " ").splitlines()
    words = {name: each.split() for name, _, each in (line.partition(": ") for line in runs)}
    for name in sys.argv[1:] or words:
        record(name, words[name])
    for path in sorted(HERE.glob("*.parley")):
        text = lay_out(what_is_said(path.stem, HERE))
        path.with_suffix(".json").write_text(f"{text}\n", encoding="utf-8")
