"""Columns of scores give the same numbers as lists of scores."""

from random import Random
from statistics import fmean

import pytest

from parley.results.score_columns import NO_VALUE, ScoreColumns
from parley.rules.pool import Seat
from parley.statistics.block_means import BlockNames
from parley.statistics.estimates import Observation, tally_cells
from parley.store import Score

METRICS = ("points", "judge")


def make_scores(seed: int) -> list[Score]:
    """Matches of four seats, of which one model may hold several; some scores are missing."""
    rng, found = Random(seed), []
    for match in range(1, 60):
        block = str(rng.randrange(12))
        for number in range(1, 5):
            alias, unscored = rng.choice("abc"), rng.random() < 0.1
            for metric in METRICS:
                value = None if rng.random() < 0.1 else rng.random()
                seat = Seat("players", number)
                found.append(Score(match, block, seat, alias, metric, value, unscored))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_tallies_equal_those_of_observations(seed) -> None:
    scores = make_scores(seed)
    columns = ScoreColumns.read(scores, BlockNames())
    counted = columns.with_seats(lambda each: not each.unscored)
    rows = [
        Observation(each.block, each.match, each.alias, each.seat.role, each.metric, each.value)
        for each in scores
        if not each.unscored
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


@pytest.mark.parametrize("seed", range(20))
def test_metrics_are_paired_by_match_and_model(seed) -> None:
    """If a model has several seats in a match, the last one counts."""
    scores = make_scores(seed)
    if seed % 2:  # single scores, also of the last matches, are not there at all
        scores = [each for each in scores if Random(f"{seed} {each}").random() < 0.5]
    columns = ScoreColumns.read(scores, BlockNames())
    pairs: dict[tuple[int, str], dict[str, float | None]] = {}
    blocks: dict[tuple[int, str], str] = {}
    sums: dict[str, dict[str, list[float]]] = {}
    for each in scores:
        pairs.setdefault((each.match, each.alias), {})[each.metric] = each.value
        blocks[each.match, each.alias] = each.block
        if each.value is not None:
            of = sums.setdefault(each.alias, {})
            of.setdefault(each.metric, []).append(each.value)
    found = columns.pair_metrics("players", "points", "judge")
    assert found is not None
    rows = zip(found.block.tolist(), found.first.tolist(), found.second.tolist(), strict=True)
    given = [(columns.blocks.names[block], *values) for block, *values in rows]
    wanted = [
        (blocks[key], *(NO_VALUE if pair.get(name) is None else pair[name] for name in METRICS))
        for key, pair in pairs.items()
    ]
    assert sorted(map(repr, given)) == sorted(map(repr, wanted))  # NaN does not equal itself
    means = sorted(tuple(fmean(of[name]) for name in METRICS) for of in sums.values())
    for mean, known in zip(sorted(found.means), means, strict=True):
        assert mean == pytest.approx(known, abs=1e-14)


def test_metrics_that_no_match_has_together_are_not_paired() -> None:
    scores = [each for each in make_scores(1) if (each.metric == "judge") == (each.match % 2 == 0)]
    columns = ScoreColumns.read(scores, BlockNames())
    assert columns.pair_metrics("players", "points", "judge") is None
    assert columns.pair_metrics("others", "points", "judge") is None
    assert ScoreColumns.read([], BlockNames()).pair_metrics("players", "points", "judge") is None
