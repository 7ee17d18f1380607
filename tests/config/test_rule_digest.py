"""What identifies a rule: the task's file, what it inherits, and the rules that it shares with
others."""

import re
from pathlib import Path
from typing import Generic, TypeVar

import pytest

import parley
from parley import resume, run
from parley.config import rule_digest as rule
from parley.config.rule_digest import rule_digest
from parley.config.task_catalogue import task_class
from parley.errors import ReplayError
from tests import games

WRITING = [
    f"parley.tasks._common.{name}" for name in ("writer_editor", "overlap", "judge_votes")
] + ["parley.rules.languages"]
POEM = str(Path(__file__).parents[2] / "examples" / "poem.yaml")


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from parley.tasks._common.writer_editor import ask_judges", WRITING),
        ("from parley import Task, ask_judges", WRITING),
        ("import parley\n\nparley.ask_judges()", WRITING),
        ("from parley.tasks._common import writer_editor", WRITING),
        (
            "def f():\n    import parley.tasks._common.plurals as p",
            ["parley.tasks._common.plurals"],
        ),
        ("from parley import Task\nimport re", []),
        ("from parley.tasks import _common\nfrom parley.tasks.nowhere import nothing", []),
        ("from parley.statistics import intervals", []),
    ],
)
def test_shared_rules_are_found_through_what_is_imported(source, names):
    sources = (source, *map(rule.module_source, names))
    wanted = {rule.without_error_texts(rule.without_imports(each)) for each in sources}
    assert rule.with_shared([source]) == wanted
    assert all(wanted - {""})
    assert all(rule.module_source(name) for name in names)


def test_rules_that_import_each_other_are_found_once(monkeypatch):
    shared = {
        "parley.rules.a": "import parley.rules.b\na = 1",
        "parley.rules.b": "from parley.rules import a\nb = 1",
    }
    monkeypatch.setattr(rule, "module_source", lambda name: shared.get(name, ""))
    assert rule.with_shared(["import parley.rules.a"]) == {"", "a = 1", "b = 1"}


def test_moving_a_module_changes_no_digest(monkeypatch):
    """The same sources under other names: import lines are no part of a rule."""
    before = rule.with_shared(["from parley.tasks._common.plurals import singulars\nx = 1"])
    monkeypatch.setattr(
        rule, "module_source", lambda name: text if name == "parley.rules.plurals" else ""
    )
    text = rule.without_comments(
        (Path(parley.__file__).parent / "tasks/_common/plurals.py").read_bytes()
    )
    assert rule.with_shared(["from parley.rules import plurals\nx = 1"]) == before


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ('raise UsageError("a")', 'raise UsageError(f"b {name}") from None', False),
        ('raise UsageError("a") from None', 'raise UsageError(f"b {name}") from None', True),
        ('raise TaskError("a")', 'raise TaskError("b", "c")', True),
        ('raise TaskError("a")', 'raise UsageError("a")', False),
        ('raise Unreadable("a")', 'raise Unreadable("b")', False),  # models read it
        ('raise ValueError("a")', 'raise ValueError("b")', False),  # a rule may catch it
        ('x = "a"', 'x = "b"', False),
    ],
)
def test_rewording_an_error_that_no_model_sees_changes_no_digest(before, after, same):
    assert (rule.with_shared([before]) == rule.with_shared([after])) is same


OWN_PARTS = """
from parley import Task
LIMIT = 3
def title(): return "a caption"
def shared(): return LIMIT
def count(run): return title(), shared()
class Game(Task):
    parts = (count,)
    def play(self): return shared()
"""


def test_what_only_the_parts_of_a_task_need_is_no_rule():
    """A corrected caption must not make a run impossible to resume; what the rule uses too still
    counts."""
    kept = rule.without_parts(OWN_PARTS, "Game")
    assert "caption" not in kept
    assert "def count" not in kept
    assert "parts" not in kept
    assert "def shared" in kept
    assert "LIMIT = 3" in kept
    other = OWN_PARTS.replace("a caption", "another")
    assert rule.without_parts(other, "Game") == kept
    assert rule.without_parts(OWN_PARTS.replace("LIMIT = 3", "LIMIT = 4"), "Game") != kept


OWN_BOTS = """
from parley import Task
LIMIT = 3
def shared(): return LIMIT
def own(): return "helper"
def firm(bot: Game): return own(), shared()
class Game(Task):
    def play(self): return shared()
Game.bots = {"firm": firm}
"""


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("helper", "another", True),
        ('"firm": firm', '"soft": firm', True),
        ("return LIMIT", "return LIMIT + 1", False),  # the rule uses it too
        ("LIMIT = 3", "LIMIT = 4", False),
        ("def play(self): return", "def play(self): yield", False),
    ],
)
def test_bots_are_no_part_of_the_rule_and_nothing_else_is_left_out(old, new, same):
    assert old in OWN_BOTS
    found = rule.without_bots(OWN_BOTS.replace(old, new), "Game")
    assert (found == rule.without_bots(OWN_BOTS, "Game")) == same


@pytest.fixture
def changed(monkeypatch):
    """Change a shared module, or only what is said about it."""

    def change(module, old, new):
        path = Path(parley.__file__).parent.joinpath(*module.split(".")[1:]).with_suffix(".py")
        text = path.read_text()
        assert old in text
        found = rule.without_comments(text.replace(old, new).encode())
        known = rule.module_source
        monkeypatch.setattr(
            rule, "module_source", lambda name: found if name == module else known(name)
        )
        if module == "parley.tasks._common.defined":
            of_class = rule.source_of
            monkeypatch.setattr(
                rule,
                "source_of",
                lambda kind: found if kind.__module__ == module else of_class(kind),
            )

    return change


@pytest.mark.parametrize("task", ["translation", "code_review", POEM])
def test_another_way_of_writing_together_is_another_rule(changed, task):
    kind = task_class(task)
    before = rule_digest(kind)
    changed(
        "parley.tasks._common.writer_editor",
        '"""The writer-editor paradigm',
        '# a comment\n"""Another docstring',
    )
    assert rule_digest(kind) == before
    changed("parley.tasks._common.writer_editor", "if not first and is_ending", "if is_ending")
    assert rule_digest(kind) != before


def test_another_rule_of_all_task_files_is_another_rule(changed):
    kind, other = task_class(POEM), rule_digest(task_class("translation"))
    before = rule_digest(kind)
    changed("parley.tasks._common.defined", "versions[0].text, last", "last, last")
    assert rule_digest(kind) != before
    assert rule_digest(task_class("translation")) == other


def test_a_task_that_shares_nothing_stands_for_itself(changed):
    before = rule_digest(games.Echo)
    changed("parley.tasks._common.writer_editor", "if not first and is_ending", "if is_ending")
    assert rule_digest(games.Echo) == before


def test_what_a_task_inherits_is_its_rule_too(tmp_path, monkeypatch):
    (tmp_path / "own_base.py").write_text(
        "from tests.games import Echo\n\n\nclass Base(Echo):\n    least = 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import own_base

    class Heir(own_base.Base):
        """In this file."""

    before = rule_digest(Heir)
    (tmp_path / "own_base.py").write_text(
        "from tests.games import Echo\n\n\nclass Base(Echo):\n    least = 2\n"
    )
    assert rule_digest(Heir) != before


def test_a_class_beside_the_task_is_its_rule_too_but_none_of_python(tmp_path, monkeypatch):
    (tmp_path / "own_mixin.py").write_text("class Mixin:\n    least = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    from own_mixin import Mixin

    class Mixed(games.Echo, Mixin):
        """In this file."""

    class Plain(games.Echo, Generic[TypeVar("T")]):
        """In this file."""

    assert (
        rule_digest(Mixed)
        != rule_digest(Plain)
        == rule_digest(type("Echo", (games.Echo,), {"__module__": __name__}))
    )


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"# -*- coding: latin-1 -*-\nNAME = '\xe9'\n"])
def test_a_file_in_any_encoding_that_python_reads_has_a_digest(tmp_path, start):
    (tmp_path / "own.py").write_bytes(start + Path(games.__file__).read_bytes())
    assert re.fullmatch(r"[0-9a-f]{16}", rule_digest(task_class(f"{tmp_path / 'own.py'}:Echo")))


def test_a_run_is_not_continued_under_other_shared_rules(changed, tmp_path, monkeypatch):
    monkeypatch.chdir(Path(POEM).parent)
    result = run(POEM, ["bot/random", "bot/null"], roles={"judge": "bot/random"}, store=tmp_path)
    assert resume(result.path).state == "done"
    changed("parley.tasks._common.writer_editor", "if not first and is_ending", "if is_ending")
    with pytest.raises(ReplayError, match="another rule of poem"):
        resume(result.path)


def test_a_changed_task_file_is_loaded_anew(tmp_path):
    game, source = tmp_path / "own.py", Path(games.__file__).read_text()
    reference = f"{game}:Echo"
    game.write_text(source)
    first = task_class(reference)
    assert task_class(reference) is first
    game.write_text(source.replace("say something", "say anything"))
    assert task_class(reference) is not first
