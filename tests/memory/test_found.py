"""Retrievers of other packages may have bugs: their results are checked."""

import pytest

from parley.errors import UsageError
from parley.memory import Neighbour, Search
from parley.memory.found import check_found

WANTED = {
    "queries": ["a", "b"], "stored": ["a", "b", "c"], "k": 2, "query_items": [0, 1],
    "stored_items": [0, 1, 2], "query_subjects": ["s", "t"], "stored_subjects": ["s", "t", "t"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("near", "said", "more"),
    [
        ([(9, 0.0)], "text number 9, but there are only 3 stored texts", {}),
        ([(-1, 0.0)], "text number -1", {}),
        ([(0, 0.1), (0, 0.1)], "the same text twice", {}),
        ([(0, 0.0), (1, 0.0), (2, 0.0)], "3 texts for one query, more than k=2", {}),
        ([(0, float("nan"))], "a distance of nan", {}),
        ([(0, 0.2), (1, 0.1)], "not sorted by distance", {}),
        ([(0, 0.0)], "that `mask` or `scope` excludes", {"mask": True}),
        ([(1, 0.0)], "that `mask` or `scope` excludes", {"scope": "subject"}),
        ([(0, 0.0)], "that `mask` or `scope` excludes", {"scope": "other"}),
    ],
)
def test_what_cannot_have_been_found_is_refused(near, said, more):
    found = [[Neighbour(*each) for each in near], []]
    with pytest.raises(UsageError, match=f"retriever plug returned .*{said}"):
        check_found("plug", Search(**WANTED, **more), found)


def test_every_query_has_its_result():
    with pytest.raises(UsageError, match="1 result for 2 queries"):
        check_found("plug", Search(**WANTED), [[]])
    check_found("plug", Search(**WANTED, mask=True), [[Neighbour(2, 0.5)], [Neighbour(0, 0.1)]])
