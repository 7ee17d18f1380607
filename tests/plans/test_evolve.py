"""The plan `evolve`: what users may set, and which matches it plays."""

from collections import Counter

import pytest

from parley.errors import UsageError
from parley.plans.blocks import BlockMaker
from parley.plans.evolve import EvolvePlan
from parley.plans.evolve_settings import (
    EvolveArm,
    EvolveSettings,
    describe_arm,
    find_success_rules,
    parse_evolve,
)
from parley.rules.task import Metric
from parley.tasks.qa import QA
from tests.plans.replays import replay_plan

ITEMS = [f"q{n}" for n in range(6)]


def plan_for(given, items=ITEMS, repeats=1, models=("a", "b")):
    series = BlockMaker("each", QA(), models, {}, 0)
    return EvolvePlan(series, parse_evolve(given), items, repeats, 0)


@pytest.mark.parametrize(("window", "is_said"), [(5, False), (6, True), (500, True)])
def test_a_stream_of_one_window_learns_nothing_and_says_so(window, is_said):
    cautions = plan_for({"window": window}).cautions()
    assert any("choose a smaller window" in each for each in cautions) is is_said


def shape(plan):
    return [Counter((spec.stage, spec.arm) for spec in stage) for stage in plan.stages]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"stagez": 2}, "unknown key of evolve: 'stagez'; did you mean 'stages'"),
        ({"k": 0}, "evolve.k must be from 1"),
        ({"stages": "many"}, "evolve.stages must be a whole number"),
        ({"scope": "subjects"}, "did you mean 'subject'"),
        ({"window": 4, "stages": 2}, "remove one of them"),
        ({"success": "accuracy=1"}, "`success` must be METRIC>=X"),
        ({"held_out": 1}, "`held_out` must be less than 1"),
        ({"controls": "perhaps"}, "evolve.controls must be true or false"),
        ({"arms": {"a/b": {}}}, "the name of an arm may contain only letters"),
        ({"arms": ["a"]}, "must give the settings of each arm under its name"),
        ({"arms": {"near": {"scop": "subject"}}}, "key of evolve.arms.near: 'scop'"),
        (
            {"arms": {"masked": {}}, "controls": True},
            "`controls=true` already adds an arm named 'masked'",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_nearest_name(given, said):
    with pytest.raises(UsageError, match=said.replace("(", "\\(")):
        parse_evolve(given)


def test_arms_take_what_all_have_and_change_what_they_name():
    found = parse_evolve(
        {"stages": "2", "k": 4, "arms": {"near": {"scope": "subject"}, "far": {"k": "1"}}}
    )
    assert found.arms["near"] == EvolveArm(stages=2, k=4, scope="subject")
    assert found.arms["far"] == EvolveArm(stages=2, k=1)
    assert found.first == "near"


def test_the_controls_are_three_arms_beside_the_first():
    found = parse_evolve({"controls": "true", "stages": 2})
    own = EvolveArm(stages=2)
    assert list(found.arms) == ["evolve", "unchanged", "masked", "random"]
    assert found.arms["evolve"] == own
    assert found.arms["unchanged"].retriever == "fixed"
    assert found.arms["masked"].mask
    assert found.arms["random"].retriever == "random"
    # what is masked already has no masked control
    assert list(parse_evolve({"controls": True, "mask": True}).arms) == [
        "evolve", "unchanged", "random",
    ]  # fmt: skip


def test_settings_come_back_from_a_record_as_they_were():
    from dataclasses import asdict

    found = parse_evolve({"controls": True, "transfer": "other", "fit": 100})
    assert found.arms["evolve"].transfer == "other"
    assert EvolveSettings.decoded(asdict(found)) == found


def test_a_signature_names_another_run_without_its_folder():
    (arm,) = parse_evolve({"transfer": "/home/somebody/runs/first.parley", "k": 2}).arms.values()
    assert describe_arm(arm) == "k=2,transfer=first.parley"
    assert describe_arm(EvolveArm()) == "default"


@pytest.mark.parametrize(("share", "said"), [(0.01, "none"), (0.99, "all")])
def test_a_share_that_holds_out_nothing_or_everything_is_refused(share, said):
    with pytest.raises(UsageError, match=f"{said} of the 6 items would be held out"):
        plan_for({"held_out": share})


def test_arms_share_the_standard_stage_and_the_last_one_is_probed():
    plan = plan_for({"stages": 2, "arms": {"one": {}, "two": {"mask": True}}})
    assert shape(plan) == [
        {(0, ""): 12},
        {(1, "one"): 12, (1, "two"): 12},
        {(2, "one"): 12, (2, "one/probe"): 12, (2, "two"): 12},
    ]
    numbers = [spec.number for stage in plan.stages for spec in stage]
    assert numbers == list(range(1, len(numbers) + 1))


def test_an_item_keeps_its_block_and_seed_in_all_stages():
    plan = plan_for({"stages": 2}, repeats=2)
    seeds = {}
    for spec in (spec for stage in plan.stages for spec in stage):
        assert spec.block == spec.item
        seeds.setdefault((spec.item, spec.repeat), set()).add(spec.seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len(seeds) == 2 * len(ITEMS)


def test_matches_of_a_block_differ_in_stage_arm_or_seating():
    plan = plan_for(
        {"stages": 3, "k": 1, "controls": True, "held_out": 0.5}, repeats=2, models=("a", "b")
    )
    specs = [spec for stage in plan.stages for spec in stage]
    draws = {(spec.seed, spec.stage, spec.arm, *spec.seating) for spec in specs}
    assert len(draws) == len(specs)


def test_a_stage_begins_when_the_one_before_has_ended():
    plan, finished, seen = plan_for({"stages": 2, "probe": False}), {}, [0]
    while True:
        specs, end = replay_plan(plan, finished)
        if end is not None:
            break
        stage = [spec for spec in specs.values() if spec.number not in finished]
        assert {spec.stage for spec in stage} == {len(seen) - 1}
        # half of a stage is not enough
        finished |= {spec.number: {} for spec in stage[:3]}
        assert replay_plan(plan, finished) == (specs, None)
        finished |= {spec.number: {} for spec in stage}
        seen.append(len(specs))
    assert seen == [0, 12, 24, 36]


def test_a_stream_plays_every_item_once_in_an_order_of_the_seed():
    plan = plan_for({"window": 4}, repeats=2)
    assert shape(plan) == [{(0, ""): 24}, {(1, "evolve"): 16}, {(2, "evolve"): 8}]
    for series in (1, 2):
        played = [s.item for stage in plan.stages[1:] for s in stage if s.repeat == series]
        assert sorted(played) == sorted(ITEMS * 2)  # two models
    again = plan_for({"window": 4}, items=ITEMS[::-1], repeats=2)
    for one, other in zip(plan.stages, again.stages, strict=True):
        assert {(s.item, s.repeat) for s in one} == {(s.item, s.repeat) for s in other}


@pytest.mark.parametrize("items", [[], ["q"]])
def test_without_items_to_learn_from_nothing_is_played(items):
    with pytest.raises(UsageError, match="at least two items"):
        plan_for({}, items=items)


def test_what_counts_as_a_success():
    right, cost = (
        Metric("right", 0, 1, epsilon=0.1, success=1),
        Metric("cost", 0, 9, epsilon=1, better="lower", roles=("writer",)),
    )
    rules = find_success_rules([right], ["student"], EvolveArm(), "t")
    assert rules["student"].holds(1.0)
    assert not rules["student"].holds(0.5)
    assert not rules["student"].holds(None)
    rules = find_success_rules([right, cost], ["writer", "x"], EvolveArm(success="cost<=3"), "t")
    assert list(rules) == ["writer"]
    assert rules["writer"].holds(3)
    assert not rules["writer"].holds(4)
    with pytest.raises(UsageError, match="does not define what counts as a success"):
        find_success_rules([cost], ["writer"], EvolveArm(), "t")
    with pytest.raises(UsageError, match="did you mean 'cost'"):
        find_success_rules([right, cost], ["writer"], EvolveArm(success="csot<=3"), "t")
