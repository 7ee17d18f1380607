"""Retrievers of others may be wrong: what they cannot have found is refused."""

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
        ([(9, 0.0)], "text 9, and there are 3", {}),
        ([(-1, 0.0)], "text -1", {}),
        ([(0, 0.1), (0, 0.1)], "the same text twice", {}),
        ([(0, 0.0), (1, 0.0), (2, 0.0)], "3 texts for one query, and 2 were wanted", {}),
        ([(0, float("nan"))], "at the distance nan", {}),
        ([(0, 0.0)], "that mask or scope leaves out", {"mask": True}),
        ([(1, 0.0)], "that mask or scope leaves out", {"scope": "subject"}),
        ([(0, 0.0)], "that mask or scope leaves out", {"scope": "other"}),
    ],
)
def test_what_cannot_have_been_found_is_refused(near, said, more):
    found = [[Neighbour(*each) for each in near], []]
    with pytest.raises(UsageError, match=f"retriever plug found .*{said}"):
        check_found("plug", Search(**WANTED, **more), found)


def test_every_query_has_its_result():
    with pytest.raises(UsageError, match="1 results for 2 queries"):
        check_found("plug", Search(**WANTED), [[]])
    check_found("plug", Search(**WANTED, mask=True), [[Neighbour(2, 0.5)], [Neighbour(0, 0.1)]])
