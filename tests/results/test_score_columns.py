"""Columns of scores give the same numbers as lists of scores."""

from random import Random

import pytest

from parley.results.score_columns import ScoreColumns
from parley.rules.pool import Seat
from parley.statistics.block_means import BlockNames
from parley.statistics.estimates import Observation, tally_cells
from parley.store import Score


def make_scores(seed: int) -> list[Score]:
    """Matches of four seats, of which one model may hold several; some scores are missing."""
    rng, found = Random(seed), []
    for match in range(1, 60):
        block = str(rng.randrange(12))
        for number in range(1, 5):
            alias, idle = rng.choice("abc"), rng.random() < 0.1
            for metric in ("points", "judge"):
                value = None if rng.random() < 0.1 else rng.random()
                seat = Seat("players", number)
                found.append(Score(match, block, seat, alias, metric, value, idle))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_tallies_equal_those_of_observations(seed) -> None:
    scores = make_scores(seed)
    columns = ScoreColumns.read(scores, BlockNames())
    counted = columns.with_seats(lambda each: not each.idle)
    rows = [
        Observation(each.block, each.match, each.alias, each.seat.role, each.metric, each.value)
        for each in scores
        if not each.idle
    ]
    assert list(counted.observations()) == rows
    assert list(columns.scores()) == scores
    wanted, found = tally_cells(rows), counted.tally_cells()
    assert found.keys() == wanted.keys()
    for key, tally in wanted.items():
        assert found[key].means == pytest.approx(tally.means, rel=1e-14)
        assert found[key][1:] == tally[1:]


def test_scores_of_some_blocks() -> None:
    scores = make_scores(1)
    columns = ScoreColumns.read(scores, BlockNames()).in_blocks(["3", "5", "unknown"])
    assert list(columns.scores()) == [each for each in scores if each.block in ("3", "5")]
