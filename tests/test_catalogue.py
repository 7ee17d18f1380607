"""What identifies a rule: the task's file, what it inherits, and the rules that it shares with others."""

from pathlib import Path
from typing import Generic, TypeVar

import pytest

import parley
from parley import resume, run
from parley.config import rule_digest as catalogue
from parley.config.rule_digest import rule_digest, with_shared
from parley.config.task_catalogue import task_class
from parley.errors import ReplayError
from tests import games

OVERLAP = [f"parley.tasks._common.{name}" for name in ("overlap", "judge_votes")] + ["parley.rules.languages"]
POEM = str(Path(__file__).parents[1] / "examples" / "poem.yaml")


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from parley.tasks._common.writer_editor import rated", ["parley.tasks._common.writer_editor", *OVERLAP]),
        (
            "from parley import Text; from parley.tasks._common import writer_editor as writing",
            ["parley.tasks._common.writer_editor", *OVERLAP],
        ),
        ("def f():\n    import parley.tasks._common.plurals as p", ["parley.tasks._common.plurals"]),
        ("from parley.tasks._common import plurals", ["parley.tasks._common.plurals"]),
        ("from parley import Task\nimport re", []),
    ],
)
def test_shared_rules_are_found_through_what_is_imported(source, names):
    assert sorted(with_shared([source], catalogue.shared())) == sorted([source, *(catalogue.shared()[name] for name in names)])


def test_rules_that_import_each_other_are_found_once():
    shared = {
        "parley.writing": "import parley.scoring.a",
        "parley.scoring.a": "from parley import writing",
        "parley.scoring.b": "b",
    }
    assert sorted(with_shared(["import parley.writing"], shared)) == sorted(["import parley.writing", *list(shared.values())[:2]])


@pytest.fixture
def changed(monkeypatch):
    """Change a shared module, or only what is said about it."""

    def change(module, old, new):
        path = Path(parley.__file__).parent.joinpath(*module.split(".")[1:]).with_suffix(".py")
        text = path.read_text()
        assert old in text
        found = {**catalogue.shared(), module: catalogue.stripped(text.replace(old, new).encode())}
        monkeypatch.setattr(catalogue, "shared", lambda: found)

    return change


@pytest.mark.parametrize("task", ["translation", "code_review", POEM])
def test_another_way_of_writing_together_is_another_rule(changed, task):
    kind = task_class(task)
    before = rule_digest(kind)
    changed("parley.tasks._common.writer_editor", '"""The writer-editor paradigm', '# a comment\n"""Another docstring')
    assert rule_digest(kind) == before
    changed("parley.tasks._common.writer_editor", "if not first and ends", "if ends")
    assert rule_digest(kind) != before


def test_another_rule_of_all_task_files_is_another_rule(changed):
    kind, other = task_class(POEM), rule_digest(task_class("translation"))
    before = rule_digest(kind)
    changed("parley.tasks._common.defined", "versions[0].text, last", "last, last")
    assert rule_digest(kind) != before
    assert rule_digest(task_class("translation")) == other


def test_a_task_that_shares_nothing_stands_for_itself(changed):
    before = rule_digest(games.Echo)
    changed("parley.tasks._common.writer_editor", "if not first and ends", "if ends")
    assert rule_digest(games.Echo) == before


def test_what_a_task_inherits_is_its_rule_too(tmp_path, monkeypatch):
    (tmp_path / "own_base.py").write_text("from tests.games import Echo\n\n\nclass Base(Echo):\n    least = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    import own_base

    class Heir(own_base.Base):
        """In this file."""

    before = rule_digest(Heir)
    (tmp_path / "own_base.py").write_text("from tests.games import Echo\n\n\nclass Base(Echo):\n    least = 2\n")
    assert rule_digest(Heir) != before


def test_a_class_beside_the_task_is_its_rule_too_but_none_of_python(tmp_path, monkeypatch):
    (tmp_path / "own_mixin.py").write_text("class Mixin:\n    least = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    from own_mixin import Mixin

    class Mixed(games.Echo, Mixin):
        """In this file."""

    class Plain(games.Echo, Generic[TypeVar("T")]):
        """In this file."""

    assert rule_digest(Mixed) != rule_digest(Plain) == rule_digest(type("Echo", (games.Echo,), {"__module__": __name__}))


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"# -*- coding: latin-1 -*-\nNAME = '\xe9'\n"])
def test_a_file_in_any_encoding_that_python_reads_has_a_digest(tmp_path, start):
    (tmp_path / "own.py").write_bytes(start + Path(games.__file__).read_bytes())
    assert len(rule_digest(task_class(f"{tmp_path / 'own.py'}:Echo"))) == 16


def test_a_run_is_not_continued_under_other_shared_rules(changed, tmp_path):
    result = run(POEM, ["bot/random", "bot/null"], roles={"judge": "bot/random"}, store=tmp_path)
    assert resume(result.path).state == "done"
    changed("parley.tasks._common.writer_editor", "if not first and ends", "if ends")
    with pytest.raises(ReplayError, match="the rule of poem"):
        resume(result.path)


def test_a_changed_task_file_is_loaded_anew(tmp_path):
    game, source = tmp_path / "own.py", Path(games.__file__).read_text()
    reference = f"{game}:Echo"
    game.write_text(source)
    first = task_class(reference)
    assert task_class(reference) is first
    game.write_text(source.replace("say something", "say anything"))
    assert task_class(reference) is not first
