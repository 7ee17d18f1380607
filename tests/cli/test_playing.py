"""A run is played in one piece: what `parley run` prints was read when the run ended."""

import json
from pathlib import Path

import pytest

from parley.store import find_run, read_run
from parley.store.sqlite import folder, run_writer
from tests.cli.test_cli import EXAMPLE, parley

HUNT = str(Path(EXAMPLE).with_name("stag_hunt.py"))
BOTS = ("-m", "bot/free-rider", "-m", "bot/altruist")


@pytest.fixture
def opened(monkeypatch):
    """How a run's file was opened."""
    found = []
    for module, name in ((folder, "SqliteReader"), (run_writer, "SqliteWriter")):
        kind = getattr(module, name)
        init = kind.__init__

        def count(self, *given, init=init, name=name):
            found.append(name)
            init(self, *given)

        monkeypatch.setattr(kind, "__init__", count)
    return found


@pytest.mark.parametrize("more", [(), ("--json",), ("--repeats", 3, "--format", "csv")])
def test_a_runs_file_is_opened_once_for_writing_and_once_for_reading(opened, more, tmp_path):
    parley("run", "public_goods", *BOTS, *more, cwd=tmp_path)
    assert opened == ["SqliteWriter", "SqliteReader"]


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_task_with_parts_of_its_own_is_read_once_too(opened, more, tmp_path):
    bots = ("-m", "bot/trusting", "-m", "bot/careful")
    printed = parley("run", HUNT, *bots, *more, cwd=tmp_path)
    assert opened == ["SqliteWriter", "SqliteReader"]
    if more:
        shown = parley("show", "last", "--task", HUNT, *more, cwd=tmp_path)
        assert json.loads(printed.out) == json.loads(shown.out)
        assert json.loads(printed.out)["parts"]["stag_hunt.trust"]


def test_run_and_show_print_the_same(tmp_path):
    printed = parley("run", EXAMPLE, "-m", "x=bot/tit-for-tat", "-m", "z=bot/random", cwd=tmp_path)
    shown = parley("show", "last", "--task", EXAMPLE, cwd=tmp_path)
    assert printed.out == shown.out
    printed = parley("run", "public_goods", *BOTS, "--json", cwd=tmp_path)
    shown = parley("show", "last", "--json", cwd=tmp_path)
    assert json.loads(printed.out) == json.loads(shown.out)
    stopped = parley("run", "public_goods", *BOTS, "--max-calls", 7, "--json", cwd=tmp_path, code=4)
    shown = parley("show", "last", "--json", cwd=tmp_path)
    assert json.loads(stopped.out) == json.loads(shown.out)


def test_run_and_show_print_the_same_of_a_run_in_a_database(postgres_url, tmp_path):
    place = ("--store", postgres_url)
    printed = parley("run", "public_goods", *BOTS, *place, cwd=tmp_path)
    assert printed.out == parley("show", "last", *place, cwd=tmp_path).out
    with read_run(find_run("last", postgres_url)) as reader:
        assert f"digest {reader.info.digest};" in printed.err


def test_the_files_of_a_run_are_one_when_it_has_ended(tmp_path):
    parley("run", "public_goods", *BOTS, cwd=tmp_path)
    (only,) = (tmp_path / "runs").iterdir()
    assert only.suffix == ".parley"
