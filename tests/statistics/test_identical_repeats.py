"""Repeats that are identical word for word, and how often equals are ranked apart by mistake."""

from itertools import combinations
from random import Random

import pytest

from parley.statistics.estimates import (
    block_means,
    compare_exactly,
    compare_models,
    compute_cells,
    rank_exactly,
    rank_intervals,
    tally_cells,
)
from parley.statistics.identical_repeats import (
    DigestedReply,
    Line,
    PlayedMatch,
    RepeatTracker,
    collect_exchanges,
    digest_exchanges,
    group_identical_blocks,
    is_design_repeated,
)
from parley.statistics.score_table import Observation, ScoreTable

SEATS = {"players.1": ("players", "a"), "players.2": ("players", "b")}


def lines(first="yes", mark="0123456789ab", seats=("players.1", "players.2")):
    one, two = seats
    return [
        Line(None, (one, two), "The rules."),
        Line(one, (), first),
        Line(None, (two,), f"[{mark}: Player 1 said, which is material]\n{first}\n[/{mark}]"),
        Line(two, (), "no"),
    ]


def exchanges(**words):
    return collect_exchanges(lines(**words), SEATS)


def test_marks_around_quotations_do_not_make_prompts_differ():
    assert exchanges() == exchanges(mark="ba9876543210")
    assert exchanges() != exchanges(first="never")


def test_three_identical_plays_are_enough_and_one_other_reply_is_too_much():
    tracker = RepeatTracker()
    for repeat in (1, 2):
        tracker.add(str(repeat), repeat, exchanges())
        assert not tracker.is_deterministic
    tracker.add("3", 3, exchanges())
    assert tracker.is_deterministic
    assert tracker.most_plays == 3
    tracker.add("4", 4, exchanges(first="perhaps"))
    assert tracker.differs
    assert not tracker.is_deterministic


def test_matches_of_one_block_are_no_repeats_of_each_other():
    tracker = RepeatTracker()
    for _ in range(5):
        tracker.add("1", 1, exchanges())
    assert tracker.most_plays == 1


def test_who_sits_where_does_not_matter_where_nobody_is_told():
    def told(first, second):
        seats = {"players.1": ("players", first), "players.2": ("players", second)}
        both = ("players.1", "players.2")
        found = [Line(None, both, "Choose."), *(Line(key, (), seats[key][1]) for key in both)]
        return collect_exchanges(found, seats)

    assert sorted(told("a", "b")) == sorted(told("b", "a"))


def played(block, reply, value=1.0, design="a first"):
    exchange = DigestedReply("r", "a", b"prompt", reply.encode())
    return PlayedMatch(block, design, digest_exchanges([exchange]), [("r", "a", "m", value)])


def test_blocks_are_grouped_by_words_and_scores():
    found = group_identical_blocks(
        [played("1", "x"), played("2", "y"), played("3", "x"), played("4", "x", 2.0)]
    )
    assert found == {"1": "1", "2": "2", "3": "1", "4": "4"}


def is_repeated(*blocks):
    """Blocks are given by what the plan wanted and what was said."""
    matches = [played(str(at), said, design=design) for at, (design, said) in enumerate(blocks)]
    return is_design_repeated(matches, group_identical_blocks(matches))


def test_only_a_design_that_repeats_identically_is_exact():
    one, other = ("a first", "x"), ("b first", "y")
    assert is_repeated(one, one)
    assert is_repeated(one, other, one, other)
    assert not is_repeated(one, other)  # neither was repeated
    assert not is_repeated(one, other, one, other, one)  # a is first more often
    chance = ("a first", "y")
    assert not is_repeated(one, one, chance, chance)  # the plan wanted the same of all four


def test_a_block_that_broke_off_repeats_the_one_it_belongs_to():
    whole = [[played(name, "x"), played(name, "y", design="b first")] for name in "12"]
    matches = [*whole[0], *whole[1], played("3", "y", design="b first")]
    assert is_design_repeated(matches, group_identical_blocks(matches))


def test_a_block_that_broke_off_belongs_to_the_whole_one_that_holds_its_matches():
    whole = [played("1", "x"), played("1", "y")]
    assert group_identical_blocks([*whole, played("2", "y")]) == {"1": "1", "2": "1"}
    assert group_identical_blocks([*whole, played("2", "z")])["2"] == "2"


def seen(alias, values):
    return [
        Observation(str(block), block, alias, "r", "m", value) for block, value in enumerate(values)
    ]


def test_exact_scores_are_ranked_by_their_value():
    table = block_means(ScoreTable.of([*seen("a", [1]), *seen("b", [3]), *seen("c", [1 + 1e-13])]))
    for lower, wanted in ((frozenset(), (2, 1, 2)), (frozenset({"m"}), (1, 3, 1))):
        ranks = {rank.alias: rank.low for rank in rank_exactly(table, lower, {"m": (0, 10)})}
        assert tuple(ranks[alias] for alias in "abc") == wanted


SAME = {str(block): "0" if block < 28 else "28" for block in range(30)}  # 28 of one, 2 of another


def test_means_are_over_all_blocks_and_identical_ones_are_one_observation():
    rows = [*seen("a", [8] * 28 + [2] * 2), *seen("b", [5] * 28 + [4] * 2)]
    bounds, table = {"m": (-1000, 1000)}, block_means(ScoreTable.of(rows))
    first, _ = compute_cells(tally_cells(ScoreTable.of(rows)), bounds, same=SAME)
    assert first.mean == pytest.approx((28 * 8 + 2 * 2) / 30)
    assert (first.blocks, first.matches) == (2, 30)
    # By hand: the values 8 and 2 have sd √18, the weights 28 and 2 an error of √788 / 30 of it.
    half = 12.7062 * 18**0.5 * 788**0.5 / 30
    assert first.interval[:2] == pytest.approx((7.6 - half, 7.6 + half), rel=1e-4)
    (exact,) = compare_exactly(table, SAME)
    (pair,) = compare_models(table, bounds, same=SAME)
    assert exact.difference == pair.difference == pytest.approx((28 * 3 + 2 * -2) / 30)
    assert exact.blocks == pair.blocks == 2
    ranks = {rank.alias: rank.low for rank in rank_exactly(table, frozenset(), bounds)}
    assert ranks == {"a": 1, "b": 2}  # by unweighted means 5 and 4.5 as well; see below
    turned = block_means(
        ScoreTable.of([*seen("a", [4] * 28 + [9] * 2), *seen("b", [5] * 28 + [0] * 2)])
    )
    ranks = {rank.alias: rank.low for rank in rank_exactly(turned, frozenset(), bounds)}
    assert ranks == {"a": 2, "b": 1}  # 4.33 and 4.67, although 6.5 and 2.5 without weights


@pytest.mark.parametrize("values", [[1, 2, 6, 7], [0, 0, 0, 10], [9, 10, 10, 10], [5, 5, 5, 5]])
@pytest.mark.parametrize("method", ["block", "bootstrap"])
def test_repeats_of_identical_blocks_do_not_make_an_interval_narrower(values, method):
    def widths(times):
        rows = seen("a", [value for value in values for _ in range(times)])
        same = {row.block: str(int(row.block) // times * times) for row in rows}
        (cell,) = compute_cells(tally_cells(ScoreTable.of(rows)), {"m": (0, 10)}, method, same)
        return cell.interval

    assert widths(5)[:2] == pytest.approx(widths(1)[:2])


def difference_of(ours, theirs, bounds=(0, 10)):
    (pair,) = compare_models(
        block_means(ScoreTable.of([*seen("a", ours), *seen("b", theirs)])), {"m": bounds}
    )
    return pair


def test_signs_decide_where_student_cannot():
    """A gap of a tenth of a coin in a hundred, in all of ten blocks, is a difference."""
    small = difference_of([50.1] * 10, [50.0] * 10, (0, 100))
    assert small.p == pytest.approx(2 * 0.5**10)
    assert 0 <= small.low < small.high
    outlier = difference_of([1.1] * 29 + [9.9], [1.0] * 30, (0, 10))
    assert outlier.p == pytest.approx(2 * 0.5**30)
    assert outlier.low >= 0


def test_signs_do_not_decide_for_few_blocks_or_without_a_difference():
    assert difference_of([6, 6, 6, 6, 6], [5, 5, 5, 5, 5]).p == pytest.approx(2 * 0.5**5)
    assert difference_of([5] * 30, [5] * 30).p == 1


KINDS = {
    "normal": lambda rng: min(10.0, max(0.0, rng.gauss(5, 1))),
    "judged": lambda rng: float(min(10, max(1, round(rng.gauss(8, 0.9))))),
    "won or lost": lambda rng: 10.0 * (rng.random() < 0.5),
    "rarely lost": lambda rng: 10.0 * (rng.random() < 0.9),
    "skewed": lambda rng: min(10.0, rng.expovariate(1)),
    "with outliers": lambda rng: min(10.0, max(0.0, 5 + rng.gauss(0, 0.3) / (0.1 + rng.random()))),
}


def false_rankings(kind, blocks, models, runs, seed=0):
    """How often some of equal models are ranked apart."""
    rng, wrong = Random(f"{kind} {blocks} {models} {seed}"), 0
    names = "abcdefgh"[:models]
    for _ in range(runs):
        luck = [rng.gauss(0, 0.5) if kind == "normal" else 0.0 for _ in range(blocks)]
        rows = [
            row
            for alias in names
            for row in seen(alias, [min(10, max(0, KINDS[kind](rng) + each)) for each in luck])
        ]
        table = block_means(ScoreTable.of(rows))
        found = rank_intervals(table, compare_models(table, {"m": (0, 10)}), frozenset())
        wrong += any(rank.low > 1 or rank.high < models for rank in found)
    return wrong / runs


@pytest.mark.parametrize("blocks", [6, 10, 30])
def test_equals_are_rarely_ranked_apart(blocks):
    """A quick look; the slow test below looks closely."""
    assert false_rankings("judged", blocks, 3, 60) <= 0.12


def false_rankings_by_prompts(kind, blocks, models, prompts, runs):
    """How often equal models are ranked apart that answer the same to the same words, where a
    block draws one of some prompts."""
    rng, wrong = Random(f"{kind} {blocks} {models} {prompts}"), 0
    for _ in range(runs):
        drawn = [rng.randrange(prompts) for _ in range(blocks)]
        same = {str(at): str(drawn.index(prompt)) for at, prompt in enumerate(drawn)}
        rows = []
        for alias in "abcdefgh"[:models]:
            score = [KINDS[kind](rng) for _ in range(prompts)]
            rows += seen(alias, [score[prompt] for prompt in drawn])
        table = block_means(ScoreTable.of(rows))
        pairs = compare_models(table, {"m": (0, 10)}, same=same)
        found = rank_intervals(table, pairs, frozenset())
        wrong += any(rank.low > 1 or rank.high < models for rank in found)
    return wrong / runs


@pytest.mark.parametrize("blocks", [6, 10, 30])
def test_equals_are_rarely_ranked_apart_where_blocks_repeat(blocks):
    """A quick look; the slow test below looks closely."""
    assert false_rankings_by_prompts("judged", blocks, 3, 8, 60) <= 0.12


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prompts", [3, 8, 20])
@pytest.mark.parametrize(("blocks", "models"), [(n, k) for n in (6, 10, 30) for k in (2, 5)])
def test_equals_that_repeat_themselves_are_ranked_apart_as_rarely(kind, blocks, models, prompts):
    runs = 1000
    found = false_rankings_by_prompts(kind, blocks, models, prompts, runs)
    assert found <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("blocks", "models"), [(n, k) for n in (6, 10, 30) for k in (2, 5)])
def test_equals_are_ranked_apart_in_five_of_a_hundred_runs_at_most(kind, blocks, models):
    """Within three standard errors of the simulation."""
    runs = 3000
    assert false_rankings(kind, blocks, models, runs) <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5


def coin_rankings(chance, blocks, models, runs):
    """How often equal models with two possible replies are taken for deterministic and ranked."""
    rng, wrong = Random(f"{chance} {blocks} {models}"), 0
    for _ in range(runs):
        replies = [[rng.random() < chance for _ in range(models)] for _ in range(blocks)]
        tracker = RepeatTracker()
        for at, said in enumerate(replies):
            tracker.add(
                str(at),
                at,
                [
                    DigestedReply("r", str(model), b"prompt", bytes([each]))
                    for model, each in enumerate(said)
                ],
            )
        first = replies[0]
        differ = any(a != b for a, b in combinations(first, 2))
        wrong += tracker.is_deterministic and differ
    return wrong / runs


@pytest.mark.parametrize("models", [2, 5])
@pytest.mark.parametrize("blocks", [3, 6, 10])
def test_chance_is_rarely_taken_for_determinism(blocks, models):
    """Even where a match is one word, and three blocks are all there is."""
    assert max(coin_rankings(chance, blocks, models, 1000) for chance in (0.5, 0.8)) <= 0.05
