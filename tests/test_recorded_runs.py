"""Runs that are on record: what the commands say of each of them, and how a stopped one goes on.

`tests/data/runs/make.py` recorded them, in every state that a run can end in.
"""

import importlib.util
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from parley.cli import command
from parley.store.sqlite import run_writer

FOLDER = Path(__file__).parent / "data" / "runs"
SPEC = importlib.util.spec_from_file_location("recorded_runs", FOLDER / "make.py")
make = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make)
NAMES = sorted(path.stem for path in FOLDER.glob("*.parley"))
STOPPED = ("budget", "killed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of all runs, and of what they were played with."""
    place = tmp_path_factory.mktemp("runs")
    for path in FOLDER.iterdir():
        if path.is_file() and path.suffix != ".json":
            shutil.copy(path, place)
    return place


def ask(*words, cwd):
    """A command in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        done = CliRunner().invoke(command, list(words))
    return SimpleNamespace(returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr)


def test_every_run_of_the_script_is_on_record():
    runs = {line.partition(":")[0] for line in make.RUNS.splitlines() if line[:1].strip()}
    assert set(NAMES) == {*runs, "kieval_screening"}
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_commands_say_what_they_said(name, folder):
    said = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert make.what_is_said(name, folder, ask) == said


@pytest.mark.parametrize("name", NAMES)
def test_no_record_has_a_breach(name):
    said = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    (audit,) = (found for words, found in said.items() if words.startswith("audit"))
    assert audit["code"] == 0
    assert audit["said"]["breaches"] == []


@pytest.mark.parametrize("name", STOPPED)
def test_a_stopped_run_ends_as_if_it_had_never_stopped(name, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(run_writer, "STALE", 0.1)  # seconds to wait for a process elsewhere
    shutil.copy(folder / f"{name}.parley", tmp_path)
    resumed = json.loads(
        ask("resume", f"{name}.parley", "--max-calls", "1000", "--json", cwd=tmp_path).stdout
    )
    (words,) = (
        line.partition(": ")[2].split()
        for line in make.RUNS.replace("\n    ", " ").splitlines()
        if line.startswith(f"{name}:")
    )
    played = ask(*words, "--max-calls", "1000", "--store", "whole", "--json", cwd=tmp_path)
    whole = json.loads(played.stdout)
    assert resumed["run"]["state"] == "done"
    for part in ("results", "pairs", "ranks", "violations"):
        assert resumed[part] == whole[part], part


@pytest.mark.parametrize(
    "name", ["evolve", "kieval", "os_tasks", "race", "rejudged", "until_stable"]
)
def test_a_run_that_is_done_is_not_played_again(name, folder, tmp_path):
    path = Path(shutil.copy(folder / f"{name}.parley", tmp_path))
    before = path.read_bytes()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(command, ["resume", str(path)])
    assert done.exit_code == 0, done.output
    assert path.read_bytes() == before
