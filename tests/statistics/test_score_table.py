"""The table of scores: what is computed from it, against the same computed row by row."""

import math
from random import Random
from statistics import fmean

import pytest

from parley.results.parts.judges import pair_metrics
from parley.statistics.estimates import match_means, tally_cells
from parley.statistics.score_table import Observation, ScoredSeat, ScoreTable

METRICS = ("points", "judge")


def make_scores(seed: int) -> list[Observation]:
    """Matches of four seats, of which one model may hold several; some scores are missing."""
    rng, found = Random(seed), []
    for match in range(1, 60):
        block = str(rng.randrange(12))
        for position in range(1, 5):
            alias = rng.choice("abc")
            for metric in METRICS:
                value = None if rng.random() < 0.1 else rng.random()
                found.append(Observation(block, match, alias, "players", metric, value, position))
    return found


def test_a_table_has_the_rows_that_it_was_made_of() -> None:
    scores = make_scores(1)
    table = ScoreTable.of(scores)
    assert len(table) == len(scores)
    assert list(table) == list(table) == scores
    assert list(ScoreTable.of([])) == []
    assert tally_cells(ScoreTable.of([])) == {}


@pytest.mark.parametrize("seed", range(20))
def test_tallies_are_means_over_matches_of_means_over_seats(seed) -> None:
    scores = make_scores(seed)
    if seed % 2:  # the order of rows does not matter
        Random(seed).shuffle(scores)
    cells: dict[tuple[str, str, str], dict[str, dict[int, list[float]]]] = {}
    played: dict[tuple[str, str, str], set[int]] = {}
    missing: dict[tuple[str, str, str], int] = {}
    for each in scores:
        key = (each.metric, each.role, each.alias)
        played.setdefault(key, set()).add(each.match)
        missing[key] = missing.get(key, 0) + (each.value is None)
        if each.value is not None:
            by_match = cells.setdefault(key, {}).setdefault(each.block, {})
            by_match.setdefault(each.match, []).append(each.value)
    table = ScoreTable.of(scores)
    found, by_match = tally_cells(table), match_means(table)
    assert found.keys() == by_match.keys() == cells.keys()
    for key, (means, matches, gone) in found.items():
        wanted = {
            block: [fmean(known[match]) for match in sorted(known)]
            for block, known in cells[key].items()
        }
        assert by_match[key] == {
            block: pytest.approx(known, rel=1e-14) for block, known in wanted.items()
        }
        assert means == pytest.approx({block: fmean(known) for block, known in wanted.items()})
        assert (matches, gone) == (len(played[key]), missing[key])


def test_scores_without_a_value_are_counted() -> None:
    rows = [Observation("x", match, "a", "r", "m", None) for match in (1, 1, 2)]
    assert tally_cells(ScoreTable.of(rows)) == {("m", "r", "a"): ({}, 2, 3)}


def test_scores_of_some_blocks() -> None:
    scores = make_scores(1)
    table = ScoreTable.of(scores).in_blocks(["3", "5", "unknown"])
    assert list(table) == [each for each in scores if each.block in ("3", "5")]


def test_scores_of_some_seats_and_seats_without_values() -> None:
    scores = make_scores(2)
    table = ScoreTable.of(scores)
    own = table.with_seats(lambda seat: seat.alias == "a")
    assert list(own) == [each for each in scores if each.alias == "a"]
    assert {seat.alias for seat in own.used_seats()} == {"a"}
    emptied = table.without_values(lambda seat: seat.position == 2)
    assert list(emptied) == [
        each._replace(value=None) if each.position == 2 else each for each in scores
    ]
    assert list(table) == scores


def test_blocks_keep_the_places_that_are_given() -> None:
    seat = ScoredSeat("a", "r", "m")
    table = ScoreTable.read([(1, "z", seat, 1.0), (2, "y", seat, 2.0)], ["x", "y"])
    assert table.blocks == ["x", "y", "z"]
    assert table.rows["block"].tolist() == [2, 1]


@pytest.mark.parametrize("seed", range(20))
def test_metrics_are_paired_by_match_and_model(seed) -> None:
    """If a model has several seats in a match, the last one counts."""
    scores = make_scores(seed)
    if seed % 2:  # single scores, also of the last matches, are not there at all
        scores = [each for each in scores if Random(f"{seed} {each}").random() < 0.5]
    pairs: dict[tuple[int, str], dict[str, float | None]] = {}
    blocks: dict[tuple[int, str], str] = {}
    sums: dict[str, dict[str, list[float]]] = {}
    for each in scores:
        pairs.setdefault((each.match, each.alias), {})[each.metric] = each.value
        blocks[each.match, each.alias] = each.block
        if each.value is not None:
            of = sums.setdefault(each.alias, {})
            of.setdefault(each.metric, []).append(each.value)
    table = ScoreTable.of(scores)
    found = pair_metrics(table, "players", "points", "judge")
    assert found is not None
    rows = zip(found.block.tolist(), found.first.tolist(), found.second.tolist(), strict=True)
    given = [(table.blocks[block], *values) for block, *values in rows]
    wanted = [
        (blocks[key], *(math.nan if pair.get(name) is None else pair[name] for name in METRICS))
        for key, pair in pairs.items()
    ]
    assert sorted(map(repr, given)) == sorted(map(repr, wanted))  # NaN does not equal itself
    means = sorted(tuple(fmean(of[name]) for name in METRICS) for of in sums.values())
    for mean, known in zip(sorted(found.means), means, strict=True):
        assert mean == pytest.approx(known, abs=1e-14)


def test_metrics_that_no_match_has_together_are_not_paired() -> None:
    scores = [each for each in make_scores(1) if (each.metric == "judge") == (each.match % 2 == 0)]
    table = ScoreTable.of(scores)
    assert pair_metrics(table, "players", "points", "judge") is None
    assert pair_metrics(table, "others", "points", "judge") is None
    assert pair_metrics(ScoreTable.of([]), "players", "points", "judge") is None
