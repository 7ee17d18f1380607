"""KIEval screens its questions in a run of its own, prepared together with the interviews."""

from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

import parley
from parley import UsageError
from parley.cli import command
from parley.config import experiment, prepare, selection
from parley.rules.task import Task
from parley.store.sqlite.run_file import SqliteReader

FLAGS = [
    "-m", "a=bot/candidate", "--role", "interactor=i=bot/interactor",
    "--role", "evaluator=e=bot/evaluator", "--items", "2", "--set", "rounds=1",
]  # fmt: skip
FILE = """\
kind: experiment
task: kieval
items: 2
set: {rounds: 1}
models: {a: {model: bot/candidate}, i: {model: bot/interactor}, e: {model: bot/evaluator}}
instruments: {interactor: i, evaluator: e}
"""


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """How often datasets were read, tasks configured and runs prepared."""
    monkeypatch.chdir(tmp_path)
    for name in ("PARLEY_STORE", "PARLEY_MODELS"):
        monkeypatch.delenv(name, raising=False)
    counts = Counter()
    read, configured, new = selection.load_items, Task.from_params.__func__, prepare.prepare_new

    def counting(name, function):
        def called(*arguments, **options):
            counts[name(*arguments)] += 1
            return function(*arguments, **options)

        return called

    monkeypatch.setattr(selection, "load_items", counting(lambda *_: "read", read))
    monkeypatch.setattr(
        Task, "from_params", classmethod(counting(lambda task, *_: task.name, configured))
    )
    once = counting(lambda config, *_: f"prepared {config.task}", new)
    for module in (experiment, prepare):
        monkeypatch.setattr(module, "prepare_new", once)
    return counts


ONCE = {"read": 1, "kieval": 1, "qa": 1, "prepared kieval": 1, "prepared qa": 1}


def played(*arguments):
    done = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if done.exception:
        raise done.exception
    return done


def test_a_run_is_prepared_once_with_its_screening(counted):
    assert played("run", "kieval", *FLAGS).return_value == 0
    assert dict(counted) == ONCE
    found = [SqliteReader(path) for path in sorted(Path("runs").glob("*.parley"))]
    kinds = Counter()
    for reader in found:
        with reader:
            kinds[reader.info.config.task, bool(reader.info.config.screening_run)] += 1
    assert kinds == {("kieval", True): 1, ("qa", False): 1}


def test_a_screening_that_was_done_before_is_found_and_the_run_is_still_prepared_once(counted):
    played("run", "kieval", *FLAGS)
    counted.clear()
    played("run", "kieval", *FLAGS, "--seed", "0", "--name", "again")
    assert dict(counted) == ONCE
    assert len(list(Path("runs").glob("*.parley"))) == 3


def screenings():
    """How many screenings the store has."""
    found = Counter()
    for path in Path("runs").glob("*.parley"):
        with SqliteReader(path) as reader:
            found[reader.info.config.task] += 1
    return found["qa"]


def test_a_screening_in_which_nothing_was_right_is_asked_again(counted, tmp_path):
    """The same endpoint, with another key, say, answers the next time."""
    hard = tmp_path / "hard.csv"
    hard.write_text("question,answer\nWhat is it?,something else\n")
    silent = [*FLAGS[:2], "--role", "interactor=i=scripted/no.txt", "--role"]
    words = [*silent, "evaluator=e=scripted/no.txt", "--items", "1", "--dataset", str(hard)]
    Path("no.txt").write_text("I do not know.\n")
    for count in (1, 2):
        with pytest.raises(UsageError, match="answered none of the 1 screened questions correctly"):
            played("run", "kieval", *words)
        assert screenings() == count


def test_a_screening_is_repeated_where_that_is_asked_for(counted):
    played("run", "kieval", *FLAGS)
    played("run", "kieval", *FLAGS, "--name", "again")
    assert screenings() == 1
    played("run", "kieval", *FLAGS, "--name", "anew", "--fresh")
    assert screenings() == 2
    with pytest.raises(UsageError, match="remove --fresh"):
        played("run", "kieval", *FLAGS, "--set", "verify=no", "--fresh")


def test_a_forecast_prepares_once(counted):
    assert "calls" in played("run", "kieval", *FLAGS, "--dry-run", "--json").output
    assert dict(counted) == ONCE


def test_a_file_and_python_prepare_once(counted):
    Path("e.yaml").write_text(FILE, encoding="utf-8")
    played("run", "e.yaml")
    assert dict(counted) == ONCE
    counted.clear()
    roles = {"interactor": {"i": "bot/interactor"}, "evaluator": {"e": "bot/evaluator"}}
    parley.run("kieval", {"a": "bot/candidate"}, roles=roles, items=2, rounds=1)
    assert dict(counted) == ONCE


def test_the_question_before_spending_prepares_nothing_again(counted, monkeypatch):
    """Where the user is asked, a forecast has been made of the very run that is then played."""
    from parley.cli import run as cli_run

    monkeypatch.setattr(cli_run, "is_billed", lambda *_: True)
    monkeypatch.setattr(cli_run, "ASK_FROM", -1.0)
    monkeypatch.setattr(cli_run.sys, "stdin", Terminal())
    monkeypatch.setattr(cli_run.sys, "stderr", Terminal())
    asked = []
    monkeypatch.setattr(cli_run.click, "confirm", lambda *_, **__: asked.append(1) or True)
    code = cli_run.command.main(["kieval", *FLAGS], standalone_mode=False)
    assert (code, asked, dict(counted)) == (0, [1], ONCE)


class Terminal:
    def isatty(self):
        return True

    def write(self, text):
        return len(text)

    def flush(self):
        pass
