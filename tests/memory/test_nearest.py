"""The nearest vectors: exact with ties, masks and scopes, whatever the block and the company."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.memory import Neighbour, Search, nearest
from parley.memory.nearest import find_nearest, take_nearest


def brute_force(queries, stored, k, barred=None):
    """All distances, each row sorted."""
    apart = queries[:, None].astype(np.float64) - stored[None]
    distances = np.sqrt(np.square(apart).sum(axis=2))
    if barred is not None:
        distances[barred] = np.inf
    rows = []
    for row in distances:
        order = [place for place in np.argsort(row, kind="stable") if row[place] < np.inf][:k]
        rows.append([Neighbour(int(place), float(row[place])) for place in order])
    return rows


@st.composite
def vectors(draw, width, most):
    """Vectors with many ties: small whole numbers, or a few far from each other."""
    count = draw(st.integers(0, most))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["whole", "near", "random"]))
    if kind == "whole":
        return chance.integers(-1, 2, (count, width)).astype(np.float32)
    found = chance.normal(size=(count, width)) * (1 if kind == "random" else 1e-6)
    return (found + (kind == "near")).astype(np.float32)


@given(st.data())
def test_the_result_is_that_of_brute_force(data):
    width, k = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 12))
    queries = data.draw(vectors(width, 9))
    stored = data.draw(vectors(width, 40))
    items, subjects = st.integers(0, 5), st.sampled_from("abc")
    wanted = Search(
        [""] * len(queries),
        [""] * len(stored),
        k,
        data.draw(st.lists(items, min_size=len(queries), max_size=len(queries))),
        data.draw(st.lists(items, min_size=len(stored), max_size=len(stored))),
        mask=data.draw(st.booleans()),
        query_subjects=data.draw(st.lists(subjects, min_size=len(queries), max_size=len(queries))),
        stored_subjects=data.draw(st.lists(subjects, min_size=len(stored), max_size=len(stored))),
        scope=data.draw(st.sampled_from(["all", "subject", "other"])),
    )
    expected = brute_force(queries, stored, k, wanted.barred(slice(None)))
    with pytest.MonkeyPatch.context() as patch:
        for block in (1, data.draw(st.integers(2, 50)), nearest.BLOCK):
            patch.setattr(nearest, "BLOCK", block)
            assert find_nearest(queries, stored, k, wanted.barred) == expected


@given(st.integers(0, 2**32), st.integers(1, 400))
def test_the_distance_of_a_pair_depends_on_nothing_else(seed, width):
    chance = np.random.default_rng(seed)
    queries, stored = (chance.normal(size=(n, width)).astype(np.float32) for n in (3, 30))
    together = find_nearest(queries, stored, len(stored))
    for query, row in zip(queries, together, strict=True):
        for place, distance in row:
            assert find_nearest(query[None], stored[place : place + 1], 1) == [[(0, distance)]]


def test_the_threads_of_numpy_change_nothing():
    code = (
        "import numpy as np\nfrom parley.memory.nearest import find_nearest\n"
        "found = np.random.default_rng(1).normal(size=(900, 384)).astype(np.float32)\n"
        "print(find_nearest(found[:20], found, 30))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": count, "OMP_NUM_THREADS": count},
        ).stdout
        for count in ("1", "2")
    }
    assert len(said) == 1


def test_masks_are_asked_for_the_rows_at_hand():
    """Never for all rows at once: that matrix would be as large as the one that is avoided."""
    wanted = Search([""] * 50, [""] * 40, 2, range(50), range(40), mask=True)
    asked = []

    def barred(rows):
        asked.append(rows.stop - rows.start)
        return wanted.barred(rows)

    chance = np.random.default_rng(1)
    queries, stored = (chance.normal(size=(n, 3)).astype(np.float32) for n in (50, 40))
    found = find_nearest(queries, stored, 2, barred)
    assert asked == [1] * 50
    assert found == brute_force(queries, stored, 2, wanted.barred(slice(0, 50)))
    assert replace(wanted, mask=False).barred(slice(0, 50)) is None


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, np.inf]), max_size=12), st.integers(1, 14))
def test_of_one_row_the_nearest_are_taken_by_order(distances, k):
    found = take_nearest(np.array(distances), k)
    finite = [place for place, distance in enumerate(distances) if distance < np.inf]
    assert [each.stored for each in found] == sorted(finite, key=distances.__getitem__)[:k]
