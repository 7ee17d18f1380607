"""Ratings against published and independently computed values, by their symmetries and by
simulation."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.errors import UsageError
from parley.statistics.bradley_terry import (
    AbilityEstimate,
    Game,
    complete_games,
    fit_ratings,
    is_win_loss,
)
from parley.statistics.role_tables import Meeting
from parley.statistics.student_t import t_quantile

# Games of the 1987 season, American League East (Agresti 2002, table 10.10): won-lost of the home
# team in the row.
TEAMS = ["Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore"]
HOME = """
    -   4-3 4-2 4-3 6-1 4-2 6-0
    3-3 -   4-2 4-3 6-0 6-1 4-3
    2-5 4-3 -   2-4 4-3 4-2 6-0
    3-3 5-1 2-5 -   4-3 4-2 6-1
    5-1 2-5 3-3 4-2 -   5-2 6-0
    2-5 3-3 3-4 4-3 4-2 -   2-4
    2-5 1-5 1-6 2-4 1-6 3-4 -
"""


def season(copies=1):
    """Every game as a block of its own, held so many times."""
    found = []
    for home, line in zip(TEAMS, HOME.strip().splitlines(), strict=True):
        for away, result in zip(TEAMS, line.split(), strict=True):
            if home != away:
                won, lost = map(int, result.split("-"))
                for n in range(won + lost):
                    found += [Game(f"{home} {away} {n}", home, away, float(n < won))] * copies
    return found


def logits(found):
    return {rating.alias: rating.logit.value for rating in found.models}


def test_baseball_is_as_published():
    """Agresti's table 10.11: shares of exp(ability) that sum to one, and a home advantage of
    0.302."""
    found = fit_ratings(season(), prior=1e-6)
    assert (found.matches, found.blocks, found.groups, found.comparable) == (273, 273, 1, True)
    assert [rating.alias for rating in found.models] == TEAMS
    strength = [math.exp(rating.logit.value) for rating in found.models]
    assert [round(each / sum(strength), 3) for each in strength] == [
        0.220,
        0.190,
        0.164,
        0.157,
        0.137,
        0.088,
        0.044,
    ]
    assert round(found.first_mover.value, 3) == 0.302
    assert sum(logits(found).values()) == pytest.approx(0, abs=1e-12)


def test_values_and_clustered_errors_are_those_of_another_program():
    """A generalised linear model in statsmodels, covariance clustered by block, times blocks /
    (blocks − 1)."""
    found = fit_ratings(season(copies=4), prior=1e-6)
    values = [0.540718, 0.396520, 0.248273, 0.202503, 0.064965, -0.374143, -1.078837, 0.302261]
    errors = [0.208901, 0.210002, 0.200992, 0.209646, 0.191489, 0.215896, 0.235383, 0.131397]
    estimates = [*(rating.logit for rating in found.models), found.first_mover]
    blocks = [*(rating.blocks for rating in found.models), found.blocks]
    assert [estimate.value for estimate in estimates] == pytest.approx(values, abs=2e-6)
    widths = [
        (one.high - one.low) / 2 / t_quantile(0.975, n - 1)
        for one, n in zip(estimates, blocks, strict=True)
    ]
    assert widths == pytest.approx(errors, abs=2e-6)


def test_the_prior_is_weak_and_elos_scale_is_the_usual_one():
    bare, held = fit_ratings(season(), prior=1e-6), fit_ratings(season())
    assert max(abs(value - logits(held)[alias]) for alias, value in logits(bare).items()) < 0.01
    best, last = held.models[0], held.models[-1]
    assert sum(rating.elo.value for rating in held.models) / 7 == pytest.approx(1500)
    odds = math.exp(best.logit.value - last.logit.value)
    assert 10 ** ((best.elo.value - last.elo.value) / 400) == pytest.approx(odds)
    assert best.elo.low < best.elo.value < best.elo.high


ALIASES = "abcd"
played = st.lists(
    st.builds(
        Game,
        st.sampled_from("xyz"),
        st.sampled_from(ALIASES),
        st.sampled_from(ALIASES),
        st.sampled_from([0.0, 0.5, 1.0]),
    ),
    max_size=40,
)


def ends(found):
    """All numbers of a result by alias."""
    return {rating.alias: rating.logit for rating in found.models} | {
        "first mover": found.first_mover
    }


def near(one, other):
    assert [end is None for end in one] == [end is None for end in other]
    known = [end for end in other if end is not None]
    assert [end for end in one if end is not None] == pytest.approx(known, rel=1e-6, abs=1e-6)


@given(played, st.permutations(ALIASES), st.randoms(use_true_random=False))
def test_names_and_order_do_not_matter(rows, names, rng):
    new = dict(zip(ALIASES, names, strict=True))
    renamed = [
        Game(game.block * 2, new[game.first], new[game.second], game.outcome) for game in rows
    ]
    rng.shuffle(renamed)
    before, after = ends(fit_ratings(rows)), ends(fit_ratings(renamed))
    for alias, estimate in before.items():
        near(after[new.get(alias, alias)], estimate)


@given(played)
def test_swapped_outcomes_negate_everything_and_swapped_seats_only_the_first_mover(rows):
    before = ends(fit_ratings(rows))
    outcomes = ends(fit_ratings([game._replace(outcome=1 - game.outcome) for game in rows]))
    seats = ends(
        fit_ratings([Game(game.block, game.second, game.first, 1 - game.outcome) for game in rows])
    )
    for alias, (value, low, high) in before.items():
        opposite = AbilityEstimate(*(None if end is None else -end for end in (value, high, low)))
        near(outcomes[alias], opposite)
        near(seats[alias], opposite if alias == "first mover" else before[alias])


@given(played, st.sampled_from(ALIASES))
def test_everything_is_finite_even_for_who_wins_always(rows, hero):
    won = [
        game._replace(
            outcome=1.0 if game.first == hero else 0.0 if game.second == hero else game.outcome
        )
        for game in rows
    ]
    for value, low, high in ends(fit_ratings(won)).values():
        assert value is None or math.isfinite(value)
        assert low is None or low < value < high


def all_wins(blocks):
    pairs = [(one, other) for one in ALIASES for other in ALIASES if one != other]
    return [
        Game(
            str(block), one, other, 1.0 if one == "a" else 0.0 if other == "a" else float(block % 2)
        )
        for block in range(blocks)
        for one, other in pairs
    ]


def test_who_wins_everything_is_surely_best_by_an_unsure_amount():
    found = fit_ratings(all_wins(30))
    best, *others = found.models
    assert best.alias == "a"
    assert best.logit.low > max(rating.logit.high for rating in others)
    assert best.logit.high - best.logit.low > 2
    assert fit_ratings(all_wins(120)).models[0].logit.value > best.logit.value
    assert [rating.logit.value for rating in others] == pytest.approx([-best.logit.value / 3] * 3)


def test_models_that_never_met_are_not_compared():
    rows = [
        Game(str(block), one, other, float(block % 3 > 0))
        for block in range(9)
        for one, other in ("ab", "ba", "cb", "pq")
    ]
    found = fit_ratings([*rows, Game("0", "alone", "alone", 1)])
    assert (found.groups, found.comparable) == (3, False)
    assert {rating.alias: rating.group for rating in found.models} == {
        "a": 1,
        "b": 1,
        "c": 1,
        "p": 2,
        "q": 2,
        "alone": 3,
    }
    assert sum(logits(found)[alias] for alias in "abc") == pytest.approx(0, abs=1e-9)
    assert logits(found)["p"] == pytest.approx(-logits(found)["q"])
    assert found.models[-1].logit == found.models[-1].elo == (None, None, None)


def test_an_order_that_was_never_swapped_leaves_ability_and_order_undecided():
    found = fit_ratings([Game(str(block), "a", "b", float(block % 10 > 0)) for block in range(100)])
    for estimate in ends(found).values():
        assert estimate.low < 0 < estimate.high


def test_draws_are_half_a_win_each():
    drawn = [Game(str(n), "a", "b", 1 if n % 4 else 0.5) for n in range(16)]
    halves = [Game(str(n), "a", "b", 1 if n % 8 else 0) for n in range(16)]
    assert sum(game.outcome for game in drawn) == sum(game.outcome for game in halves) == 14
    assert logits(fit_ratings(drawn)) == pytest.approx(logits(fit_ratings(halves)))


def test_little_or_nothing_played():
    assert fit_ratings([]).models == ()
    found = fit_ratings([Game("x", "a", "b", 1), Game("x", "b", "a", 0)])
    assert found.models[0].alias == "a"
    assert (found.models[0].logit.low, found.first_mover.high) == (None, None)


def test_what_cannot_be_rated_is_refused():
    with pytest.raises(UsageError, match=r"from 0 to 1, not 3 .block x"):
        fit_ratings([Game("x", "a", "b", 3)])
    with pytest.raises(UsageError, match="above 0"):
        fit_ratings([Game("x", "a", "b", 1)], prior=0)
    with pytest.raises(UsageError, match="the prior is too weak"):
        fit_ratings([Game("x", "a", "b", 1)], prior=1e-15)


def met(*values):
    return [Meeting("x", n, "m", "a", "b", *pair) for n, pair in enumerate(values)]


def test_a_win_loss_task_is_known_by_its_matches():
    assert is_win_loss(met((1, 0), (0.5, 0.5), (0, 1), (None, None), (None, 1)), (0, 1))
    assert not is_win_loss(met((1, 0)), (0, 10))
    assert not is_win_loss(met((1, 0), (1, 1)), (0, 1))
    assert not is_win_loss(met((0.3, 0.7)), (0, 1))  # a shared pot is not won
    assert not is_win_loss(met((None, None)), (0, 1))
    assert complete_games(met((1, 0), (None, None), (0.5, 0.5))) == [
        Game("x", "a", "b", 1),
        Game("x", "a", "b", 0.5),
    ]


TRUTH, AHEAD = {"a": 0.9, "b": 0.3, "c": -0.2, "d": -1.0}, 0.4


def covered(runs, blocks, rng, copies=3, shared=0.9):
    """How often intervals hold the truth (abilities, first mover) when copies of a match mostly
    share their luck."""
    abilities = advantage = 0
    for _ in range(runs):
        rows = []
        for block in range(blocks):
            for one, other in ((one, other) for one in TRUTH for other in TRUTH if one != other):
                chance, luck = 1 / (1 + math.exp(TRUTH[other] - TRUTH[one] - AHEAD)), rng.random()
                draws = [luck if rng.random() < shared else rng.random() for _ in range(copies)]
                rows += [Game(str(block), one, other, float(draw < chance)) for draw in draws]
        found = fit_ratings(rows)
        abilities += sum(
            rating.logit.low <= TRUTH[rating.alias] <= rating.logit.high for rating in found.models
        )
        advantage += found.first_mover.low <= AHEAD <= found.first_mover.high
    return abilities / runs / len(TRUTH), advantage / runs


def test_intervals_cover_under_clustering():
    abilities, advantage = covered(250, 12, Random(1))
    assert 0.92 <= abilities <= 0.975
    assert 0.91 <= advantage <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [10, 30])
def test_intervals_cover_under_clustering_over_many_runs(blocks):
    abilities, advantage = covered(1500, blocks, Random(blocks))
    assert 0.94 <= abilities <= 0.96
    assert 0.94 <= advantage <= 0.965


@pytest.mark.slow
def test_intervals_are_careful_where_nothing_clusters():
    abilities, advantage = covered(1500, 20, Random(3), copies=1)
    assert 0.945 <= abilities <= 0.975
    assert 0.945 <= advantage <= 0.985
