"""Problems whose tests use objects of the program: a right program passes, a wrong one does not,
and what a program could forge stands apart. The problem's reference decides this, not the
program."""

import asyncio
from dataclasses import replace

import pytest

import parley
from parley import Problem
from parley.audit.audit import audit_run
from parley.datasets.checks import try_reference
from parley.sandbox.executor import Sandbox
from parley.store import read_run
from parley.tasks.code_review import CodeReview
from tests.isolation import isolated

pytestmark = [isolated]

# By kind: a reference, the test, another right program and a wrong one.
KINDS = {
    "in": (
        "class Bag:\n    def __init__(self, xs): self.xs = xs\n"
        "    def __contains__(self, x): return x in self.xs",
        "assert 2 in Bag([1, 2]) and 3 not in Bag([1])",
        "class Bag:\n    def __init__(self, xs): self.kept = set(xs)\n"
        "    def __contains__(self, x): return x in self.kept",
        "class Bag:\n    def __init__(self, xs): self.xs = xs\n"
        "    def __contains__(self, x): return True",
    ),
    "with": (
        "class Guard:\n    def __init__(self): self.steps = []\n"
        "    def __enter__(self): self.steps.append('in'); return self\n"
        "    def __exit__(self, *_): self.steps.append('out')",
        "g = Guard()\nwith g as same:\n    assert same.steps == ['in']\n"
        "assert g.steps == ['in', 'out']",
        "class Guard:\n    def __init__(self): self.steps = []\n"
        "    def __enter__(self):\n        self.steps = ['in']\n        return self\n"
        "    def __exit__(self, a, b, c): self.steps = [*self.steps, 'out']",
        "class Guard:\n    def __init__(self): self.steps = []\n"
        "    def __enter__(self): self.steps.append('in'); return self\n"
        "    def __exit__(self, *_): pass",
    ),
    "arithmetic": (
        "class Money:\n    def __init__(self, cents): self.cents = cents\n"
        "    def __mul__(self, n): return Money(self.cents * n)\n"
        "    def __add__(self, o): return Money(self.cents + o.cents)",
        "assert (Money(2) * 3 + Money(1)).cents == 7",
        "class Money:\n    def __init__(self, c): self.cents = c\n"
        "    def __add__(self, o): return Money(o.cents + self.cents)\n"
        "    def __mul__(self, n): return Money(sum([self.cents] * n))",
        "class Money:\n    def __init__(self, cents): self.cents = cents\n"
        "    def __mul__(self, n): return Money(self.cents + n)\n"
        "    def __add__(self, o): return Money(self.cents + o.cents)",
    ),
    "isinstance": (
        "class Shape: pass\nclass Square(Shape):\n    def __init__(self, a): self.area = a * a",
        "assert isinstance(Square(2), Shape) and Square(3).area == 9",
        "class Shape:\n    area = 0\nclass Square(Shape):\n"
        "    def __init__(self, a): self.area = a ** 2",
        "class Shape: pass\nclass Square:\n    def __init__(self, a): self.area = a * a",
    ),
    "await": (
        "import asyncio\nasync def double(x):\n    await asyncio.sleep(0)\n    return 2 * x",
        "import asyncio\nassert asyncio.run(double(4)) == 8",
        "async def double(x):\n    return x + x",
        "async def double(x):\n    return x * x",
    ),
    "fields of a named tuple": (
        "from collections import namedtuple\nPoint = namedtuple('Point', 'x y')\n"
        "def middle(a, b): return Point((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)",
        "assert middle((0, 0), (2, 4)).y == 2",
        "from typing import NamedTuple\nclass P(NamedTuple):\n    x: float\n    y: float\n"
        "def middle(a, b): return P((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)",
        "from collections import namedtuple\nPoint = namedtuple('Point', 'x y')\n"
        "def middle(a, b): return Point(a[0] + b[0], a[1] + b[1])",
    ),
    "identity": (
        "class Config:\n    one = None\n"
        "def get():\n    Config.one = Config.one or Config()\n    return Config.one",
        "assert get() is get()",
        "class C: pass\nONE = C()\ndef get(): return ONE",
        "class C: pass\ndef get(): return C()",
    ),
    "a nested change in place": (
        "def fill(grid):\n    for row in grid:\n        row[:] = [0] * len(row)",
        "row = [1, 2]\nfill([row, [3]])\nassert row == [0, 0]",
        "def fill(grid):\n    for row in grid:\n        for at in range(len(row)): row[at] = 0",
        "def fill(grid):\n    grid[:] = [[0] * len(row) for row in grid]",
    ),
    "equality": (
        "class Point:\n    def __init__(self, x): self.x = x\n"
        "    def __eq__(self, o): return self.x == o.x",
        "assert Point(1) == Point(1) and Point(1) != Point(2)",
        "from dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int",
        "class Point:\n    def __init__(self, x): self.x = x",
    ),
    "iteration": (
        "class Count:\n    def __init__(self, n): self.n = n\n"
        "    def __iter__(self): return iter(range(self.n))",
        "assert [x for x in Count(3)] == [0, 1, 2] and sum(Count(4)) == 6",
        "class Count:\n    def __init__(self, n): self.n = n\n"
        "    def __iter__(self):\n        for each in range(self.n): yield each",
        "class Count:\n    def __init__(self, n): self.n = n\n"
        "    def __iter__(self): return iter(range(self.n + 1))",
    ),
    "length and items": (
        "class Row:\n    def __init__(self, *xs): self.xs = xs\n"
        "    def __len__(self): return len(self.xs)\n"
        "    def __getitem__(self, at): return self.xs[at]",
        "assert len(Row(1, 2)) == 2 and Row(5, 6)[1] == 6",
        "class Row:\n    def __init__(self, *xs): self.d = dict(enumerate(xs))\n"
        "    def __len__(self): return len(self.d)\n"
        "    def __getitem__(self, at): return self.d[at]",
        "class Row:\n    def __init__(self, *xs): self.xs = xs\n"
        "    def __len__(self): return len(self.xs)\n"
        "    def __getitem__(self, at): return self.xs[0]",
    ),
    "texts": (
        "class Name:\n    def __init__(self, n): self.n = n\n"
        "    def __str__(self): return self.n.title()\n"
        "    def __repr__(self): return f'Name({self.n!r})'",
        "assert str(Name('ada')) == 'Ada' and repr(Name('b')) == \"Name('b')\"",
        "class Name:\n    def __init__(self, n): self.n = n\n"
        "    def __str__(self): return self.n.capitalize()\n"
        "    def __repr__(self): return 'Name(%r)' % self.n",
        "class Name:\n    def __init__(self, n): self.n = n\n"
        "    def __str__(self): return self.n\n    def __repr__(self): return f'Name({self.n!r})'",
    ),
}  # fmt: skip
PROTECTED = {"iteration", "length and items", "texts"}  # these pass by values


def problem_of(kind):
    reference, test, _, _ = KINDS[kind]
    return Problem(kind, f"Do it ({kind}).", (test,), reference=reference)


@pytest.fixture(scope="module")
def sandbox():
    made = Sandbox()
    yield made
    made.close()


def tried(sandbox, problem):
    found, faults = asyncio.run(try_reference(sandbox, problem))
    assert not any(faults), faults
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_right_programs_pass_and_wrong_ones_do_not(sandbox, kind):
    _, _, right, wrong = KINDS[kind]
    problem = tried(sandbox, problem_of(kind))
    assert problem.is_unprotected is (kind not in PROTECTED)
    verdicts = [asyncio.run(sandbox.execute(problem.program(code))) for code in (right, wrong)]
    assert [each["passed"] for each in verdicts] == [True, False], verdicts
    expected = "values" if kind in PROTECTED else "inside"
    assert {each["guarantee"] for each in verdicts} == {expected}


EQUAL = "class E:\n    def __eq__(s, o): return True\n    __hash__ = object.__hash__\n"
FORGED = {
    "an instance that equals everything": (
        "def Extract(xs): return [x[0] for x in xs]",
        "assert Extract([[1, 2]]) == [1]",
        "def Extract(xs): return E()",
    ),
    "an attribute that equals everything": (
        "class P:\n    def __init__(self, x): self.x = x + 1",
        "assert P(1).x == 2",
        "class P:\n    def __init__(self, x): self.x = E()",
    ),
    "a test that would compare instances": (
        "class P:\n    def __init__(self, x): self.x = x",
        "assert P(1).x == 1",
        "class P(E):\n    def __init__(self, x): self.x = self",
    ),
}


@pytest.mark.parametrize("way", FORGED)
def test_no_program_chooses_to_be_judged_inside(sandbox, way):
    reference, test, forged = FORGED[way]
    problem = tried(sandbox, Problem("p", "Do it.", (test,), reference=reference))
    found = asyncio.run(sandbox.execute(problem.program(EQUAL + forged)))
    assert (found["passed"], found["guarantee"]) == (False, "values")


def test_a_reference_that_fails_everywhere_leads_nowhere(sandbox):
    broken = replace(problem_of("equality"), reference=KINDS["equality"][3])
    problem, faults = asyncio.run(try_reference(sandbox, broken))
    assert any(faults)
    assert not problem.is_unprotected


def test_without_a_reference_an_object_where_data_are_needed_is_no_verdict(sandbox):
    for kind in ("in", "with", "arithmetic", "isinstance", "await", "equality"):
        _, test, right, _ = KINDS[kind]
        names = ("Bag", "Guard", "Money", "Shape", "Square", "double", "Point")
        problem = Problem("p", "Do it.", (test,), names=names)
        found = asyncio.run(sandbox.execute(problem.program(right)))
        assert (found["passed"], found["guarantee"]) == (False, "none"), (kind, found)
    handed = Problem("p", "Apply.", ("assert apply(abs, -1) == 1",), names=("apply",))
    program = handed.program("def apply(f, x): return f(x)")
    assert asyncio.run(sandbox.execute(program))["guarantee"] == "none"
    # it is the author who may say so
    program = replace(handed, inside=True).program("def apply(f, x): return f(x)")
    assert asyncio.run(sandbox.execute(program))["guarantee"] == "inside"
    # and what fails without any object is a failure
    plain = Problem("p", "Add.", ("assert add(1, 2) == 3",), names=("add",))
    found = asyncio.run(sandbox.execute(plain.program("def add(a, b): return a")))
    assert (found["passed"], found["guarantee"]) == (False, "values")


def test_a_forged_answer_without_a_reference_is_a_failure(sandbox):
    plain = Problem("p", "Add.", ("assert add(1, 2) == 3",), names=("add",))
    forged = "import os\ndef add(a, b):\n    os.write(4, b'\\0\\0\\0\\x02{}')\n    return 3"
    found = asyncio.run(sandbox.execute(plain.program(forged)))
    assert (found["passed"], found["guarantee"]) == (False, "values")


def writes(code):
    return lambda view: f"```python\n{code}\n```"


def test_what_could_be_forged_stands_apart_in_a_run(tmp_path):
    plain = Problem(
        "plain", "Add.", ("assert add(1, 2) == 3",), reference="def add(a, b): return a + b"
    )
    unknown = Problem("unknown", "Bag.", (KINDS["in"][1],), names=("Bag",))
    items = [plain, problem_of("equality"), unknown]
    everything = (
        "class Point:\n    def __init__(self, x): pass\n    def __eq__(self, o): return True\n"
        "    def __ne__(self, o): return True\n"
        "class Bag:\n    def __init__(self, x): pass\n    def __contains__(self, x): return True\n"
        "def add(a, b): return Point(1)"
    )
    honest = "\n".join([plain.reference, KINDS["equality"][2], KINDS["in"][2]])
    models = {"forger": writes(everything), "honest": writes(honest)}
    result = parley.run(CodeReview(rounds=1), models, items=items, store=tmp_path)
    assert result.state == "done"
    with read_run(result.ref) as reader:
        stored = {row["id"]: row["inside"] for row in reader.run.items()}
        assert stored == {"plain": False, "equality": True, "unknown": False}
        found = {}
        for match in reader.matches.read():
            for seat, scores in reader.scores.of(match.number).items():
                if seat.role == "programmer":
                    pair = (scores.get("pass"), scores.get("pass_unprotected"))
                    found[match.item, match.seats[seat]] = pair
    assert found == {
        ("plain", "forger"): (0, None),
        ("plain", "honest"): (1, None),
        ("equality", "forger"): (None, 1),  # it may be forged, and this one is
        ("equality", "honest"): (None, 1),
        ("unknown", "forger"): (None, None),
        ("unknown", "honest"): (None, None),
    }
    rows = {
        (row["alias"], row["metric"]): (row["mean"], row["blocks"])
        for row in result.data["results"]
        if row["role"] == "programmer" and row["mean"] is not None
    }
    assert rows["forger", "pass"] == (0, 1)
    assert rows["honest", "pass"] == (1, 1)
    assert rows["forger", "pass_unprotected"] == (1, 1)
    assert result.data["programs"] == {"run": 6, "inside": 2, "unjudged": 2}
    remarks = " ".join(result.remarks())
    assert "2 of 6 programs were judged inside" in remarks
    assert "2 of 6 programs could not be judged" in remarks
    assert not audit_run(result.ref).breaches


def test_references_that_fail_are_named_before_a_run(tmp_path, capsys):
    wrong = Problem("wrong", "Add.", ("assert f(1) == 3",), reference="def f(x): return x")
    notices = []
    parley.run(
        CodeReview(rounds=1),
        {"a": writes("def f(x): return x"), "b": writes("def f(x): return x")},
        items=[wrong],
        store=tmp_path,
        progress=lambda event: notices.append(event.text),
    )
    (said,) = [each for each in notices if "references of 1 of 1 problem" in (each or "")]
    assert "the first is wrong: AssertionError" in said
