"""Retrievers by name, those of other packages, and the ones without a model."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parley
from parley.errors import ParleyError, UsageError
from parley.memory import OWN_EXAMPLES, Neighbour, Search
from parley.memory.retrievers._registry import (
    builtin_retrievers,
    make_retriever,
    retriever_names,
)
from tests.retrieval import DATA, TEXTS, searching

NAMES = ("bm25", "fixed", "minilm", "none", "random")


def places(found):
    return [[each.stored for each in row] for row in found]


# Searches


def test_a_search_says_what_is_barred():
    wanted = Search(
        ["a", "b"],
        ["c", "d", "e"],
        1,
        [1, 2],
        [2, 1, 1],
        mask=True,
        query_subjects=["law", "art"],
        stored_subjects=["law", "law", "art"],
    )
    everything = slice(0, 2)
    assert wanted.barred(everything).tolist() == [[False, True, True], [True, False, False]]
    assert wanted.barred(slice(1, 2)).tolist() == [[True, False, False]]
    unmasked = replace(wanted, mask=False)
    scopes = {
        "subject": [[False, False, True], [True, True, False]],
        "other": [[True, True, False], [False, False, True]],
    }
    for scope, barred in scopes.items():
        assert replace(unmasked, scope=scope).barred(everything).tolist() == barred
    assert unmasked.barred(everything) is None


@pytest.mark.parametrize(
    ("given", "says_what"),
    [
        ({"k": 0}, "k must be at least 1, not 0"),
        ({"stored_items": [1]}, "stored_items needs one entry per text: 2, not 1"),
        ({"scope": "other"}, "query_subjects needs one entry per text: 1, not 0"),
    ],
)
def test_a_search_that_does_not_fit_together_is_refused(given, says_what):
    good = {"queries": ["a"], "stored": ["b", "c"], "k": 1}
    with pytest.raises(ValueError, match=says_what):
        Search(**{**good, "query_items": [0], "stored_items": [1, 2], **given})


# Names


def test_every_retriever_is_found_by_its_name():
    assert set(retriever_names()) == {*NAMES, "hf/NAME"}
    for name in NAMES:
        assert make_retriever(name).name == name


@pytest.mark.parametrize(
    ("name", "says_what"),
    [
        ("bm52", "unknown retriever 'bm52'; did you mean 'bm25'"),
        ("static", "unknown retriever .static.; available: bm25, fixed, hf/NAME, minilm, none"),
        ("_registry", "unknown retriever"),
        ("", "unknown retriever"),
        ("bm25/lucene", "bm25 takes no further name: write bm25"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name, says_what):
    with pytest.raises(UsageError, match=says_what):
        make_retriever(name)


def test_the_room_itself_imports_nothing_heavy():
    code = (
        "import sys, parley.memory, parley.memory.retrievers._registry as registry\n"
        "registry.make_retriever('fixed')\nprint('numpy' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


# Other packages

GOOD = """
class Last:
    version = "3"
    def __init__(self, name): self.typed = name
    def search(self, wanted):
        return [[(len(wanted.stored) - 1, 0.5)] for _ in wanted.queries]
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a package that brings retrievers."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(code, entries="last = made_up_last:Last", package="made-up"):
        info = tmp_path / f"{package.replace('-', '_')}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[parley.retrievers]\n{entries}\n")
        (tmp_path / "made_up_last.py").write_text(code)
        sys.modules.pop("made_up_last", None)

    yield install
    sys.modules.pop("made_up_last", None)


def test_another_package_brings_a_retriever(installed):
    installed(GOOD)
    assert "last" in retriever_names()
    found = make_retriever("last/x")
    assert (found.name, found.version) == ("last/x", "made-up 3")
    found.prepare()
    assert found.search(searching(["q"], ["a", "b"], 2)) == [[Neighbour(1, 0.5)]]


@pytest.mark.parametrize(
    ("code", "says_what"),
    [
        ("import nothing_like_this", "No module named 'nothing_like_this'"),
        ("Lost = 1", "has no attribute 'Last'"),
        ("def Last(name): raise KeyError(name)", "KeyError: 'last'"),
        ("def Last(name): return 1", "must have `version: str`"),
        ("class Last:\n version = '1'\n def __init__(self, name): pass", "must have the method"),
    ],
)
def test_a_broken_package_is_named(installed, code, says_what):
    installed(code)
    with pytest.raises(UsageError, match=says_what) as wrong:
        make_retriever("last")
    assert "(package made-up)" in str(wrong.value)


def test_a_package_cannot_take_a_name_of_ours_or_of_another_one(installed):
    installed(GOOD, "bm25 = made_up_last:Last\nlast = made_up_last:Last")
    with pytest.raises(UsageError, match="Parley has its own retriever of that name"):
        make_retriever("bm25")
    installed(GOOD, "last = made_up_last:Other", package="second")
    says_both = r"several packages provide it \(package made-up, second\)"
    with pytest.raises(UsageError, match=says_both):
        make_retriever("last")


@pytest.mark.parametrize(
    ("result", "says_what"),
    [
        ("None", r"`search` must return pairs .*TypeError: 'NoneType' object is not iterable"),
        ("[[1]]", r"`search` must return pairs \(stored, distance\) for each query"),
        ("1 / 0", r"`search` raised ZeroDivisionError: .* \(made_up_last.py, line 4\)"),
        ("({}['k'] for _ in 'ab')", r"`search` .*raised KeyError: 'k' \(made_up_last.py, line 4\)"),
    ],
)
def test_an_error_of_another_package_names_the_retriever_and_the_line(installed, result, says_what):
    installed(
        "class Last:\n    version = '1'\n    def __init__(self, name): pass\n"
        f"    def search(self, wanted): return {result}"
    )
    with pytest.raises(UsageError, match=rf"^retriever last failed: {says_what}.*made-up"):
        make_retriever("last").search(searching(["c"], ["a", "b", "c"], 2, mask=True))


def test_a_run_says_which_retriever_failed_and_can_be_resumed(installed, tmp_path):
    broken = "class Last:\n    version = '1'\n    def __init__(self, name): pass\n    def search"
    installed(f"{broken}(self, wanted): return ({{}}['k'] for _ in wanted.queries)")
    settings = {"retriever": "last", "stages": 1, "k": 1}
    with pytest.raises(ParleyError, match=r"retriever last failed: `search` .*raised KeyError"):
        parley.run("qa", "bot/copier", items=2, shots=0, evolve=settings, store=tmp_path / "runs")
    (tmp_path / "made_up_last.py").write_text(f"{broken}(self, wanted): return [[], []]")
    sys.modules.pop("made_up_last")
    assert parley.resume(*(tmp_path / "runs").glob("*.parley")).state == "done"


# Without a model


def test_fixed_and_none_search_nothing():
    wanted = searching(["a", "b"], ["c"], 1)
    assert set(OWN_EXAMPLES) <= builtin_retrievers()
    for name in OWN_EXAMPLES:
        assert make_retriever(name).search(wanted) == [[], []]


def test_bm25_ranks_as_a_published_implementation():
    """bm25s 0.3.16, method lucene; recorded by record.py."""
    lines = (DATA / "bm25.jsonl").read_text(encoding="utf-8").splitlines()
    found = make_retriever("bm25").search(searching(TEXTS, TEXTS, len(TEXTS)))
    for row, line in zip(found, lines, strict=True):
        recorded = json.loads(line)
        assert [each.stored for each in row] == recorded["order"]
        for each in row:
            assert -each.distance == pytest.approx(
                recorded["scores"][each.stored], rel=1e-5, abs=1e-4
            )


def test_bm25_with_masks_and_few_texts():
    bm25 = make_retriever("bm25")
    texts = ["red house", "red house", "blue house", ""]
    # equal words are one item
    assert places(bm25.search(searching(["a RED house!"], texts, 9))) == [[0, 1, 2, 3]]
    assert places(bm25.search(searching(["red house"], texts, 1, mask=True))) == [[2]]
    assert bm25.search(searching(["x"], [], 3)) == [[]]
    assert places(bm25.search(searching(["x"], ["", ""], 1))) == [[0]]


words = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=4).map(" ".join)


@given(st.lists(words, max_size=6), st.lists(words, max_size=8), st.randoms(), st.booleans())
def test_random_draws_by_the_seed_and_the_query_alone(queries, stored, chance, mask):
    draw = make_retriever("random")
    stored = list(dict.fromkeys(stored))
    wanted = searching(queries, stored, 3, mask=mask, seed="7")
    found = draw.search(wanted)
    for query, row in zip(queries, found, strict=True):
        allowed = [text for text in stored if not mask or text != query]
        chosen = [stored[each.stored] for each in row]
        assert len(set(chosen)) == len(chosen) == min(3, len(allowed))
        assert set(chosen) <= set(allowed)
        assert {each.distance for each in row} <= {0.0}
    order = chance.sample(range(len(queries)), len(queries))
    others = chance.sample(stored, len(stored))
    again = draw.search(
        searching([queries[place] for place in order], others, 3, mask=mask, seed="7")
    )
    for place, row in zip(order, again, strict=True):
        drawn = [stored[each.stored] for each in found[place]]
        assert [others[each.stored] for each in row] == drawn


def test_random_draws_evenly_and_anew_for_every_seed():
    draw, stored = make_retriever("random"), [str(number) for number in range(10)]
    counts = dict.fromkeys(range(10), 0)
    for seed in range(2000):
        (row,) = draw.search(searching(["q"], stored, 3, seed=str(seed)))
        for each in row:
            counts[each.stored] += 1
    assert all(520 <= count <= 680 for count in counts.values())  # 600 on average
