"""Nothing vanishes: what users, scripts and stored runs rely on may grow, and may not shrink.

tests/data/inventory.json has the sets as they were before the modules were moved: public names,
commands and their flags, key paths of JSON documents, persisted names, exit codes, groups of entry
points, and the packages that are loaded. What is taken away on purpose is taken out of that file,
in the same commit and by hand; it is not made anew.
"""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest

import parley
import parley.testing
from parley.cli import command, main
from tests.test_nets import as_before, brought_up_to_date, said, said_of_all

FILE = Path(__file__).parent / "data" / "inventory.json"
TASKS = "public_goods idiom_solitaire code_review translation kieval word_guessing qa"
DESCRIBED = [*TASKS.split(), "os_tasks"]  # there is no recorded run of os_tasks among the data
ODD = ["-m", "odd=scripted/nonsense.txt", "-m", "bot/null", "-m", "bot/random"]
PLAY = ["run", "public_goods", *ODD, "--repeats", "1", "--store", "new"]
HEAVY = {"asyncio", "sqlite3", "ssl", "email", "http", "multiprocessing", "unittest", "socket"}


def public_names():
    return {"parley": sorted(parley.__all__), "testing": sorted(parley.testing.__all__)}


def flags(found=command, name="parley"):
    """Every command with its arguments, its flags and what they may be."""
    with click.Context(found) as context:
        known = [flag for each in found.params for flag in (*each.opts, *each.secondary_opts)]
        choices = [
            f"{each.opts[0]} {choice}"
            for each in found.params
            if hasattr(each.type, "choices")
            for choice in each.type.choices
        ]
        below = {}
        if isinstance(found, click.Group):
            for inner in found.list_commands(context):
                below |= flags(found.get_command(context, inner), f"{name} {inner}")
    return {name: sorted({*known, *choices}), **below}


def paths(value, at=""):
    """The key paths of a JSON document; what stands in a list has one path."""
    if isinstance(value, dict):
        below = {f"{at}.{key}": inner for key, inner in value.items()}
        return set(below).union(*(paths(inner, path) for path, inner in below.items()))
    if isinstance(value, list):
        return set().union(*(paths(inner, f"{at}[]") for inner in value))
    return set()


def documents(folder):
    """The key paths of the documents that commands print."""
    store = ["--store", "new", "--json"]
    found = {
        "run": said(*PLAY, "--json", cwd=folder),
        "dry-run": said(*PLAY, "--dry-run", "--json", cwd=folder),
        "models": said("models", "--json", cwd=folder),
        "model": said("models", "openai/gpt-4.1", "bot/null", "--json", cwd=folder),
        "datasets": said("datasets", "--json", cwd=folder),
        "datasets check": said("datasets", "check", "samples-maths", "--json", cwd=folder),
        "doctor": said("doctor", "--no-calls", *store, cwd=folder),
        "tasks": said("tasks", "--json", cwd=folder),
        **{f"tasks {name}": said("tasks", name, "--json", cwd=folder) for name in DESCRIBED},
    }
    found |= said_of_all(folder)
    return {name: sorted(paths(as_before(each["out"]))) for name, each in found.items()}


def documents_of_runs(folder):
    """The key paths of what is shown of old runs, by task; aliases and seats are among them."""
    asked = {"show": "show {}.parley --json", "match": "show {}.parley 1 --json"}
    asked |= {"audit": "audit {}.parley --json"}
    return {
        f"{kind} {name}": sorted(
            paths(as_before(said(*words.format(name).split(), cwd=folder)["out"]))
        )
        for name in [*TASKS.split(), "rejudged", "race", "priced"]
        for kind, words in asked.items()
    }


def described(folder):
    """Metrics, prompts, parameters, roles and bots of each task."""
    found = {}
    for name in DESCRIBED:
        facts = said("tasks", name, "--json", cwd=folder)["out"]
        for kind in ("prompts", "params", "roles", "bots"):
            found[f"{name} {kind}"] = sorted(facts[kind])
        found[f"{name} metrics"] = sorted(metric["name"] for metric in facts["metrics"])
    return found


def persisted(folder):
    """Tables, views and columns of a run's file, and the names in what it holds as JSON."""
    said(*PLAY, cwd=folder)
    (path,) = (folder / "new").glob("*.parley")
    with closing(sqlite3.connect(path)) as connection:

        def all_of(query):
            return [row[0] for row in connection.execute(query)]

        tables = all_of("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        info = {table: all_of(f"SELECT name FROM pragma_table_info('{table}')") for table in tables}
        columns = [f"{table}.{column}" for table, each in info.items() for column in each]
        (config,) = all_of("SELECT config FROM runs")
        (identity,) = all_of("SELECT identity FROM runs")
        kinds = all_of("SELECT DISTINCT kind || ': ' || outcome FROM violations")
        states = all_of("SELECT state FROM runs UNION SELECT state FROM matches")
        messages = all_of("SELECT DISTINCT kind FROM messages")
        (application,) = all_of("PRAGMA application_id")
    return {
        "application": [application],
        "columns": sorted(columns),
        "config": sorted(json.loads(config)),
        "identity": sorted(paths({**json.loads(identity), "texts": {}, "prompts": {}})),
        "violations": sorted(kinds),
        "states": sorted(states),
        "messages": sorted(messages),
    }


INTERRUPTING = """
import os, signal, time
def reply(view):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.2)
    return "no"
"""


def exit_codes(folder):
    """What a script learns from how a command ends."""
    (folder / "text.parley").write_text("no run")
    shutil.copy(folder / "public_goods.parley", folder / "changed.parley")
    with closing(sqlite3.connect(folder / "changed.parley")) as connection:
        connection.execute("UPDATE scores SET value = 1 WHERE match = 1")
        connection.commit()
    race = "-m bot/altruist -m bot/gradual --plan race --seats 2 --max-blocks 10 --store new"
    found = {
        "done": PLAY,
        "a file that is no run": ["show", "text.parley"],
        "a task that is not known": ["run", "nonesuch", *ODD],
        "a flag that is not known": ["run", "--nonesuch"],
        "a run that is not there": ["show", "nonesuch.parley"],
        "stopped by a bound on blocks": ["run", "public_goods", *race.split()],
        "stopped by a bound on calls": [*PLAY, "--max-calls", "2"],
        "a breach": ["audit", "changed.parley"],
        "no breach": ["audit", "public_goods.parley"],
    }
    codes = {name: said(*words, cwd=folder)["code"] for name, words in found.items()}
    (folder / "interrupting.py").write_text(INTERRUPTING)
    words = "run public_goods -m bot/null -m python/interrupting:reply --store new --concurrency 1"
    code = [sys.executable, "-m", "parley", *words.split()]
    codes["interrupted"] = subprocess.run(code, capture_output=True, cwd=folder).returncode
    return codes


MAIN = f"{main.__module__}:main"
GROUPS = """
import importlib.metadata, json, sys
asked = set()
def entry_points(**given):
    asked.add(given.get("group"))
    return importlib.metadata.EntryPoints()  # what others have installed is nothing of ours
importlib.metadata.entry_points = entry_points
from parley.cli import command
for name in ("tasks", "datasets", "models"):
    command([name, "--json"], standalone_mode=False)
print(json.dumps(sorted(asked)), file=sys.stderr)
"""


def entry_point_groups(folder):
    """Where packages of others are looked for."""
    code = [sys.executable, "-c", GROUPS]
    done = subprocess.run(code, capture_output=True, text=True, cwd=folder, check=True)
    scripts = [each.name for each in entry_points(group="console_scripts") if each.value == MAIN]
    return {"asked": json.loads(done.stderr), "scripts": scripts}


LOADED = """
import sys
before = set(sys.modules)
{code}
loaded = sorted(set(sys.modules) - before)
print("\\n" + " ".join(loaded))
"""
COMMAND = "from parley.cli import command\ncommand({words!r}, standalone_mode=False)"
STARTS = {
    "import parley": "import parley",
    "parley --help": COMMAND.format(words=["--help"]),
    "parley show": COMMAND.format(words=["show", "public_goods.parley"]),
    "parley show --json": COMMAND.format(words=["show", "public_goods.parley", "--json"]),
    "parley ls": COMMAND.format(words=["ls", "--store", "."]),
}


def loaded(start, folder):
    """Packages of others, heavy ones of Python's own, and how many modules of Parley."""
    code = [sys.executable, "-c", LOADED.format(code=STARTS[start])]
    done = subprocess.run(code, capture_output=True, text=True, cwd=folder, check=True)
    found = done.stdout.splitlines()[-1].split()
    tops = {name.partition(".")[0] for name in found}
    foreign = tops - sys.stdlib_module_names
    others = {name for name in foreign if not name.startswith(("_", "parley"))}
    own = [name for name in found if name.partition(".")[0] == "parley"]
    return {"others": sorted(others), "heavy": sorted(tops & HEAVY), "modules": len(own)}


@pytest.fixture
def folder(tmp_path):
    """A copy of the old runs, and of what they were played with."""
    return brought_up_to_date(tmp_path)


@pytest.fixture(scope="module")
def pinned():
    return json.loads(FILE.read_text(encoding="utf-8"))


def missing(before, now):
    """What was there and is not there now."""
    gone = {name: sorted(set(each) - set(now.get(name, ()))) for name, each in before.items()}
    return {name: each for name, each in gone.items() if each}


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("public names", lambda folder: public_names()),
        ("flags", lambda folder: flags()),
        ("documents", documents),
        ("documents of runs", documents_of_runs),
        ("tasks", described),
        ("persisted", persisted),
        ("entry points", entry_point_groups),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_nothing_has_vanished(kind, found, folder, pinned):
    assert missing(pinned[kind], found(folder)) == {}


def test_exit_codes_are_what_they_were(folder, pinned):
    assert exit_codes(folder) == pinned["exit codes"]


@pytest.mark.parametrize("start", STARTS)
def test_a_start_loads_no_more_than_it_did(start, folder, pinned):
    before, now = pinned["loaded"][start], loaded(start, folder)
    assert set(now["others"]) <= set(before["others"])
    assert set(now["heavy"]) <= set(before["heavy"])
    assert now["modules"] <= before["modules"]
