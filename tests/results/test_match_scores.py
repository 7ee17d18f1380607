"""The order of seats in a match: one for its headline and its table."""

import pytest

from parley.results.match_list import rank_scored_seats
from parley.results.match_scores import describe_scores
from parley.rules.pool import Seat
from parley.rules.task import Metric
from parley.store.types import MatchRow, WholeMatch

SEATS = [Seat("player", 1), Seat("player", 2), Seat("player", 3)]
JUDGED = Metric("grade", 0, 10, 1, judged=True)


def play(*scores):
    """A match of three players, of whom the last one is not scored."""
    match = MatchRow(
        *(1, "1", None, 1, 0),
        seats=dict(zip(SEATS, "abc", strict=True)),
        unscored=frozenset(SEATS[2:]),
        state="done",
        reason=None,
        rounds=1,
        began=None,
        ended=None,
    )
    return WholeMatch(match, [], [], {}, dict(zip(SEATS, scores, strict=True)), [], [])


def find_orders(whole, metrics):
    """The aliases in the order of the headline, and in that of the table."""
    scored = rank_scored_seats(whole.match, {"player": "contestant"}, metrics, whole.scores)
    table, _ = describe_scores(whole, metrics, [each.seat for each in scored])
    return [each.alias for each in scored], [each.alias for each in table.seats]


def test_the_table_has_the_order_of_the_headline():
    own = Metric("points", 0, 10, 1, roles=("player",))  # a role is ranked by a metric of its own
    whole = play({"grade": 9, "points": 1}, {"grade": 3, "points": 8}, {"grade": 10, "points": 10})
    assert find_orders(whole, [JUDGED, own]) == (["b", "a"], ["b", "a", "c"])


@pytest.mark.parametrize(("better", "first"), [("higher", "b"), ("lower", "a")])
def test_scores_in_a_very_wide_range_still_have_an_order(better, first):
    metric = Metric("profit", -1e300, 1e300, 1, better=better)
    headline, table = find_orders(play({"profit": 1}, {"profit": 2}, {}), [metric])
    assert headline[0] == table[0] == first
