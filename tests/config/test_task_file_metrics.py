"""Functions of one's own that measure texts of a task file: where they are found, what is wrong
with them, what a run keeps."""

import sys

import pytest

from parley import TaskError, UsageError, resume, run
from parley.config.task_catalogue import task_class
from parley.errors import ReplayError
from parley.testing.by_hand import play
from tests.cli.test_cli import parley as command
from tests.config import test_task_file as test_definitions
from tests.config.test_task_file import CHRF, CRITIC, EXAMPLES, FIELDS, ITEMS, POET, TEXT, said

file = test_definitions.file
OWN = ITEMS + "metric: own_measures:short\n"
SHORT = "def short(text, item):\n    return 1 if len(text) <= len(item.subject) else 0\n"
BOTS = ["bot/random", "bot/null"]


@pytest.fixture
def measures(tmp_path, monkeypatch):
    """Write functions beside the task file; what is imported is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))

    def written(text, name="own_measures.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    return written


def test_it_is_found_beside_the_file_first(file, measures, tmp_path, monkeypatch):
    measures("def short(text, item):\n    return 0.25\n", "elsewhere/own_measures.py")
    monkeypatch.chdir(tmp_path / "elsewhere")
    path = file(TEXT + OWN)
    assert task_class(path).measure.of("x", None) == 0.25  # from the current folder
    measures("from own_sibling import VALUE\n\n\ndef short(text, item):\n    return VALUE\n")
    measures("VALUE = 0.5\n", "own_sibling.py")
    assert task_class(path).measure.of("x", None) == 0.5
    measures("def long(text, item):\n    return 0.75\n", "own_package/own_long.py")
    assert (
        task_class(file(TEXT + ITEMS + "metric: own_package.own_long:long\n")).measure.of("x", None)
        == 0.75
    )


def test_two_folders_may_have_files_of_one_name(measures, tmp_path):
    for number, folder in enumerate(("a", "b")):
        measures(f"def short(text, item):\n    return {number}\n", f"{folder}/own_measures.py")
        (tmp_path / folder / "verse.yaml").write_text(TEXT + OWN)
    assert [
        task_class(str(tmp_path / each / "verse.yaml")).measure.of("", None) for each in "ab"
    ] == [0, 1]


def test_another_function_is_refused_by_name_and_seen_in_the_signature(
    file, measures, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    measures(SHORT)
    path = file(TEXT + OWN)
    first = run(path, BOTS, store=tmp_path / "runs")
    measures('"""Measures."""\n\n' + SHORT.replace("return", "# by length\n    return"))
    assert resume(first.path).state == "done"
    measures(SHORT.replace("<=", "<"))
    with pytest.raises(
        ReplayError, match=r"metric \(own_measures\.short@\w+, now own_measures\.short@\w+\)"
    ):
        resume(first.path, task=task_class(path)())
    with pytest.raises(UsageError, match="has changed since this run started"):
        resume(first.path)
    second = run(path, BOTS, store=tmp_path / "runs")
    signatures = {each.data["results"][0]["signature"] for each in (first, second)}
    assert len(signatures) == 2
    assert all("|metric:own_measures.short@" in signature for signature in signatures)


def test_a_function_without_a_source_is_named_and_told(file, measures, tmp_path):
    measures("from operator import eq as same\n")
    kind = task_class(file(TEXT + ITEMS + "metric: own_measures:same\n"))
    assert kind().score_basis() == {"metric": "own_measures.same@no-source"}
    (told,) = kind().cautions({})
    assert "own_measures:same" in told
    assert "no Python source" in told


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def short(text):\n    return 1\n", "function with the arguments text and item"),
        (
            "def short(text, item, limit):\n    return 1\n",
            "function with the arguments text and item",
        ),
        ("async def short(text, item):\n    return 1\n", "must not be async"),
        ("def short(text, item):\n    return 1 / len(text)\n", "item 'rain'.*ZeroDivisionError"),
        (
            "def short(text, item):\n    return item.subjekt\n",
            "item 'rain'.*AttributeError.*subjekt",
        ),
        ("def short(text, item):\n    raise SystemExit\n", "item 'rain'.*SystemExit"),
        (
            "def short(text, item):\n    return 'good'\n",
            "returned 'good' for item 'rain': expected a number from 0 to 1",
        ),
        ("def short(text, item):\n    return float('nan')\n", "returned nan for item 'rain'"),
        ("def short(text, item):\n    return 7\n", "returned 7 for item 'rain'"),
        ("def short(text, item):\n    return -0.1\n", "returned -0.1 for item 'rain'"),
        ("short = 3\n", "must be a function, not int"),
        ("class short:\n    def __init__(self, text, item): ...\n", "is a class"),
        ("1 / 0\n", "cannot be loaded: ZeroDivisionError"),
        ("def shrt(text, item):\n    return 1\n", "short"),
    ],
)
def test_a_faulty_function_is_told_before_anybody_is_asked(file, measures, source, words):
    measures(source)
    with pytest.raises(UsageError, match=rf"verse\.yaml, line 14: metric: .*own_measures.*{words}"):
        task_class(file(TEXT + OWN))


def test_it_is_tried_on_every_item_of_a_dataset(file, measures, tmp_path):
    measures("def short(text, item):\n    return float(item.reference)\n")
    (tmp_path / "own.jsonl").write_text(
        '{"subject": "fog", "reference": "0.5"}\n{"subject": "ice", "reference": "much"}\n'
    )
    path = file(TEXT + FIELDS + "metric: own_measures:short\n")
    task_class(path)  # without an item there is nothing to try
    with pytest.raises(
        UsageError, match=r"line 12: metric: own_measures:short failed for item '2'.*much"
    ):
        run(
            path,
            {"a": lambda view: pytest.fail("asked"), "b": "bot/null"},
            dataset=tmp_path / "own.jsonl",
            store=tmp_path / "r",
        )


def test_without_items_it_is_given_none(file, measures):
    measures("def short(text, item):\n    return item is None\n")
    text = TEXT.replace("{subject}", "rain")
    kind = task_class(file(text + "metric: own_measures:short\n"))
    assert play(kind(), said(["wet"], ["x"])).scores[POET]["short"] == 1
    measures(SHORT)
    with pytest.raises(UsageError, match=r"failed without an item.*AttributeError"):
        task_class(file(text + "metric: own_measures:short\n"))


def test_what_has_no_value_is_missing_and_not_zero(file, measures):
    measures("def short(text, item):\n    return None if text == 'wet' else 0.5\n")
    kind = task_class(file(TEXT + OWN))
    found = play(kind(rounds=2), said(["dry", "wet"], ["x"]), item=kind.items.bundled[0]).scores
    assert (found[POET]["short"], found[CRITIC]["short"], found[CRITIC]["improvement"]) == (
        None,
        None,
        None,
    )
    assert (
        play(kind(), said(["dry"], ["x"]), item=kind.items.bundled[0]).scores[CRITIC]["improvement"]
        == 0
    )


@pytest.mark.parametrize("fault", ["1 / 0", "2", "float('inf')", "'x'"])
def test_a_function_that_fails_later_names_itself_and_the_item(file, measures, fault):
    measures(f"def short(text, item):\n    return {fault} if text else 0\n")
    kind = task_class(file(TEXT + OWN))
    with pytest.raises(
        TaskError, match=r"verse\.yaml, line 14: metric: own_measures:short .*item 'rain'"
    ):
        play(kind(), said(["wet"], ["x"]), item=kind.items.bundled[0])


def test_counts_are_kept_for_the_whole_corpus(file, tmp_path):
    result = command(
        "run",
        EXAMPLES / "summary.yaml",
        "-m",
        "a=bot/writer",
        "-m",
        "b=bot/writer",
        "--json",
        cwd=tmp_path,
    ).json
    found = command("show", result["run"]["id"], "--part", "corpus", cwd=tmp_path).out
    assert "chrf" in found
    assert "writer" in found
    kind = task_class(file(TEXT + ITEMS + CHRF))
    notes = play(
        kind(rounds=2), said(["Rain.", "The rain."], ["Longer."]), item=kind.items.bundled[0]
    ).notes
    (counted,) = [note.facts["overlap"] for note in notes if "overlap" in note.facts]
    assert counted["poet"] == counted["critic"]  # comments are worth what the writer makes of them
    kind = task_class(file(TEXT + ITEMS + CHRF + "answers: text\n"))
    notes = play(kind(), said(["Rain."], ["The rain."]), item=kind.items.bundled[0]).notes
    (counted,) = [note.facts["overlap"] for note in notes if "overlap" in note.facts]
    assert counted["poet"] != counted["critic"]
    assert kind().score_basis().keys() == {"bleu", "chrf"}  # no count without a signature
