"""The contamination rule: on the paper's numbers, on planted memorisers, on input of every kind."""

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.errors import UsageError
from parley.statistics.contamination import (
    ABOVE,
    LOOK,
    SUSPECTED,
    ModelPoint,
    assess_contamination,
    combine_p_values,
    correlation_rows,
)
from parley.statistics.line_fit import Errors, MeasuredPoint, fit_line
from parley.statistics.matched_controls import Answers, compare_with_control
from parley.statistics.robust_line import find_outliers_below, repeated_median_slope
from tests.kieval import MODELS, TABLE_3, TABLE_4, TABLE_5, points

HONEST = [model for model in MODELS if model != "Yi 6B"]


# The paper's numbers


@pytest.mark.parametrize(
    "reference", [[*HONEST, "Normal"], HONEST, MODELS], ids=["with Normal", "without Yi", "with Yi"]
)
def test_both_cheaters_are_suspected_on_both_datasets_and_yi_is_worth_a_look(reference):
    found = assess_contamination(points(cheaters=True), reference)
    assert found.suspected == ["PT-Cheater", "SFT-Cheater"]
    assert found.worth_a_look == ["Yi 6B"]
    assert found.above == ["GPT-3.5"]  # as §4.2 says of it
    listed = {
        fit.dataset: {p.model: p.below.level for p in fit.positions if p.below.level}
        for fit in found.fits
    }
    assert listed == {
        "ARC-E": {},
        "ARC-C": {"Yi 6B": LOOK, "PT-Cheater": SUSPECTED, "SFT-Cheater": SUSPECTED},
        "MMLU": {"PT-Cheater": SUSPECTED, "SFT-Cheater": SUSPECTED},
        "HellaSwag": {"Yi 6B": LOOK},
        "C-Eval": {"Yi 6B": LOOK},
    }


def test_the_p_values_of_yi():
    found = assess_contamination(points(cheaters=True), [*HONEST, "Normal"])
    yi = {fit.dataset: p for fit in found.fits for p in fit.positions if p.model == "Yi 6B"}
    expected = {
        "ARC-E": 0.0962,
        "ARC-C": 0.0489,
        "MMLU": 0.1163,
        "HellaSwag": 0.0477,
        "C-Eval": 0.0062,
    }
    assert {name: p.below.p for name, p in yi.items()} == pytest.approx(expected, abs=5e-5)
    (standing,) = (one for one in found.standings if one.model == "Yi 6B")
    assert standing.below.p == pytest.approx(0.0227, abs=5e-5)
    # ten models, the third smallest p
    assert standing.below.adjusted == pytest.approx(8 * standing.below.p)


def test_least_squares_through_all_models_would_hide_the_cheaters():
    found = assess_contamination(
        points(cheaters=True), [*MODELS, "PT-Cheater", "SFT-Cheater", "Normal"]
    )
    assert "SFT-Cheater" not in found.suspected + found.worth_a_look


def test_without_a_reference_set_the_cheaters_are_still_listed_and_no_honest_model_is():
    found = assess_contamination(points(cheaters=True))
    assert found.suspected + found.worth_a_look == ["PT-Cheater", "SFT-Cheater"]
    assert "without reference models" in found.method
    assert next(fit.aside for fit in found.fits if fit.dataset == "ARC-C") == [
        "PT-Cheater",
        "SFT-Cheater",
    ]


def test_table_5_and_what_is_left_out():
    rows = {
        (row.dataset or "Overall", bool(row.without)): row.correlation
        for row in correlation_rows(points(), ["Yi 6B"])
    }
    for name, (r, p, r_without, p_without) in TABLE_5.items():
        assert rows[name, False].r == pytest.approx(r, abs=0.002)
        assert rows[name, False].p == pytest.approx(p, rel=0.05)
        assert rows[name, True].r == pytest.approx(r_without, abs=0.002)
        assert rows[name, True].p == pytest.approx(p_without, rel=0.05)
    assert (rows["Overall", False].n, rows["Overall", True].n) == (35, 30)
    assert len(correlation_rows(points())) == 6
    with pytest.raises(UsageError, match="did you mean 'Yi 6B'"):
        correlation_rows(points(), ["Yi 6"])


def test_the_band_is_where_a_model_is_worth_a_look():
    (fit,) = assess_contamination(
        [p for p in points(cheaters=True) if p.dataset == "MMLU"], HONEST
    ).fits
    assert (fit.band[0].x, fit.band[-1].x) == (33.9, 72.52)
    assert all(step.low < step.y < step.high for step in fit.band)
    for position in fit.positions:
        if position.model not in HONEST:
            low = fit.line.band(position.accuracy, position.accuracy + 1, 0.05)[0].low
            assert (position.score < low) == (position.below.p < 0.05)


# Planted memorisers

KNOWLEDGE = {f"honest {know}": (know / 10, 0.0) for know in range(3, 10)}
MEMORISERS = {"memoriser 1": (0.3, 0.9), "memoriser 2": (0.3, 0.9)}


def interviewed(model, know, memorised, rng, questions=60, manner=0.0):
    """A bot's answers: what it knows or has memorised it answers right, what it knows it can talk
    about."""
    right, spoken = {}, {}
    for question in map(str, range(questions)):
        known, learnt = rng.random() < know, rng.random() < memorised
        right[question] = 100.0 * (known or learnt or rng.random() < 0.25)
        spoken[question] = min(100.0, max(0.0, rng.gauss(80 if known else 25, 15) + manner))
    return Answers(model, "quiz", right, spoken)


def rates(seeds, bots, reference=(), errors=True, scatter=0.0):
    """How often all memorisers are suspected, and how often any honest bot is; how often one is
    listed at all."""
    found = [0, 0, 0]
    for seed in range(seeds):
        rng = Random(seed)
        answered = [
            interviewed(name, *bot, rng, manner=rng.gauss(0, scatter)).point
            for name, bot in bots.items()
        ]
        if not errors:
            answered = [
                ModelPoint(one.model, one.dataset, one.accuracy, one.score) for one in answered
            ]
        result = assess_contamination(answered, reference)
        suspected = set(result.suspected)
        found[0] += suspected >= bots.keys() & MEMORISERS.keys()
        found[1] += bool(suspected & KNOWLEDGE.keys())
        found[2] += bool({*suspected, *result.worth_a_look} & KNOWLEDGE.keys())
    return [count / seeds for count in found]


@pytest.mark.parametrize("reference", [(), tuple(KNOWLEDGE)], ids=["robust", "declared"])
def test_memorisers_are_suspected_and_honest_bots_are_not(reference):
    caught, accused, _ = rates(20, KNOWLEDGE | MEMORISERS, reference)
    assert caught >= 0.95
    assert accused <= 0.10


@pytest.mark.slow
@pytest.mark.parametrize("errors", [True, False], ids=["errors known", "points only"])
@pytest.mark.parametrize("reference", [(), tuple(KNOWLEDGE)], ids=["robust", "declared"])
def test_memorisers_are_suspected_and_honest_bots_are_not_over_many_seeds(reference, errors):
    caught, accused, _ = rates(200, KNOWLEDGE | MEMORISERS, reference, errors)
    assert caught >= 0.95
    assert accused <= 0.10


@pytest.mark.slow
@pytest.mark.parametrize("reference", [(), tuple(KNOWLEDGE)], ids=["robust", "declared"])
@pytest.mark.parametrize("errors", [True, False], ids=["errors known", "points only"])
@pytest.mark.parametrize("scatter", [0.0, 4.0])  # some are better talkers, whatever they know
def test_honest_bots_among_themselves_are_not_suspected(scatter, reference, errors):
    assert rates(200, KNOWLEDGE, reference, errors, scatter)[1] <= 0.10


@pytest.mark.slow
def test_three_memorisers_of_ten_do_not_hide_each_other():
    caught, accused, _ = rates(100, KNOWLEDGE | MEMORISERS | {"memoriser 3": (0.3, 0.9)})
    assert caught >= 0.90
    assert accused <= 0.10


def test_few_questions_do_not_accuse_who_the_others_measure_up_to():
    exact = [
        ModelPoint(f"m{i}", "quiz", x, x + (-1) ** i, Errors(0.5, 0.5))
        for i, x in enumerate(range(30, 90, 10))
    ]
    for reference in ((), [point.model for point in exact]):
        sure, unsure = (
            assess_contamination([*exact, ModelPoint("new", "quiz", 60, 45, errors)], reference)
            for errors in (Errors(1, 1), Errors(9, 9))
        )
        assert sure.suspected == ["new"]
        assert unsure.suspected == []


def test_a_model_that_talks_better_than_it_answers_is_above_the_line():
    rng = Random(5)
    bots = [interviewed(name, *bot, rng).point for name, bot in KNOWLEDGE.items()]
    found = assess_contamination([*bots, ModelPoint("talker", "quiz", 40.0, 90.0, Errors(6, 3))])
    assert found.above == ["talker"]
    assert found.suspected == found.worth_a_look == []
    assert found.standings[-1].above.level == ABOVE
    assert found.fits[0].aside == ["talker"]


# Input of every kind

RISING = [(30.0, 31.0), (40.0, 38.5), (50.0, 52.0), (60.0, 59.0), (70.0, 71.5), (80.0, 79.0)]


def rising(dataset="quiz", more=()):
    return [ModelPoint(f"m{i}", dataset, *place) for i, place in enumerate([*RISING, *more])]


@pytest.mark.parametrize(
    ("given", "reference", "note"),
    [
        (
            rising()[:3],
            (),
            "no verdict, because only 3 models have both accuracy and score; at least 4 are needed",
        ),
        (
            [*rising()[:3], ModelPoint("x", "quiz", None, 3.0)],
            (),
            "no verdict, because only 3 models",
        ),
        (rising(), ["m0", "m1", "m2"], "no verdict, because only 3 reference models"),
        (
            [ModelPoint(f"m{i}", "quiz", 50.0, float(i)) for i in range(6)],
            (),
            "all have the same accuracy",
        ),
        (
            [ModelPoint(f"m{i}", "quiz", 50.0 + (i > 3), float(i)) for i in range(6)],
            ["m0", "m1", "m2", "m3"],
            "all have the same accuracy",
        ),
        (
            [ModelPoint(f"m{i}", "quiz", float(i), 2.0 * i) for i in range(6)],
            (),
            "exactly on a line",
        ),
        ([ModelPoint(f"m{i}", "quiz", float(i), 7.0) for i in range(6)], (), "exactly on a line"),
        (
            [ModelPoint(f"m{i}", "quiz", i / 7, 2 * i / 7) for i in range(6)],
            [f"m{i}" for i in range(6)],
            "exactly on a line",
        ),
    ],
)
def test_what_no_verdict_can_rest_on_is_said(given, reference, note):
    found = assess_contamination(given, reference)
    assert note in found.fits[0].note
    assert all(
        one.below == one.above == (None, None, None) and one.datasets == 0
        for one in found.standings
    )


def test_each_model_counts_on_the_datasets_that_it_has():
    given = [
        *rising("one", [(90.0, 40.0)]),
        *rising("two"),
        ModelPoint("m6", "two", 90.0, None),
        *rising("three")[:3],
    ]
    found = assess_contamination(given, [f"m{i}" for i in range(6)])
    assert [one.datasets for one in found.standings] == [2] * 6 + [1]
    assert found.suspected == ["m6"]
    assert found.fits[1].missing == ["m6"]
    assert found.fits[2].note.startswith("no verdict")


@pytest.mark.parametrize(
    ("given", "reference", "alpha", "match"),
    [
        (
            [*rising(), ModelPoint("x", "quiz", math.nan, 50.0)],
            (),
            0.05,
            "x on quiz: .* finite numbers, found .nan, 50.0.; use None for",
        ),
        ([*rising(), ModelPoint("x", "quiz", 50.0, math.inf)], (), 0.05, "finite"),
        (
            [*rising(), ModelPoint("x", "quiz", 50.0, 50.0, Errors(-1.0, 1.0))],
            (),
            0.05,
            "cannot be negative",
        ),
        ([*rising(), ModelPoint("m0", "quiz", 50.0, 50.0)], (), 0.05, "m0 on quiz appears twice"),
        (rising(), ["m9"], 0.05, "unknown model in the reference set 'm9'"),
        (rising(), (), 0.5, "between 0 and 0.5"),
    ],
)
def test_what_is_refused(given, reference, alpha, match):
    with pytest.raises(UsageError, match=match):
        assess_contamination(given, reference, alpha)


places = st.lists(
    st.tuples(st.integers(0, 20).map(lambda x: 5.0 * x), st.floats(0, 100)), min_size=4, max_size=9
)


@settings(max_examples=30, deadline=None)
@given(places, st.randoms(), st.booleans(), st.booleans())
def test_order_and_scale_do_not_matter(drawn, random, declared, errors):
    def analysed(scale, shuffled=False):
        own = Errors(3.0, 2.0 * scale) if errors else None
        given = [ModelPoint(f"m{i}", "quiz", x, scale * y, own) for i, (x, y) in enumerate(drawn)]
        if shuffled:
            random.shuffle(given)
        found = assess_contamination(
            given, [f"m{i}" for i in range(len(drawn))] if declared else ()
        )
        return {one.model: one for one in found.standings}, {fit.note for fit in found.fits}

    base, notes = analysed(1.0)
    for one in base.values():
        for side in (one.below, one.above):
            assert side.p is None or 0 <= side.p <= side.adjusted <= 1
    again, same = analysed(1.0, shuffled=True)
    assert notes == same
    for model, one in base.items():
        assert one.below.p == pytest.approx(again[model].below.p, abs=1e-9)
        assert one.above.p == pytest.approx(again[model].above.p, abs=1e-9)
    doubled, _ = analysed(2.0)
    assert all(one.below.level == doubled[model].below.level for model, one in base.items())


@given(
    st.lists(
        st.tuples(st.floats(0, 100), st.floats(0, 100)),
        min_size=5,
        max_size=12,
        unique_by=lambda p: round(p[0], 2),
    )
)
def test_leaving_out_and_studentising_is_the_deleted_residual(drawn):
    spots = [MeasuredPoint(x, y) for x, y in drawn]
    whole, n = fit_line(spots), len(spots)
    squared = whole.scatter * whole.freedom
    for spot in spots:
        others = fit_line([other for other in spots if other is not spot])
        gap = spot.y - whole.at(spot.x)
        lever = 1 / n + (spot.x - whole.centre) ** 2 / whole.squares
        left = squared * (1 - lever) - gap**2
        # the textbook's form, without fitting again
        if others is not None and lever < 0.99 and left > 1e-3:
            assert others.studentised(spot) == pytest.approx(
                gap * math.sqrt((n - 3) / left), rel=1e-4, abs=1e-6
            )


def test_the_repeated_median_line_stands_where_theil_sen_would_bend():
    honest = [(float(x), 2.0 * x) for x in range(7)]
    for cheaters in range(4):  # 3 of 10: more than the 29 % that Theil and Sen's median can bear
        assert repeated_median_slope(
            *zip(*honest, *[(7.0 + i, 0.0) for i in range(cheaters)], strict=True)
        ) == pytest.approx(2.0)


def test_two_together_say_more_than_one():
    x, y = zip(*RISING, (82.0, 64.0), (84.0, 64.0), strict=True)
    alone, both = (
        find_outliers_below(x[:7], y[:7], None, 0.05),
        find_outliers_below(x, y, None, 0.05),
    )
    assert both.aside == {6, 7}
    assert max(both.p[6:]) < alone.p[6] < 0.05
    assert min(both.p[:6]) > 0.05


def test_p_is_uniform_for_honest_models():
    rng, small, runs = Random(3), 0, 60
    for _ in range(runs):
        x = [30.0, 35.0, 50.0, 55.0, 70.0, 90.0]
        small += sum(
            p <= 0.1
            for p in find_outliers_below(
                x, [0.5 * value + rng.gauss(0, 4) for value in x], None, 0.05
            ).p
        )
    assert 0.05 <= small / runs / 6 <= 0.15


def test_combined_p():
    assert combine_p_values([]) is None
    assert combine_p_values([0.03]) == pytest.approx(0.03)
    # the same evidence five times is no more evidence
    assert combine_p_values([0.03] * 5) == pytest.approx(0.03)
    # one dataset known by heart is not excused by another
    assert combine_p_values([0.001, 0.9999]) == pytest.approx(0.002, rel=1e-3)
    assert combine_p_values([0.9, 0.8]) == pytest.approx(0.5)
    assert combine_p_values([0.0, 0.4]) == 0.0


# A matched control


def means(model, dataset, place):
    return Answers(model, dataset, {"all": place[0]}, {"all": place[1]})


def test_tables_3_and_4_as_matched_controls():
    gains = {
        (dataset, model): compare_with_control(
            means(model, dataset, models[model]), means("Normal", dataset, models["Normal"])
        )
        for dataset, models in TABLE_3.items()
        for model in ("PT-Cheater", "SFT-Cheater")
    }
    rounded = {
        key: (round(one.accuracy.difference, 2), round(one.score.difference, 2))
        for key, one in gains.items()
    }
    assert rounded == {
        ("ARC-C", "PT-Cheater"): (34.19, -10.47),
        ("ARC-C", "SFT-Cheater"): (25.30, -4.14),
        ("MMLU", "PT-Cheater"): (29.83, -24.20),
        ("MMLU", "SFT-Cheater"): (18.91, -3.28),
    }
    for one in gains.values():
        assert one.excess.difference == pytest.approx(
            one.accuracy.difference - one.score.difference
        )
        # means alone have no interval
        assert (one.accuracy.low, one.score.high, one.excess.p) == (None, None, None)
    fourth = compare_with_control(
        *(means(model, "ARC-C", TABLE_4[model]) for model in ("+MT-Bench", "Normal"))
    )
    assert (fourth.accuracy.difference, fourth.score.difference) == (
        pytest.approx(-0.10),
        pytest.approx(-5.14),
    )


def test_a_matched_control_shows_what_memorising_raised():
    rng = Random(2)
    suspect, control = interviewed("m", 0.3, 0.9, rng), interviewed("c", 0.3, 0.0, rng)
    found = compare_with_control(suspect, control)
    assert found.accuracy.low > 20
    assert found.excess.low > 20
    assert found.excess.difference == pytest.approx(
        found.accuracy.difference - found.score.difference
    )
    assert found.accuracy.blocks == found.excess.blocks == 60
    fewer = Answers(
        "c",
        "quiz",
        control.accuracy,
        {q: score for q, score in control.score.items() if int(q) < 40},
    )
    assert [
        part.blocks
        for part in (lambda m: (m.accuracy, m.score, m.excess))(
            compare_with_control(suspect, fewer)
        )
    ] == [60, 40, 40]
    assert compare_with_control(suspect, Answers("c", "quiz", control.accuracy, {})).score is None


def test_matched_controls_cover():
    rng, covered, level = Random(9), 0, 0
    for _ in range(100):
        found = compare_with_control(
            interviewed("m", 0.3, 0.9, rng), interviewed("c", 0.3, 0.0, rng)
        )
        truth = 100 * ((0.3 + 0.7 * (0.9 + 0.1 / 4)) - (0.3 + 0.7 / 4))
        covered += found.excess.low <= truth <= found.excess.high
        level += found.score.low <= 0 <= found.score.high  # both know as much
    assert 90 <= covered <= 99
    assert 90 <= level <= 99


def test_what_a_matched_control_refuses():
    one = means("a", "quiz", (50.0, 50.0))
    with pytest.raises(UsageError, match="on the same dataset as the suspect, 'quiz', not 'other'"):
        compare_with_control(one, means("b", "other", (50.0, 50.0)))
    with pytest.raises(UsageError, match="another model"):
        compare_with_control(one, one)
    with pytest.raises(
        UsageError,
        match="a on quiz: accuracy of question 'all' must be a percentage from 0 to 100, not nan",
    ):
        means("a", "quiz", (math.nan, 50.0))
    with pytest.raises(UsageError, match=r"score of question 'all' .* not 101"):
        means("a", "quiz", (50.0, 101))


def test_errors_of_a_point_are_those_of_its_means():
    rng = Random(4)
    drawn = [interviewed("m", 0.5, 0.0, rng, questions=40) for _ in range(400)]
    truth = ModelPoint("m", "quiz", 62.5, 52.5)
    slope = 55 / 0.75 / 100
    gaps = [
        (one.point.score - truth.score) - slope * (one.point.accuracy - truth.accuracy)
        for one in drawn
    ]
    seen = sum(gap**2 for gap in gaps) / len(gaps)
    said = sum(one.point.errors.variance(slope) for one in drawn) / len(drawn)
    assert said == pytest.approx(seen, rel=0.25)
    assert Answers("m", "quiz", {"1": 100.0}, {}).point == ModelPoint("m", "quiz", 100.0, None)
    assert (
        Answers("m", "quiz", {"1": 0.0, "2": 100.0}, {"3": 1.0, "4": 2.0}).point.errors.together
        == 0.0
    )
