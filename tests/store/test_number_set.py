"""A set of match numbers is a set."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from parley.store.number_set import NumberSet


@given(st.lists(st.integers(-(2**63), 2**63) | st.integers(-3, 2000)), st.integers(-3, 2000))
def test_a_number_set_is_a_set(numbers, other):
    found = NumberSet(numbers)
    assert len(found) == len(set(numbers))
    assert all(number in found for number in numbers)
    assert (other in found) == (other in set(numbers))
    assert "1" not in found


def test_a_number_takes_a_few_bits():
    found = NumberSet(range(1, 100_001))
    size = sys.getsizeof(found._pages) + sum(map(sys.getsizeof, found._pages.values()))
    assert size * 8 / 100_000 < 4
