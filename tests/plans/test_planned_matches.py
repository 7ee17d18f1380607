"""Matches are made when they are asked for: the same matches as in a list made beforehand."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.plans import MatchSpec
from parley.plans.arrangements import default_arrangement
from parley.plans.blocks import BlockMaker
from parley.plans.confident_items import ScreeningPlan
from parley.plans.evolve import EvolvePlan
from parley.plans.evolve_settings import PROBE, parse_evolve
from parley.plans.fixed import make_fixed_plan
from parley.plans.planned_matches import PlannedMatches
from parley.tasks.public_goods import PublicGoods
from parley.tasks.qa import QA
from tests import games
from tests.plans.replays import first_matches, replay_plan

MODELS = ["a", "b", "c", "d"]
TASKS = {
    "cycles": games.Duel(),
    "each": QA(),
    "round_robin": games.Duel(),
    "together": PublicGoods(),
    "versus": games.Duel(),
}


def list_fixed(series, items, repeats):
    """The matches of a fixed plan, one after the other."""
    found = []
    for turn, (repeat, item) in enumerate(product(range(1, repeats + 1), items or [None])):
        block = str(repeat) if item is None else item
        found += series.matches(len(found), block, item, repeat, turn)
    return found


def list_stages(series, settings, items, repeats):
    """The matches of the plan `evolve` without windows, one after the other."""
    places = list(product(range(1, repeats + 1), items))
    sections = [(0, "")]
    for stage in range(1, 1 + max(arm.stages for arm in settings.arms.values())):
        for name, arm in settings.arms.items():
            if stage <= arm.stages:
                sections.append((stage, name))
                sections += [(stage, name + PROBE)] * (arm.has_probe and stage == arm.stages)
    found = []
    for stage, arm in sections:
        for turn, (repeat, item) in enumerate(places):
            specs = series.matches(len(found), item, item, repeat, turn)
            found += [replace(spec, stage=stage, arm=arm) for spec in specs]
    return found


@pytest.mark.parametrize("name", TASKS)
@given(
    models=st.integers(2, 4),
    repeats=st.integers(1, 5),
    items=st.integers(0, 3),
    seed=st.integers(0, 9),
)
def test_a_fixed_plan_has_the_matches_of_a_list(name, models, repeats, items, seed):
    task, adversary = TASKS[name], "eve" if name == "versus" else None
    names, ids = MODELS[:models], [f"i{n}" for n in range(items)]
    series = BlockMaker(name, task, names, {}, seed, adversary=adversary)
    plan = make_fixed_plan(name, task, names, {}, ids, repeats, seed, adversary=adversary)
    wanted = list_fixed(series, ids, repeats)
    assert list(plan.specs) == wanted
    assert len(plan.specs) == len(wanted)
    assert [plan.specs[at] for at in reversed(range(len(wanted)))] == wanted[::-1]
    assert plan.specs[1::2] == wanted[1::2]
    assert plan.specs[-1] == wanted[-1]
    with pytest.raises(IndexError, match="there is no match"):
        plan.specs[len(wanted)]


@given(st.integers(2, 4), st.integers(2, 5), st.integers(1, 3), st.integers(0, 9))
def test_the_stages_of_evolve_have_the_matches_of_a_list(models, items, repeats, seed):
    settings = parse_evolve({"stages": 2, "arms": {"one": {}, "two": {"stages": 1}}})
    ids = [f"i{n}" for n in range(items)]
    series = BlockMaker(default_arrangement(QA()), QA(), MODELS[:models], {}, seed)
    plan = EvolvePlan(series, settings, ids, repeats, seed)
    found = [spec for stage in plan.stages for spec in stage]
    assert found == list_stages(series, settings, ids, repeats)
    assert found == list(replay_plan(plan, {spec.number: {} for spec in found})[0].values())


@given(st.integers(1, 3), st.integers(1, 6), st.integers(1, 3), st.data())
def test_a_screening_asks_for_the_items_of_a_list(models, items, repeats, data):
    ids, names = [f"i{n}" for n in range(items)], MODELS[:models]
    series = BlockMaker("each", QA(), names, {}, 0)
    wanted = data.draw(st.integers(1, items))
    plan = ScreeningPlan(series, ids, repeats, wanted, "accuracy", 0.5)
    everything, number = {}, 0
    for turn, item in enumerate(ids):
        for repeat in range(1, repeats + 1):
            for spec in series.matches(number, item, item, repeat, turn):
                everything[spec.number] = spec
                number += 1
    right = {item for item in ids if data.draw(st.booleans())}
    scores = {
        number: {seat: {"accuracy": float(spec.item in right)} for seat in spec.seats}
        for number, spec in everything.items()
    }
    assert first_matches(plan) == [
        spec for spec in everything.values() if spec.item in ids[:wanted]
    ]
    specs, end = replay_plan(plan, scores)
    assert list(specs.items()) == list(everything.items())[: len(specs)]
    screened = len({spec.item for spec in specs.values()})
    found = len(right & set(ids[:screened]))
    assert end.status == ("plan_complete" if found >= wanted else "items_exhausted")
    assert found <= wanted


def test_only_the_matches_in_use_are_made():
    made = []

    def make(group):
        made.append(group)
        return [MatchSpec(2 * group + at + 1, str(group), None, 1, 0, {}) for at in (0, 1)]

    matches = PlannedMatches(1_000_000_000, 2, make)
    assert len(matches) == 2_000_000_000
    assert matches[1_999_999_999].number == 2_000_000_000
    assert [next(iter(matches)).number, matches[-1].number] == [1, 2_000_000_000]
    assert made == [999_999_999, 0]
