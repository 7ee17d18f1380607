"""Names of runs, deleting them, and what a shell completes."""

import sqlite3
import tomllib

import click
import pytest

import parley as library
from parley import UsageError
from parley.cli import command
from parley.cli.shell_completion import complete_models, complete_runs, complete_tasks
from parley.config.extras import EXTRAS, Extra, missing_extras
from parley.store.sqlite.folder import FolderStore
from tests.cli.test_cli import HERE, PAIR, parley


def play(place, *words, code=0):
    return parley("run", "public_goods", *PAIR, "--repeats", 1, *words, cwd=place, code=code)


def test_a_run_is_deleted_once_it_is_confirmed(tmp_path):
    play(tmp_path, "--name", "first")
    done = parley("rm", "first", cwd=tmp_path, code=2)
    assert "add --yes" in done.err
    done = parley("rm", "first", "--yes", cwd=tmp_path)
    assert "public_goods, free-rider, altruist; done, 1 match played" in done.out
    assert list((tmp_path / "runs").iterdir()) == []


def test_an_unknown_run_lists_the_newest_by_name_and_id(tmp_path):
    for number in range(3):
        library.run(
            "public_goods",
            ["bot/random", "bot/null"],
            repeats=1,
            store=tmp_path,
            name=f"try{number}",
        )
    place = FolderStore(tmp_path)
    newest, *_, oldest = [run.ref.id for run in place.runs()]
    assert place.find(newest[-6:]).id == newest
    with pytest.raises(
        UsageError, match=rf"did you mean 'try1'\? the newest are: {newest} \(try2\), "
    ):
        place.find("try1x")
    for number in range(9):
        (tmp_path / f"{number}.parley").write_text("damaged")
    with pytest.raises(UsageError, match=r"; 2 more are listed by `parley ls`$") as told:
        place.find("nosuch")
    assert oldest not in str(told.value)


def test_only_runs_are_deleted_and_none_that_is_played(tmp_path):
    play(tmp_path)
    (path,) = (tmp_path / "runs").glob("*.parley")
    (tmp_path / "notes.txt").write_text("mine")
    parley("rm", "notes.txt", "--yes", cwd=tmp_path, code=1)
    assert (tmp_path / "notes.txt").exists()
    from parley.store.owner import process_id

    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET state = 'running', owner = ?", [process_id()])
    connection.close()
    assert "is still running" in parley("rm", "last", "--yes", cwd=tmp_path, code=2).err
    path.write_text("damaged")
    parley("rm", path, "--yes", cwd=tmp_path)
    assert not path.exists()


def test_a_name_stands_for_one_run(tmp_path):
    play(tmp_path, "--name", "first")
    done = play(tmp_path, "--name", "first", code=2)
    assert "a run named 'first' already exists" in done.err
    assert "another name, like first-2, or delete" in done.err
    play(tmp_path, "--name", "first-2")
    assert "first-3" in play(tmp_path, "--name", "first", code=2).err


def completed(complete, typed, **params):
    context = click.Context(command)
    context.params = params
    return [item.value for item in complete(context, click.Argument(["x"]), typed)]


def test_a_shell_completes_tasks_runs_and_models(tmp_path, monkeypatch):
    play(tmp_path, "--name", "first")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.yaml").write_text("strong: {model: openai/gpt-4.1}\n")
    (tmp_path / "kite.py").write_text("")
    assert completed(complete_tasks, "ki") == ["kieval", "kite.py"]
    assert completed(complete_runs, "fi") == ["first"]
    assert completed(complete_runs, "public")[0].startswith("public_goods-")
    assert completed(complete_runs, "", store="nowhere") == ["last"]
    assert completed(complete_models, "st", task="public_goods") == ["strong"]
    assert completed(complete_models, "a=bot/fr", task="public_goods") == ["a=bot/free-rider"]
    assert "openai/" in completed(complete_models, "open")


def test_extras_are_those_of_the_package_and_missing_ones_are_named(tmp_path, monkeypatch):
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    optional = set(project["optional-dependencies"]) - {"test", "check", "docs"}
    assert {extra.name for extra in EXTRAS} == optional
    missing = Extra("frames", "tables", ("no_such_module_anywhere",))
    web = next(extra for extra in EXTRAS if extra.name == "web")
    monkeypatch.setattr("parley.config.extras.EXTRAS", (missing, web))
    assert missing_extras() == [
        "frames: not installed (missing: no_such_module_anywhere); needed for tables; "
        "install with: pip install 'parley-eval[frames]'"
    ]
    assert "extra frames: not installed" in parley("models", cwd=tmp_path).out
    assert "extra frames: not installed" in parley("doctor", "--no-calls", cwd=tmp_path).out


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_dataset_beside_a_file_of_its_name_asks_which_is_meant(tmp_path, kind):
    if kind == "folder":
        (tmp_path / "samples").mkdir()
    else:
        (tmp_path / "samples").write_text("")
    words = ("run", "qa", "-m", "bot/null", "--items", 2)
    said = parley(*words, "--dataset", "samples", cwd=tmp_path, code=2).err
    assert (
        f"samples is both a named dataset and a {kind} in this directory: write ./samples" in said
    )
    assert "dataset:samples for the named dataset" in said
    parley(*words, "--dataset", "dataset:samples", cwd=tmp_path)
    parley("resume", "last", cwd=tmp_path)
