"""Datasets: forms that are told by their columns, names, files and folders, the bundled samples,
and what is wrong with rows."""

import asyncio
import csv
import gzip
import json
import sys
from collections import Counter
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import pytest

import parley
from parley import Problem
from parley.config.experiment import Experiment
from parley.config.experiment_file import read_experiment
from parley.config.selection import stored_items
from parley.datasets import Dataset, catalogue
from parley.datasets.catalogue import (
    datasets_named,
    default_dataset,
    item_type_of_dataset,
    load_items,
)
from parley.datasets.checks import check_reference_programs
from parley.datasets.files import read_rows
from parley.datasets.item_rows import item_from_row
from parley.datasets.reference_programs import can_fail, names_called, signature_of
from parley.errors import UsageError
from parley.sandbox.executor import Sandbox
from parley.sandbox.limits import Limits
from tests.cli.test_cli import parley as command
from tests.mutants import mutants

MBPP = {
    "text": "Add two numbers.",
    "code": "LIMIT = 3\r\ndef half(a):\r\n    return a / 2\r\ndef sum(a, b):\r\n    return a + b",
    "task_id": 7,
    "test_setup_code": "start = sum(1, 1)",
    "test_list": ["assert sum(start, 2) == 4", "assert sum(-1, 1) == 0"],
    "challenge_test_list": ["assert sum(10**9, 1) == 10**9 + 1"],
}
SANITISED = {
    "source_file": "x.ipynb",
    "task_id": 8,
    "prompt": "Take the root.",
    "code": (
        "import math\ndef root(a: float, *, sign: int = 1) -> float:\n"
        "    return sign * math.sqrt(a)"
    ),
    "test_imports": ["import math"],
    "test_list": ["assert math.isclose(root(4), 2)"],
}
HUMANEVAL = {
    "task_id": "HumanEval/3",
    "prompt": (
        "def twice(a):\n    return 2 * a\n\n\ndef halved(a: int) -> float:\n"
        '    """ The half of twice(a) """\n'
    ),
    "entry_point": "halved",
    "canonical_solution": "    return a / 2\n",
    "test": "def check(candidate):\n    assert candidate(twice(3)) == 3\n",
}
PLAIN = {
    "id": "p",
    "text": "Double it.",
    "tests": ["assert double(2) == 4"],
    "reference": "def double(a):\n    return 2 * a\n",
}
CASES = {
    "text": "Say it again.",
    "cases": [["hi\n", "hi\n"], ["", ""]],
    "reference": "import sys\nprint(sys.stdin.read())",
}


def written(path, rows):
    """A file of rows, in the form that its ending says."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".csv"):
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            table.writerows(rows)
        return str(path)
    text = (
        json.dumps(rows)
        if name.endswith(".json")
        else "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    )
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


def only(path, row):
    (found,) = load_items(written(path, [row]), Problem)
    return found


# --- forms ----------------------------------------------------------------------------------------


def test_mbpp_is_read_with_plain_ends_of_lines_and_names_that_shadow_builtins(tmp_path):
    found = only(tmp_path / "mbpp.jsonl", MBPP)
    assert found == Problem(
        id="7",
        text="Add two numbers.",
        tests=("assert sum(start, 2) == 4", "assert sum(-1, 1) == 0"),
        signature="def sum(a, b)",
        names=("sum",),
        setup="start = sum(1, 1)",
        reference="LIMIT = 3\ndef half(a):\n    return a / 2\ndef sum(a, b):\n    return a + b",
        challenge=("assert sum(10**9, 1) == 10**9 + 1",),
    )


def test_mbpp_sanitised_is_told_by_its_prompt(tmp_path):
    found = only(tmp_path / "sanitized-mbpp.json", SANITISED)
    assert (found.id, found.text, found.setup, found.names) == (
        "8",
        "Take the root.",
        "import math",
        ("root",),
    )
    assert found.signature == "def root(a: float, *, sign: int=1) -> float"


def test_humaneval_gives_its_prompt_to_the_tests(tmp_path):
    found = only(tmp_path / "HumanEval.jsonl.gz", HUMANEVAL)
    assert found.text == found.prelude == HUMANEVAL["prompt"]
    assert found.reference == HUMANEVAL["prompt"] + HUMANEVAL["canonical_solution"]
    assert found.tests == (HUMANEVAL["test"] + "\ncheck(halved)",)
    assert (found.id, found.names, found.signature) == (
        "HumanEval/3",
        ("halved",),
        "def halved(a: int) -> float",
    )


def test_rows_with_the_fields_of_a_problem(tmp_path):
    found = only(tmp_path / "own.jsonl", PLAIN | {"text": "two\u2028lines", "difficulty": 3})
    assert (found.id, found.text, found.names, found.signature) == (
        "p",
        "two\u2028lines",
        ("double",),
        "def double(a)",
    )
    told = only(
        tmp_path / "told.json",
        PLAIN | {"signature": "double(number)", "names": ["double"], "setup": None},
    )
    assert (told.signature, told.setup) == ("double(number)", "")
    row = {"text": "Add, please.", "tests": "assert f(1, 2) == 3"}
    bare = only(tmp_path / "bare.csv", row | {"signature": "def f(a, b)"})
    assert (bare.id, bare.tests, bare.names) == ("1", ("assert f(1, 2) == 3",), ())
    assert bare.program("x")["names"] == ("f",)  # as the signature says
    named = only(tmp_path / "named.jsonl", row | {"names": ["f"]})
    assert named.program("x")["names"] == ("f",)
    assert only(
        tmp_path / "lambda.json", PLAIN | {"reference": "double = lambda a: 2 * a"}
    ).names == ("double",)
    assert only(tmp_path / "cases.jsonl", CASES).cases == (("hi\n", "hi\n"), ("", ""))


def test_every_form_passes_its_own_tests(tmp_path):
    tree = (
        "class Node:\r\n    def __init__(self, left=None):\r\n        self.left = left\r\n"
        "        self.right = None\r\n"
    )
    depth = (
        "def depth(node):\r\n    return 1 + max(depth(node.left), depth(node.right)) if node else 0"
    )
    built = MBPP | {
        "task_id": 9,
        "code": tree + depth,
        "test_setup_code": "root = Node(Node())\r\nroot.right = Node(root.left)",
    }
    built |= {
        "test_list": ["assert depth(root) == 3", "assert depth(Node()) == 1"],
        "challenge_test_list": [],
    }
    rows = [MBPP, built, SANITISED, HUMANEVAL, PLAIN, CASES]
    problems = load_items(written(tmp_path / "all.jsonl", rows), Problem)
    assert asyncio.run(check_reference_programs(problems, lambda done: None)) == (6, {}, ())


@pytest.mark.parametrize(
    "row",
    [MBPP, SANITISED, HUMANEVAL, PLAIN, CASES],
    ids=["mbpp", "sanitised", "humaneval", "plain", "cases"],
)
def test_a_problem_is_kept_by_a_run_and_read_again(tmp_path, row):
    problem = only(tmp_path / "x.jsonl", row)
    ((name, text),) = stored_items([problem])
    assert name == problem.id
    assert item_from_row(json.loads(text), Problem, "row 1", 1) == problem


def test_half_a_character_is_named_with_its_row_and_field(tmp_path):
    rows = [
        {"source": text, "reference": "Eins.", "source_language": "en", "target_language": "de"}
        for text in ("One.", "\ud800x")
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(
        UsageError, match=r"row 2.*: source contains half of a Unicode surrogate pair \(.ud800\)"
    ):
        load_items(str(file), parley.Paragraph)
    with pytest.raises(
        UsageError, match=r"item 'a.udc00': id contains half of a Unicode surrogate pair"
    ):
        stored_items([parley.Paragraph("a\udc00", "One.", "Eins.", "en", "de")])
    rows[1]["source"] = "\U0001f600"  # as two halves in the file, which are one character
    file.write_text("\n".join(map(json.dumps, rows)))
    assert load_items(str(file), parley.Paragraph)[1].source == "\U0001f600"


def test_names_are_what_the_reference_defines_and_the_tests_use():
    box = (
        "class Box:\n    def __init__(self, a): ...\n    def put(self, b): ...\n"
        "    def _x(self): ...\n"
    )
    code = f"import math\n{box}def f(): ...\ndef g(): ..."
    assert names_called(code, ["box = Box(1)", "assert f() and math"]) == ("Box", "f")
    # g is the tests' own
    assert names_called(code, ["def g(): ...\nassert f(g)", "f = f()"]) == ("f",)
    assert (
        signature_of(code, ["Box"]) == "class Box:\n    def __init__(self, a)\n    def put(self, b)"
    )
    # without a word about old escapes
    assert names_called("def f(a='\\d'): ...", ["assert f('\\w')"]) == ("f",)
    assert (
        signature_of("async def f(a, /, *b, **c) -> 'int': ...", ["f"])
        == "async def f(a, /, *b, **c) -> 'int'"
    )


def test_a_list_in_a_cell_is_a_list(tmp_path):
    tests = ["assert double(2) == 4", "assert double('a') == 'aa'"]
    for text in (json.dumps(tests), f" {tests!r}\n"):
        row = PLAIN | {
            "tests": text,
            "names": "['double']",
            "challenge": json.dumps(["assert double([]) == []"]),
        }
        found = only(tmp_path / "own.csv", row)
        assert (found.tests, found.names, found.challenge) == (
            tuple(tests),
            ("double",),
            ("assert double([]) == []",),
        )
        assert only(
            tmp_path / "mbpp.csv", MBPP | {"code": PLAIN["reference"], "test_list": text}
        ).tests == tuple(tests)
    cases = only(tmp_path / "cases.csv", CASES | {"cases": json.dumps(CASES["cases"])})
    assert cases.cases == (("hi\n", "hi\n"), ("", ""))
    alone = "[check(each) for each in (1, 2)]"  # a list by its looks, and a test all the same
    setup = "def check(a):\n    assert double(a) == 2 * a"
    assert only(tmp_path / "one.csv", PLAIN | {"tests": alone, "setup": setup}).tests == (alone,)


def test_a_test_can_fail_through_what_it_uses():
    own = (
        "def close(a, b):\n    if a != b:\n        raise ValueError(a)\ndef all_close(a, b):\n"
        "    close(a, b)"
    )
    assert can_fail("all_close(f(1), 2)", [own])
    assert can_fail(f"{own}\nfor n in (1, 2):\n    list(map(close, [f(n)], [n]))")
    assert can_fail("numpy.testing.assert_allclose(f(1), 2)")
    assert can_fail(
        "import unittest\nclass Tests(unittest.TestCase):\n    def test(self): ...\nunittest.main()"
    )
    assert not can_fail("f(1) == 2", [own])
    assert not can_fail("def check():\n    assert f(1)")
    assert not can_fail("def loop():\n    loop()\nloop()")


# --- what is wrong --------------------------------------------------------------------------------

WRONG = {
    "columns": (
        {"text": "x", "solution": "y"},
        r"row 2: .*nearest.* text, (tests|cases) .*; this file has the columns text, "
        r"solution; .*--column",
    ),
    "no object": ([1], r"row 2: expected an object with .*; found a list"),
    "no tests": (
        PLAIN | {"tests": []},
        (
            r"row 2 \(problems with tests\): this problem has neither `tests` nor `cases`: "
            r"add one of them; the columns are id, text"
        ),
    ),
    "both": (PLAIN | {"cases": [["", ""]]}, "both `tests` and `cases`: remove one of them"),
    "no text": (PLAIN | {"text": 3}, "the column `text` must be text, not a number"),
    "no list": (PLAIN | {"tests": [1]}, "the column `tests` must be a list of texts"),
    "no pair": (CASES | {"cases": [["", "", ""]]}, r"row 2.cases must be a list of 2"),
    "no reference": (
        MBPP | {"code": "def f(:"},
        r"row 2 \(MBPP\): the reference is not valid Python",
    ),
    "no test": (MBPP | {"test_list": ["assert sum("]}, "a test is not valid Python"),
    "asserts nothing": (
        PLAIN | {"tests": ["assert double(2) == 4", "double(3) == 6"]},
        r"row 2 \(problems with tests\): test 2 asserts nothing, .*: 'double\(3\) == 6'",
    ),
    "asserts where nobody calls": (
        PLAIN | {"tests": ["def check(f):\n    assert f(1) == 2"]},
        "test 1 asserts nothing",
    ),
    "a list in a list": (
        MBPP | {"test_list": ["['assert sum(1, 1) == 2']"]},
        "test 1 asserts nothing",
    ),
    "a name that nothing defines": (
        {"text": "x", "names": ["f"], "tests": ["assertEqual(f(1), 8)"]},
        "row 2: the tests use 'assertEqual', but nothing defines this name",
    ),
    "no entry point": (
        {"text": "x", "tests": ["assert f(1) == 8"]},
        "row 2: the tests use 'f', but nothing defines this name: define it in `setup` or "
        "`prelude`, or list it in `names` if the program must define it",
    ),
    "an empty test": (PLAIN | {"tests": ["assert double(2) == 4", " "]}, "test 2 is empty"),
    "no name": (PLAIN | {"names": "double(a)"}, r"`names` must list names .*, not 'double\(a\)'"),
    "other entry": (
        HUMANEVAL | {"entry_point": "thrice"},
        "does not define the function 'thrice' that `entry_point` names",
    ),
}


@pytest.mark.parametrize(("row", "words"), WRONG.values(), ids=WRONG)
def test_a_row_that_does_not_fit_is_named(tmp_path, row, words):
    with pytest.raises(UsageError, match=words) as wrong:
        load_items(written(tmp_path / "wrong.jsonl", [PLAIN, row]), Problem)
    assert str(tmp_path / "wrong.jsonl") in str(wrong.value)


def test_files_that_cannot_be_read_say_why(tmp_path):
    (tmp_path / "torn.jsonl.gz").write_bytes(gzip.compress(b"x" * 5000)[:-9])
    (tmp_path / "no.jsonl").write_text('{"text": "x"\n')
    (tmp_path / "latin.json").write_bytes(b'["\xe4"]')
    (tmp_path / "one.json").write_text("{}")
    (tmp_path / "short.csv").write_text("text,tests\nx\n")
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "x.txt").write_text("")
    (tmp_path / "folder").mkdir()
    for name, words in {
        "torn.jsonl.gz": "cannot be read",
        "no.jsonl": "line 1: not valid JSON",
        "latin.json": "cannot be read",
        "one.json": "expected a list",
        "short.csv": "row 1: this row does not have the same number of fields",
        "empty.jsonl": "is empty: add rows with prompt",
        "x.txt": r"expected a file that ends in \.jsonl, \.json, \.csv, \.parquet, \.xml",
        "folder": "has no file that ends in .jsonl",
        "gone.jsonl": "cannot be read",
    }.items():
        with pytest.raises(UsageError, match=words):
            load_items(str(tmp_path / name), Problem)


def test_a_folder_is_all_its_files(tmp_path):
    written(tmp_path / "b.json", [SANITISED])
    written(tmp_path / "a.jsonl.gz", [MBPP])
    (tmp_path / "README.txt").write_text("not data")
    assert [problem.id for problem in load_items(str(tmp_path), Problem)] == ["7", "8"]


# --- names ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Word:
    id: str
    word: str


def test_a_name_is_looked_up_among_the_datasets_of_the_task(tmp_path):
    assert default_dataset(Problem) == "samples"
    assert default_dataset(Word) is default_dataset(None) is None
    with pytest.raises(
        UsageError,
        match=r"unknown dataset .human_eval.; did you mean .humaneval.*for a file or folder write",
    ):
        load_items("human_eval", Problem)
    with pytest.raises(UsageError, match="unknown dataset 'samples'; available: none"):
        load_items("samples", Word)
    assert load_items(written(tmp_path / "w.csv", [{"word": "tea"}]), Word) == [Word("1", "tea")]


def test_other_packages_add_datasets(monkeypatch):
    class Entry(NamedTuple):
        held: object

        def load(self):
            return self.held

    def holding(*held):
        catalogue.all_datasets.cache_clear()
        monkeypatch.setattr(
            catalogue,
            "entry_points",
            lambda group: [Entry(each) for each in held if group == "parley.datasets"],
        )

    teas = Dataset(
        "teas", Word, 2, "here", "MIT", lambda: [{"word": "oolong"}, {"id": "x", "word": "mate"}]
    )
    try:
        holding(teas, Dataset("samples", Word, 3, "here", "MIT", lambda: [{"word": "one"}]))
        assert load_items("teas", Word) == [Word("1", "oolong"), Word("x", "mate")]
        assert item_type_of_dataset("teas") is Word
        with pytest.raises(UsageError, match="samples should have 3 items, but the source has 1"):
            load_items(default_dataset(Word), Word)
        with pytest.raises(
            UsageError,
            match=r"types of items .OSEntry, Paragraph, Problem, Question, WordPair, Word.: "
            r"add --task",
        ):
            item_type_of_dataset("samples")
        holding(teas, teas)
        assert len(datasets_named("teas")) == 1
        holding(teas, Dataset("teas", Word, 1, "there", "MIT", list))
        with pytest.raises(
            UsageError, match="two datasets with items of type Word are named 'teas'"
        ):
            datasets_named("teas")
        holding("nothing")
        with pytest.raises(UsageError, match=r"must be a parley\.datasets\.Dataset"):
            datasets_named("teas")
    finally:
        catalogue.all_datasets.cache_clear()


def test_mbpp_comes_through_the_hub(monkeypatch):
    library = ModuleType("datasets")
    asked = []

    def load(name, edition, split):
        asked.append((name, edition, split))
        if split == "train":
            raise ConnectionError("no way to https://user:word@hub/x\nmore")
        return [{**MBPP, "task_id": n} for n in range(11, 511)]

    library.load_dataset = load
    monkeypatch.setitem(sys.modules, "datasets", library)
    monkeypatch.setattr("parley.datasets.hub.find_spec", lambda name: object())
    problems = load_items("mbpp", Problem)
    assert [problems[0].id, problems[-1].id, len(problems)] == ["11", "510", 500]
    assert asked == [("google-research-datasets/mbpp", "full", "test")]
    with pytest.raises(
        UsageError,
        match=(
            r"\(full, train\) could not be loaded from the Hugging Face Hub \(ConnectionError: "
            r"no way to \[address\]\): check your"
        ),
    ):
        load_items("mbpp-all", Problem)
    monkeypatch.setattr("parley.datasets.hub.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r'pip install "parley-eval\[datasets\]".*--dataset PATH'):
        load_items("mbpp", Problem)


# --- experiments ----------------------------------------------------------------------------------

SOLVING = """
from dataclasses import dataclass
from parley import Items, Metric, Problem, Role, Task

@dataclass(frozen=True)
class Solving(Task):
    \"\"\"Says something about a problem.\"\"\"
    roles = {"programmer": Role()}
    items = Items(Problem)

    def metrics(self, seats):
        return [Metric("points", 0, 1, 0.1)]

    async def play(self, referee, programmer):
        await referee.ask(programmer, referee.item.text)
        return {programmer: float(bool(referee.item.tests or referee.item.cases))}
"""


@pytest.fixture
def solving(tmp_path):
    (tmp_path / "solving.py").write_text(SOLVING)
    return str(tmp_path / "solving.py")


def experiment(file, dataset):
    """An experiment file on a dataset."""
    file.write_text(
        f"kind: experiment\ntask: solving.py\ndataset: {dataset}\n"
        f"models: {{n: {{model: bot/null}}}}"
    )
    return str(file)


def test_without_a_dataset_the_samples_are_played(solving, tmp_path):
    done = command("run", solving, "-m", "bot/null", "--items", 3, "--json", cwd=tmp_path)
    assert "dataset samples: read 46 items" in done.err
    assert done.json["run"]["matches"]["done"] == 3
    again = command("resume", "last", "--json", cwd=tmp_path)  # its items are its own
    assert again.json["results"] == done.json["results"]


def test_an_experiment_file_says_which_column_is_which(solving, tmp_path):
    written(
        tmp_path / "own.jsonl",
        [
            {
                "key": "k",
                "task": "Double it.",
                "a": "assert f(1)",
                "b": "assert f(2)",
                "text": "no",
                "entry": "f",
            }
        ],
    )
    file = tmp_path / "experiment.yaml"
    columns = "{id: key, text: task, tests: [a, b], names: entry}"
    experiment(file, f"{{path: own.jsonl, columns: {columns}}}")
    prepared = read_experiment(str(file)).prepare()
    tests = ("assert f(1)", "assert f(2)")
    assert prepared.items == {"k": Problem("k", "Double it.", tests, names=("f",))}
    assert prepared.config.columns == {
        "id": "key",
        "text": "task",
        "tests": ["a", "b"],
        "names": "entry",
    }
    result = parley.run(file, store=tmp_path)
    assert result.state == "done"
    assert parley.resume(result.path).data["results"] == result.data["results"]
    with pytest.raises(UsageError, match="path"):
        read_experiment(experiment(file, "{columns: {}}"))
    other = read_experiment(experiment(file, "{path: own.jsonl, columns: {text: words}}"))
    with pytest.raises(
        UsageError,
        match=r"own\.jsonl, row 1: there is no column words; the columns are key, task, a, b, text",
    ):
        other.prepare()
    other.set_dataset("samples")  # a flag overrides the file, columns and all
    assert other.columns == {}
    asked = Experiment(solving)
    for wrong in ({"file": "x"}, {"path": "x", "file": "x"}):
        with pytest.raises(UsageError, match=r"found .*file"):
            asked.set_dataset(wrong)


def test_rows_from_python_may_have_any_form(solving, tmp_path):
    result = parley.run(solving, ["bot/null"], items=[MBPP, HUMANEVAL, PLAIN], store=tmp_path)
    assert result.data["run"]["matches"]["done"] == 3


# --- the command ----------------------------------------------------------------------------------


def test_the_list_of_datasets(tmp_path):
    found = {
        (row["name"], row["item_type"]): row
        for row in command("datasets", "--json", cwd=tmp_path).json
    }
    assert found["samples", "Problem"] == {
        "name": "samples",
        "item_type": "Problem",
        "items": 46,
        "from": "bundled",
        "licence": "Apache-2.0",
    }
    assert found["humaneval", "Problem"]["items"] == 164
    assert "mbpp-sanitised" in command("datasets", cwd=tmp_path).out


def test_a_check_runs_every_reference_and_tells_which_fail(tmp_path):
    bad = PLAIN | {"id": "bad", "tests": ["assert double(0) == 0", "assert double(2) == 5"]}
    bare = {"text": "x", "tests": ["assert f()"], "names": ["f"]}
    path = written(tmp_path / "own.jsonl", [PLAIN, bad, CASES | {"reference": "print(1)"}, bare])
    done = command("datasets", "check", path, "--json", cwd=tmp_path, code=5)
    assert (done.json["items"], done.json["checked"], done.json["item_type"]) == (4, 3, "Problem")
    assert done.json["failed"] == [
        {"id": "bad", "fault": "test 2: AssertionError"},
        {"id": "3", "fault": "case 1: wrong output"},
    ]
    told = command("datasets", "check", path, cwd=tmp_path, code=5).out
    assert told.splitlines()[-1] == f"{path}: read 4 items of type Problem; 3 checked, 2 failed"


def test_a_check_needs_to_know_what_the_items_are(solving, tmp_path):
    path = written(tmp_path / "own.jsonl", [{"x": 1}])
    said = command("datasets", "check", path, cwd=tmp_path, code=2).err
    assert (
        "row 1: none of the columns belongs to a known format; this file has the columns x; to "
        "map a column" in said
    )
    assert said.rstrip().endswith("or add --task TASK to name the task that uses the items")
    assert (
        "the nearest known format for Problem items has the columns"
        in command("datasets", "check", path, "--task", solving, cwd=tmp_path, code=2).err
    )
    same = written(tmp_path / "same.jsonl", [PLAIN, PLAIN])
    told = command("datasets", "check", same, cwd=tmp_path, code=2).err
    assert f"two items have the same id 'p' ({same}, row 1 and {same}, row 2)" in told


def test_what_looks_misspelt_is_told(solving, tmp_path):
    reference = PLAIN["reference"]
    path = written(
        tmp_path / "own.jsonl",
        [
            {
                "text": "x",
                "tests": ["assert double(1) == 2"],
                "names": ["double"],
                "refrence": reference,
                "level": 3,
            }
        ],
    )
    done = command("datasets", "check", path, cwd=tmp_path)
    assert (
        f"dataset {path}: Parley does not use the column 'refrence'; did you mean 'reference'?"
        in done.err
    )
    assert f"dataset {path}: Parley does not use the columns refrence, level" in done.err
    assert f"{path}: read 1 item of type Problem" in done.out
    done = command("run", solving, "-m", "bot/null", "--dataset", path, cwd=tmp_path)
    assert f"dataset {path}: read 1 item" in done.err
    assert "did you mean 'reference'?" in done.err
    wrong = written(tmp_path / "wrong.jsonl", [{"text": "x", "tets": ["assert f()"]}])
    with pytest.raises(
        UsageError,
        match="this file has the columns text, tets; Parley does not use the column 'tets'; "
        "did you mean 'tests'",
    ):
        load_items(wrong, Problem)
    with pytest.raises(
        UsageError,
        match=(
            r"unknown field of Problem in the columns for .*: 'refrence'; "
            r"did you mean 'reference'"
        ),
    ):
        load_items(path, Problem, {"refrence": "level"})
    with pytest.raises(
        UsageError,
        match="has no value for word; its columns are id, wrod; Parley does not use the column "
        "'wrod'; did you mean 'word'",
    ):
        load_items(written(tmp_path / "words.csv", [{"wrod": "tea"}]), Word)
    twice = [PLAIN, MBPP, PLAIN]
    with pytest.raises(UsageError, match=r"two items have the same id 'p' \(item 1 and item 3\)"):
        parley.run(solving, ["bot/null"], items=twice, store=tmp_path)


# --- the samples ----------------------------------------------------------------------------------

SAMPLES = load_items("samples", Problem)
EQUIVALENT = {  # these do the same as the reference
    ("shelf_ranges", "while start <= len(numbers):"),  # one more turn adds nothing
    ("fewest_stamps", "none = postage + 2"),  # any number above the postage stands for none
    ("round_to_grid", "sign = -1 if cents <= 0 else 1"),  # the sign of 0 does not matter
    ("round_to_grid", "sign = -1 if cents < 1 else 1"),
    ("vote_rounds", "counts[first] += 2"),  # only shares are compared
}


def faulty(problem):
    """The mutants of a problem's reference that do something else than it."""
    listed = [line for name, line in EQUIVALENT if name == problem.id]
    return [code for code in mutants(problem.reference) if not any(line in code for line in listed)]


def survivors(chosen):
    """Of (problem, program), those that pass."""

    async def work():
        sandbox = Sandbox(limits=Limits(cpu=1, wall=8.0))
        try:
            found = await asyncio.gather(
                *(sandbox.execute(problem.program(code)) for problem, code in chosen)
            )
        finally:
            sandbox.close()
        return [
            (problem.id, code)
            for (problem, code), verdict in zip(chosen, found, strict=True)
            if verdict["passed"]
        ]

    return asyncio.run(work())


def test_the_samples_are_many_and_each_has_a_reference_and_tests():
    assert len({problem.id for problem in SAMPLES}) == len(SAMPLES) >= 36
    assert all(4 <= len(problem.tests or problem.cases) <= 6 for problem in SAMPLES)
    assert all(
        problem.reference and (problem.cases or problem.signature.startswith(("def ", "class ")))
        for problem in SAMPLES
    )
    assert Counter(bool(problem.cases) for problem in SAMPLES)[True] >= 4


def test_every_reference_of_the_samples_passes():
    assert asyncio.run(check_reference_programs(SAMPLES, lambda done: None)) == (
        len(SAMPLES),
        {},
        (),
    )


def test_faults_in_the_references_are_found_by_the_tests():
    """Two faults a problem, from both ends of its program; the long test has all of them."""
    chosen = []
    for problem in SAMPLES:
        found = faulty(problem)
        assert len(found) >= 2, problem.id
        chosen += [(problem, code) for code in (found[0], found[-1])]
    assert survivors(chosen) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_fault_in_the_references_is_found_by_the_tests():
    assert survivors([(problem, code) for problem in SAMPLES for code in faulty(problem)]) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_all_164_references_of_humaneval_pass():
    found = asyncio.run(
        check_reference_programs(load_items("humaneval", Problem), lambda done: None)
    )
    assert (found.checked, found.faults) == (164, {})


def test_tests_take_modules_from_the_reference_and_nothing_from_nowhere(tmp_path):
    """As in MBPP 596: its tests use `sys`, which only the reference imports."""
    file = tmp_path / "rows.json"
    row = {
        "task_id": 1,
        "text": "Find the size of a tuple in bytes.",
        "code": "import sys\nfrom math import isclose as near\n"
        "def size(t):\n  return sys.getsizeof(t)",
        "test_list": [
            "assert size((1,)) == sys.getsizeof((1,))",
            "assert near(1.0, size(1) - size(1) + 1)",
        ],
    }
    file.write_text(json.dumps([row]))
    (item,) = load_items(str(file), Problem)
    assert (
        item.prelude == "from math import isclose as near\n"
    )  # `sys.x` is imported by every judge
    assert item.names == ("size",)
    file.write_text(json.dumps([{**row, "test_list": ["assert size((1,)) == approx(48)"]}]))
    with pytest.raises(
        UsageError,
        match="the tests use 'approx', but neither the tests nor the reference solution define "
        "this name",
    ):
        load_items(str(file), Problem)


def test_tests_take_constants_from_the_reference_and_not_from_a_program(tmp_path):
    file = tmp_path / "rows.json"
    row = {
        "task_id": 1,
        "text": "Bound a number.",
        "code": "MOST, table = 3, {}\nLARGEST = 3\nNAMES = ['a', 'b']\n"
        "def bound(n):\n  return min(n, LARGEST)",
        "test_list": ["assert bound(10) == LARGEST", "assert bound(len(NAMES)) == 2"],
    }
    file.write_text(json.dumps([row]))
    (item,) = load_items(str(file), Problem)
    assert item.prelude == "LARGEST = 3\nNAMES = ['a', 'b']\n"
    assert asyncio.run(check_reference_programs([item], lambda done: None)).faults == {}
    assert survivors([(item, "LARGEST = 10\nNAMES = []\ndef bound(n):\n  return n")]) == []


@pytest.mark.parametrize("name", ["x.jsonl.gz", "x.json.gz", "x.csv.gz", "a.en-de.en.xml.gz"])
def test_a_small_file_does_not_unpack_to_all_of_the_memory(tmp_path, name):
    packed = gzip.compress(b" " * 110_000_000, compresslevel=1)
    (tmp_path / name).write_bytes(packed)
    (tmp_path / "a.en-de.de.xml").touch()
    with pytest.raises(UsageError, match=f"{name}: .* at most 100 MB.* unpack it"):
        load_items(str(tmp_path / name), Problem)


@pytest.mark.parametrize(("name", "row"), [("x.jsonl.gz", b"{}\n"), ("x.csv.gz", b"a\n")])
def test_a_small_file_has_no_millions_of_rows(tmp_path, name, row):
    (tmp_path / name).write_bytes(gzip.compress(row * 1_000_002, compresslevel=1))
    with pytest.raises(UsageError, match=f"{name}: .* at most 1,000,000 rows"):
        list(read_rows(tmp_path / name))


def test_the_files_of_a_folder_unpack_to_a_limited_size_together(tmp_path):
    packed = gzip.compress(b" " * 30_000_000 + b"\n", compresslevel=1)
    for number in range(4):
        (tmp_path / f"{number}.jsonl.gz").write_bytes(packed)
    with pytest.raises(UsageError, match=r"3\.jsonl\.gz: .* at most 100 MB"):
        load_items(str(tmp_path), Problem)
    (tmp_path / "3.jsonl.gz").rename(tmp_path / "3.txt")
    (tmp_path / "4.jsonl").write_bytes(b" " * 60_000_000)  # a large file is what it looks like
    with pytest.raises(UsageError, match="is empty"):
        load_items(str(tmp_path), Problem)
