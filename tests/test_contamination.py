"""The contamination rule: on the paper's numbers, on planted memorisers, on input of every kind."""

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.errors import UsageError
from parley.statistics.contamination import ABOVE, LOOK, SUSPECTED, combined, contamination, correlations
from parley.statistics.line import Errors, Spot, line
from parley.statistics.matched import Answers, matched
from parley.statistics.positions import Point
from parley.statistics.trimming import below, slope
from tests.kieval import MODELS, TABLE_2, TABLE_3, TABLE_4, TABLE_5, points

HONEST = [model for model in MODELS if model != "Yi 6B"]


# The paper's numbers


@pytest.mark.parametrize("reference", [[*HONEST, "Normal"], HONEST, MODELS], ids=["with Normal", "without Yi", "with Yi"])
def test_both_cheaters_are_suspected_on_both_datasets_and_yi_is_worth_a_look(reference):
    found = contamination(points(cheaters=True), reference)
    assert found.suspected == ["PT-Cheater", "SFT-Cheater"]
    assert found.worth_a_look == ["Yi 6B"]
    assert found.above == ["GPT-3.5"]  # as §4.2 says of it
    listed = {fit.dataset: {p.model: p.below.level for p in fit.positions if p.below.level} for fit in found.fits}
    assert listed == {
        "ARC-E": {},
        "ARC-C": {"Yi 6B": LOOK, "PT-Cheater": SUSPECTED, "SFT-Cheater": SUSPECTED},
        "MMLU": {"PT-Cheater": SUSPECTED, "SFT-Cheater": SUSPECTED},
        "HellaSwag": {"Yi 6B": LOOK},
        "C-Eval": {"Yi 6B": LOOK},
    }


def test_the_p_values_of_yi():
    found = contamination(points(cheaters=True), [*HONEST, "Normal"])
    yi = {fit.dataset: p for fit in found.fits for p in fit.positions if p.model == "Yi 6B"}
    expected = {"ARC-E": 0.0962, "ARC-C": 0.0489, "MMLU": 0.1163, "HellaSwag": 0.0477, "C-Eval": 0.0062}
    assert {name: p.below.p for name, p in yi.items()} == pytest.approx(expected, abs=5e-5)
    (standing,) = (one for one in found.standings if one.model == "Yi 6B")
    assert standing.below.p == pytest.approx(0.0227, abs=5e-5)
    assert standing.below.adjusted == pytest.approx(8 * standing.below.p)  # ten models, the third smallest p


def test_least_squares_through_all_models_would_hide_the_cheaters():
    found = contamination(points(cheaters=True), [*MODELS, "PT-Cheater", "SFT-Cheater", "Normal"])
    assert "SFT-Cheater" not in found.suspected + found.worth_a_look


def test_without_a_reference_set_the_cheaters_are_still_listed_and_no_honest_model_is():
    found = contamination(points(cheaters=True))
    assert found.suspected + found.worth_a_look == ["PT-Cheater", "SFT-Cheater"]
    assert "no reference set" in found.method
    assert next(fit.aside for fit in found.fits if fit.dataset == "ARC-C") == ["PT-Cheater", "SFT-Cheater"]


def test_table_5_and_what_is_left_out():
    rows = {(row.dataset or "Overall", bool(row.without)): row.correlation for row in correlations(points(), ["Yi 6B"])}
    for name, (r, p, r_without, p_without) in TABLE_5.items():
        assert rows[name, False].r == pytest.approx(r, abs=0.002)
        assert rows[name, False].p == pytest.approx(p, rel=0.05)
        assert rows[name, True].r == pytest.approx(r_without, abs=0.002)
        assert rows[name, True].p == pytest.approx(p_without, rel=0.05)
    assert (rows["Overall", False].n, rows["Overall", True].n) == (35, 30)
    assert len(correlations(points())) == 6
    with pytest.raises(UsageError, match="did you mean 'Yi 6B'"):
        correlations(points(), ["Yi 6"])


def test_the_band_is_where_a_model_is_worth_a_look():
    (fit,) = contamination([p for p in points(cheaters=True) if p.dataset == "MMLU"], HONEST).fits
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
    """A bot's answers: what it knows or has memorised it answers right, what it knows it can talk about."""
    right, spoken = {}, {}
    for question in map(str, range(questions)):
        known, learnt = rng.random() < know, rng.random() < memorised
        right[question] = 100.0 * (known or learnt or rng.random() < 0.25)
        spoken[question] = min(100.0, max(0.0, rng.gauss(80 if known else 25, 15) + manner))
    return Answers(model, "quiz", right, spoken)


def rates(seeds, bots, reference=(), errors=True, scatter=0.0):
    """How often all memorisers are suspected, and how often any honest bot is; how often one is listed at all."""
    found = [0, 0, 0]
    for seed in range(seeds):
        rng = Random(seed)
        answered = [interviewed(name, *bot, rng, manner=rng.gauss(0, scatter)).point for name, bot in bots.items()]
        if not errors:
            answered = [Point(one.model, one.dataset, one.accuracy, one.score) for one in answered]
        result = contamination(answered, reference)
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
