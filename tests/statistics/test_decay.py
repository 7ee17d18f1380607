"""Comprehension, confusion and AGE, by hand and by property."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from parley.tasks.word_guessing.scoring import (
    age,
    comprehension,
    confusion,
    is_counted,
    reached_third_round,
    score_players,
    went_on_late,
)

NEVER = st.sampled_from(["zero", "l+1"])


@pytest.mark.parametrize(
    ("first", "length", "never", "value"),
    [
        (1, 20, "zero", 1.0),  # 1 / log2(2)
        (3, 20, "zero", 0.5),  # 1 / log2(4)
        (7, 20, "zero", 1 / 3),
        (15, 20, "zero", 0.25),
        (1, 1, "zero", 1.0),
        (None, 20, "zero", 0.0),
        (None, 14, "l+1", 0.25),  # as if in turn 15
        (7, 20, "l+1", 1 / 3),
    ],
)
def test_comprehension_by_hand(first, length, never, value):
    assert comprehension(first, length, never) == pytest.approx(value)


@pytest.mark.parametrize(
    ("firsts", "length", "value"),
    [
        ([1], 20, 0.0),
        ([8], 63, 0.5),  # log 8 to the base 64
        ([8, 2], 15, 0.25),  # the earliest: log 2 to the base 16
        ([None, 4], 15, 0.5),
        ([None], 20, 1.0),
        ([None, None], 1, 1.0),
        ([1, None], 1, 0.0),
        ([20], 20, math.log(20) / math.log(21)),
    ],
)
def test_confusion_by_hand(firsts, length, value):
    assert confusion(firsts, length) == pytest.approx(value)


def test_age_by_hand():
    assert age(0.5, 0.25) == pytest.approx(1 / 3)
    assert age(1, 1) == 1
    assert age(0, 1) == age(1, 0) == age(0, 0) == 0


def test_two_groups_of_one():
    found = score_players({"p": 3, "q": 4}, {"p": "a", "q": "b"}, 15, "zero")
    assert found["p"] == pytest.approx({"comprehension": 0.5, "confusion": 0.5, "age": 0.5})
    q = {"comprehension": 1 / math.log2(5), "confusion": math.log(3) / math.log(16)}
    assert found["q"] == pytest.approx(
        {**q, "age": 2 / (1 / q["comprehension"] + 1 / q["confusion"])}
    )


def test_two_groups_of_two_share_their_confusion_but_not_their_comprehension():
    found = score_players(
        {"p": 1, "q": 7, "r": None, "s": 3}, {"p": "a", "q": "a", "r": "b", "s": "b"}, 15, "zero"
    )
    assert [found[who]["comprehension"] for who in "pqrs"] == pytest.approx([1, 1 / 3, 0, 0.5])
    assert [found[who]["confusion"] for who in "pqrs"] == pytest.approx(
        [math.log(3, 16), math.log(3, 16), 0, 0]
    )
    assert [found[who]["age"] for who in "rs"] == [0, 0]


def test_all_in_the_first_round_and_nobody_ever():
    groups = {"p": "a", "q": "b"}
    at_once = score_players({"p": 1, "q": 1}, groups, 5, "zero")  # rounds as the unit
    assert at_once["p"] == at_once["q"] == {"comprehension": 1, "confusion": 0, "age": 0}
    nobody = score_players({"p": None, "q": None}, groups, 20, "zero")
    assert nobody["p"] == {"comprehension": 0, "confusion": 1, "age": 0}
    late = score_players({"p": None, "q": None}, groups, 14, "l+1")
    assert late["p"] == pytest.approx({"comprehension": 0.25, "confusion": 1, "age": 0.4})


@pytest.mark.parametrize(
    ("both", "rounds", "third", "late", "successful", "successful_late"),
    [
        (1, 5, True, False, True, False),  # guessed at once, and played on: the readings differ
        (2, 5, True, False, True, False),
        (3, 5, True, True, True, True),
        (5, 5, True, True, True, True),
        (None, 5, True, True, False, False),
        (None, 2, False, False, False, False),
        (2, 2, False, False, False, False),
        (3, 3, True, True, True, True),
    ],
)
def test_beyond_two_rounds_has_two_readings(both, rounds, third, late, successful, successful_late):
    assert (reached_third_round(rounds), went_on_late(both, rounds)) == (third, late)
    assert is_counted("successful", both, rounds) is successful
    assert is_counted("successful_late", both, rounds) is successful_late
    assert is_counted("all", both, rounds)


@pytest.mark.parametrize(("first", "length"), [(0, 5), (6, 5), (1, 0), (-1, 5)])
def test_what_cannot_be_is_refused(first, length):
    with pytest.raises(ValueError, match="first correct guess"):
        comprehension(first, length)
    with pytest.raises(ValueError, match="first correct guess"):
        confusion([first], length)


@st.composite
def matches(draw):
    half = draw(st.integers(1, 4))
    length = draw(st.integers(1, 60))
    seats = [f"s{n}" for n in range(2 * half)]
    firsts = {seat: draw(st.none() | st.integers(1, length)) for seat in seats}
    return firsts, {seat: "ab"[n < half] for n, seat in enumerate(seats)}, length


@given(matches(), NEVER)
def test_all_lie_from_0_to_1_and_age_between_the_two(match, never):
    for found in score_players(*match, never).values():
        low, high = sorted((found["comprehension"], found["confusion"]))
        assert 0 <= low <= high <= 1
        assert found["age"] == 0 if low == 0 else low - 1e-12 <= found["age"] <= high + 1e-12


@given(st.integers(1, 60), st.data(), NEVER)
def test_earlier_is_never_worse_for_who_guesses_and_never_better_for_whose_word_it_is(
    length, data, never
):
    steps = st.none() | st.integers(1, length)
    early, late = data.draw(steps), data.draw(steps)
    assume((early or length + 1) < (late or length + 1))
    assert comprehension(early, length, never) > comprehension(late, length, never)
    assert confusion([early], length) < confusion([late], length)


@given(matches(), NEVER, st.randoms())
def test_renaming_seats_renames_the_scores(match, never, rng):
    firsts, groups, length = match
    names = list(firsts)
    other = dict(zip(names, rng.sample(names, len(names)), strict=True))
    swapped = {"a": "b", "b": "a"}
    renamed = score_players(
        {other[seat]: first for seat, first in firsts.items()},
        {other[seat]: swapped[group] for seat, group in groups.items()},
        length,
        never,
    )
    assert {seat: renamed[other[seat]] for seat in names} == score_players(
        firsts, groups, length, never
    )
