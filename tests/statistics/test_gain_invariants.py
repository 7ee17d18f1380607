"""What holds for every paired gain, however few items there are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.statistics.paired_gain import Play, average_gains, compute_gain

score = st.sampled_from([0.0, 1.0, None])
rows = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3), score, score), max_size=20)


def gain_of(found, swap=False):
    plays = [Play(f"q{item}", series) for item, series, _, _ in found]
    before, after = [row[2] for row in found], [row[3] for row in found]
    return compute_gain(plays, after, before) if swap else compute_gain(plays, before, after)


def opposite(value):
    return None if value is None else pytest.approx(-value, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(rows, st.randoms())
def test_a_gain_lies_in_its_interval_and_turns_round_with_its_rounds(found, rng):
    gain, back = gain_of(found), gain_of(found, swap=True)
    assert (gain.value is None) == (gain.items == 0)
    assert (gain.low is None) == (gain.items < 2)
    assert (back.value, back.low, back.high) == tuple(
        map(opposite, (gain.value, gain.high, gain.low))
    )
    assert (back.gained, back.lost) == (gain.lost, gain.gained)
    if gain.low is not None:
        assert -1 <= gain.low <= gain.value + 1e-12
        assert gain.value - 1e-12 <= gain.high <= 1
    again = gain_of(rng.sample(found, len(found)))
    assert (again.low is None) == (gain.low is None)
    if gain.low is not None:
        assert (again.low, again.high) == pytest.approx((gain.low, gain.high), abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(st.lists(rows, max_size=4))
def test_a_mean_of_gains_lies_in_its_interval(groups):
    mean = average_gains([gain_of(group) for group in groups])
    if mean.value is not None:
        assert -1 <= mean.low <= mean.value + 1e-12
        assert mean.value - 1e-12 <= mean.high <= 1
