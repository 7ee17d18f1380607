"""Plans that look: cycles, until stable, the race; pure, resumable, and saying what to expect."""

import asyncio
import csv
import json
import sqlite3
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parley
from parley import Metric, Result, Role, Seat, Task, UsageError
from parley.audit.audit import audit_run
from parley.config.experiment import Experiment
from parley.config.prepare import prepare_resume
from parley.errors import TaskError
from parley.options import from_keywords
from parley.plans import Done, EndedMatches, PlanCursor
from parley.plans.arrangements import ARRANGEMENTS
from parley.plans.choice import choose_plan
from parley.plans.fixed import make_fixed_plan
from parley.plans.race import RaceRule
from parley.plans.stop_targets import StopTarget, leading_metrics
from parley.results.signature import make_signature
from parley.runs import start
from parley.runs.progress import Progress, StopSignal
from parley.runs.run_context import RunContext
from parley.statistics.anytime import Scale, compute_anytime
from parley.statistics.estimates import block_means, rank_intervals
from parley.statistics.score_table import Observation, ScoreTable
from parley.statistics.stopping_rules import WatchedCell, forecast_blocks
from parley.store import open_store, read_run
from parley.store.config import Config
from parley.tasks.public_goods import PublicGoods
from parley.tasks.qa.rule import QA
from tests import games
from tests.cli.test_cli import parley as command_line
from tests.plans.replays import first_matches, replay_plan

MODELS = [f"m{n}" for n in range(6)]


@dataclass(frozen=True)
class Meeting(Task):
    """Two roles, marks from 1 to 10; never really played here."""

    better: str = "higher"
    roles = {"writer": Role(), "editor": Role()}

    def metrics(self, seats):
        return [Metric("mark", 1, 10, epsilon=0.5, better=self.better)]

    async def play(self, referee, writer, editor):
        return {writer: 5, editor: 5}


def marks(spec, skill, noise=1.0):
    """What a match of two shows: skills, an item's luck, chance."""
    item = Random(f"{spec.block}").gauss(0, 0.5)
    rng = Random(f"{spec.number}|{spec.seed}")
    return {
        seat: {"mark": min(10, max(1, skill[alias] + item + rng.gauss(0, noise)))}
        for seat, alias in spec.seats.items()
        if seat.role != "judge"
    }


def race(models=MODELS, stop=None, max_blocks=None, seed=0, task=None, items=(), at_once=None):
    stop, task = stop or StopTarget(half_width=0.5), task or Meeting()
    return choose_plan(
        "race", task, models, {}, items, 1, seed, stop=stop, max_blocks=max_blocks, at_once=at_once
    )


def ended(plan, skill, noise=1.0):
    """A plan played to its end: its matches, their marks, how it ended."""
    scores = {}
    while True:
        specs, end = replay_plan(plan, scores)
        if end:
            return specs, scores, end
        for spec in specs.values():
            scores.setdefault(spec.number, marks(spec, skill, noise))


def rows_of(specs, scores):
    """What counts of the matches played, as results see it."""
    return [
        Observation(
            spec.block, number, alias, seat.role, "mark", scores[number].get(seat, {}).get("mark")
        )
        for number, spec in specs.items()
        for seat, alias in spec.seats.items()
        if seat not in spec.unscored
    ]


def repeats_of(specs):
    return {number: spec.repeat for number, spec in specs.items()}


SKILL = {name: 8 - 0.8 * n for n, name in enumerate(MODELS)}


@given(st.integers(2, 12), st.integers(0, 50), st.integers(1, 3))
def test_in_cycles_everybody_sits_in_every_seat_once_a_block(models, seed, repeats):
    names = [f"m{n}" for n in range(models)]
    plan = choose_plan("cycles", Meeting(), names, {}, [], repeats, seed)
    specs = first_matches(plan)
    assert len(specs) == models * repeats
    for block in {spec.block for spec in specs}:
        for role in ("writer", "editor"):
            assert Counter(
                spec.seats[Seat(role)] for spec in specs if spec.block == block
            ) == dict.fromkeys(names, 1)
    assert all(spec.seats[Seat("writer")] != spec.seats[Seat("editor")] for spec in specs)
    assert [dict(spec.seats) for spec in specs] == [
        dict(spec.seats)
        for spec in first_matches(choose_plan("cycles", Meeting(), names, {}, [], repeats, seed))
    ]


@given(st.integers(3, 14), st.integers(2, 10), st.integers(0, 9))
def test_groups_of_an_open_table_are_balanced_too(models, size, seed):
    names = [f"m{n}" for n in range(models)]
    if size > models:
        with pytest.raises(UsageError, match="contestant seats"):
            choose_plan("cycles", PublicGoods(), names, {}, [], 1, seed, size=size)
        return
    specs = first_matches(choose_plan("cycles", PublicGoods(), names, {}, [], 1, seed, size=size))
    seats = Counter((seat, alias) for spec in specs for seat, alias in spec.seats.items())
    assert set(seats.values()) == {1}
    assert all(len(spec.seats) == len(set(spec.seats.values())) == size for spec in specs)
    assert len(specs) == (1 if size == models else models)


@settings(max_examples=40)
@given(
    st.sampled_from(sorted(ARRANGEMENTS)),
    st.integers(2, 6),
    st.integers(0, 10**6),
    st.integers(1, 3),
    st.integers(0, 3),
)
def test_no_two_matches_of_a_block_have_the_same_seating(name, models, seed, repeats, items):
    names = [str(n) for n in range(items)]
    task = {"each": QA(), "together": PublicGoods()}.get(name, Meeting())
    specs = make_fixed_plan(
        name, task, MODELS[:models], {}, names, repeats, seed, adversary="other"
    ).specs
    draws = {(spec.seed, *spec.seating) for spec in specs}
    assert len(draws) == len(specs)


def test_matches_of_a_race_differ_in_seed_or_seating():
    played, _, _ = ended(race(), {name: 5 + n for n, name in enumerate(MODELS)})
    draws = {(spec.seed, *spec.seating) for spec in played.values()}
    assert len(draws) == len(played)


def test_partners_in_cycles_are_drawn_from_all_others_alike():
    specs = first_matches(choose_plan("cycles", Meeting(), MODELS, {}, [], 3000, 1))
    met = Counter((spec.seats[Seat("writer")], spec.seats[Seat("editor")]) for spec in specs)
    assert len(met) == 30
    assert max(met.values()) < 1.15 * 600
    assert min(met.values()) > 0.85 * 600


def test_an_open_table_seats_everybody_if_it_can():
    specs = first_matches(choose_plan("cycles", PublicGoods(), MODELS, {}, [], 2, 0))
    assert [len(spec.seats) for spec in specs] == [6, 6]
    many = [f"m{n}" for n in range(13)]
    assert {
        len(spec.seats)
        for spec in first_matches(choose_plan("cycles", PublicGoods(), many, {}, [], 1, 0))
    } == {10}


@pytest.mark.parametrize(
    ("name", "task", "options", "match"),
    [
        ("cycles", Meeting(), {"size": 2}, "single contestant role of variable size"),
        ("together", PublicGoods(), {"size": 2}, "`--plan cycles`, `race`"),
        ("cycles", PublicGoods(), {"size": 11}, "2 to 10 seats for role `players`"),
        ("race", Meeting(), {"stop": StopTarget(top=7)}, "only 6 models"),
        (
            "cycles",
            Meeting(),
            {"stop": StopTarget(), "max_blocks": -1},
            "max_blocks must be at least 1",
        ),
        (
            "race",
            games.Spelling(),
            {"stop": StopTarget(target="these_items"), "items": ["a"]},
            "new items",
        ),
        (
            "round_robin",
            Meeting(),
            {"stop": StopTarget(target="these_items")},
            "has no items",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused(name, task, options, match):
    items = options.pop("items", [])
    with pytest.raises(UsageError, match=match):
        choose_plan(name, task, MODELS, {}, items, 1, 0, **options)


@pytest.mark.parametrize(
    "wrong",
    [{"half_width": 0}, {"half_width": float("nan")}, {"alpha": 0}, {"alpha": 1}, {"top": 0}],
)
def test_a_stop_that_means_nothing_is_refused(wrong):
    with pytest.raises(UsageError):
        StopTarget(**wrong)


def test_a_race_finds_the_order_and_leaves_out_what_is_decided():
    specs, scores, end = ended(race(), SKILL)
    assert end.status == "converged"
    blocks = Counter(spec.block for spec in specs.values())
    assert blocks["1"] == 6
    assert blocks[max(blocks, key=int)] < 6  # towards the end, only some play
    for spec in specs.values():
        assert len(spec.unscored) < 2  # a match that nobody needs is not played
    counted = Counter(
        (spec.block, seat.role, alias)
        for spec in specs.values()
        for seat, alias in spec.seats.items()
        if seat not in spec.unscored
    )
    assert set(counted.values()) == {1}
    full = [spec for spec in specs.values() if int(spec.block) <= 10]
    assert not any(spec.unscored for spec in full)
    found = compute_anytime(
        ScoreTable.of(rows_of(specs, scores)), "mark", Scale(1, 10, 0.5), 0.05, 2, repeats_of(specs)
    )
    order = {
        rank.alias: (rank.low, rank.high)
        for rank in rank_intervals(
            block_means(ScoreTable.of(rows_of(specs, scores))), found.pairs, frozenset()
        )
    }
    assert order == {name: (n, n) for n, name in enumerate(MODELS, 1)}


def test_a_race_for_the_top_needs_less_and_can_be_lower_is_better():
    full, *_ = ended(race(), SKILL)
    top, _, end = ended(race(stop=StopTarget(half_width=0.5, top=2)), SKILL)
    assert end.status == "converged"
    assert len(top) < 0.7 * len(full)
    lower, *_ = ended(
        race(stop=StopTarget(half_width=0.5, top=2), task=Meeting(better="lower")), SKILL
    )
    late = [spec for spec in lower.values() if spec.unscored]
    spared = Counter(
        alias for spec in late for seat, alias in spec.seats.items() if seat in spec.unscored
    )
    assert spared["m0"] > max(spared["m3"], spared["m4"])  # the highest mark is the first to be out


def test_a_plan_is_a_pure_function_of_what_is_finished():
    plan = race(seed=3)
    specs, scores, end = ended(plan, SKILL)
    assert replay_plan(race(seed=3), scores) == (specs, end)
    fresh = race(seed=3)
    assert replay_plan(fresh, scores) == (specs, end)
    assert first_matches(fresh) == first_matches(race(seed=3))  # and about the start
    other = {n: {seat: {"mark": 5.0} for seat in by} for n, by in scores.items()}
    assert replay_plan(fresh, other) == replay_plan(race(seed=3), other)  # another run
    some = {n: by for n, by in scores.items() if n <= len(scores) // 2}
    again, early = replay_plan(fresh, some)
    assert early is None
    assert some.keys() < again.keys() < specs.keys()
    assert all(again[number] == specs[number] for number in again)


def test_a_plan_hands_out_all_matches_while_some_of_them_have_ended():
    """The caller leaves out the matches that have ended."""
    plan = race()
    first = first_matches(plan)
    assert len(first) >= 64
    done = {spec.number: marks(spec, SKILL) for spec in first[:10]}
    assert list(replay_plan(plan, done)[0].values()) == first


def play_out_of_order(plan, skill, rng):
    """A plan played by many workers: matches end in any order, and the planner looks at any time.
    What it handed out and how it ended."""
    scores, open_matches, handed_out, waiting = {}, [], [], False
    cursor = PlanCursor(plan, EndedMatches(scores))
    while True:
        while open_matches and (waiting or rng.random() < 0.9):
            spec = open_matches.pop(rng.randrange(len(open_matches)))
            scores[spec.number] = marks(spec, skill)
            waiting = False
        matches = cursor.next_matches()
        if isinstance(matches, Done):
            assert not open_matches
            return handed_out, matches
        waiting = matches is None
        if matches:
            handed_out.append(matches)
            open_matches += matches


@pytest.mark.parametrize("kind", ["race", "stable"])
@given(seed=st.integers(0, 99), at_once=st.integers(1, 300), most=st.integers(10, 60))
@settings(max_examples=15)
def test_with_at_once_matches_do_not_depend_on_how_they_end(kind, seed, at_once, most):
    def make():
        if kind == "race":
            return race(seed=seed, max_blocks=most, at_once=at_once)
        return stable(StopTarget(half_width=0.6), max_blocks=most, at_once=at_once)

    handed_out, end = play_out_of_order(make(), SKILL, Random(seed))
    assert play_out_of_order(make(), SKILL, Random(seed + 1)) == (handed_out, end)
    specs, _, alone = ended(make(), SKILL)  # in one process
    assert list(specs.values()) == [spec for matches in handed_out for spec in matches]
    assert alone == end
    assert all(len(matches) >= at_once for matches in handed_out[:-1])
    assert [spec.number for spec in specs.values()] == list(range(1, len(specs) + 1))


def test_with_at_once_the_next_blocks_are_drawn_while_those_before_are_played():
    plan, scores = race(at_once=30), {}
    cursor = PlanCursor(plan, EndedMatches(scores))
    first, second = cursor.next_matches(), cursor.next_matches()
    assert cursor.next_matches() is None
    scores |= {spec.number: marks(spec, SKILL) for spec in [*first[1:], *second]}
    assert cursor.next_matches() is None
    scores[1] = marks(first[0], SKILL)
    for spec in second:
        del scores[spec.number]
    assert len(cursor.next_matches()) >= 30
    assert cursor.next_matches() is None


def test_at_once_shows_in_the_signature_and_a_wrong_number_is_refused():
    config = Experiment("public_goods", given=from_keywords(plan="race"))
    for alias, model in RIDERS.items():
        config.add_model(model, alias)
    prepared = config.prepare()
    info = SimpleNamespace(config=prepared.config, identity=prepared.identity)
    assert "|at_once:" not in make_signature(info, 64)
    info.config = replace(prepared.config, at_once=128)
    assert "|at_once:128|" in make_signature(info, 64)
    assert Config.decoded(info.config.encoded()).at_once == 128
    for wrong in (0, -1):
        with pytest.raises(UsageError, match="at_once must be a whole number, 1 or more"):
            replace(prepared.config, at_once=wrong)


def stable(
    stop,
    items=(),
    models=MODELS[:3],
    max_blocks=None,
    repeats=1,
    task=None,
    name="cycles",
    at_once=None,
):
    limits = {"max_blocks": max_blocks, "at_once": at_once}
    return choose_plan(name, task or Meeting(), models, {}, items, repeats, 0, stop=stop, **limits)


def test_until_stable_ends_when_every_half_width_is_small():
    plan = stable(StopTarget(half_width=0.6))
    specs, _, end = ended(plan, SKILL)
    assert end.status == "converged"
    assert "target 0.6" in end.reason
    assert len(specs) > 100
    narrower, *_ = ended(stable(StopTarget(half_width=0.4)), SKILL)
    assert len(narrower) > len(specs)


def test_a_bound_on_the_blocks_is_a_budget_and_items_are_exhausted():
    assert ended(stable(StopTarget(half_width=0.1), max_blocks=40), SKILL)[2].status == "budget"
    items = [f"i{n}" for n in range(30)]
    specs, _, end = ended(stable(StopTarget(half_width=0.1, target="these_items"), items), SKILL)
    assert end.status == "items_exhausted"
    assert "all 30 items" in end.reason
    assert {spec.block for spec in specs.values()} == set(items)
    assert [spec.item for spec in specs.values()][::3] != items  # drawn, not in the file's order
    few, _, early = ended(stable(StopTarget(half_width=0.1), items, max_blocks=12), SKILL)
    assert early.status == "budget"
    assert len({spec.block for spec in few.values()}) == 12


def test_these_items_close_as_they_are_used_up_and_repeats_tell_the_noise():
    """With several matches an item, the noise within items is known to be small, and the set alone
    is uncertain."""
    items = [f"i{n}" for n in range(60)]
    new, _, end_new = ended(stable(StopTarget(half_width=0.4), items, repeats=3), SKILL, noise=0.1)
    these, _, end_these = ended(
        stable(StopTarget(half_width=0.4, target="these_items"), items, repeats=3), SKILL, noise=0.1
    )
    assert end_these.status == "converged"
    assert len(these) < len(new)
    assert end_new.status == "items_exhausted"


def test_blocks_that_are_not_alike_are_called_drift():
    scores, plan = {}, stable(StopTarget(half_width=0.05))
    while True:
        specs, end = replay_plan(plan, scores)
        if end:
            break
        for number, spec in specs.items():
            scores.setdefault(
                number, {seat: {"mark": 2 if int(spec.block) < 60 else 9} for seat in spec.seats}
            )
    assert end.status == "drift"
    assert "no single mean is consistent" in end.reason


def test_a_result_that_no_block_scores_ends_the_run_instead_of_spending_on():
    for plan in (race(), stable(StopTarget())):
        specs, _ = replay_plan(plan, {})
        nothing = {
            number: {seat: {"mark": None} for seat in spec.seats} for number, spec in specs.items()
        }
        with pytest.raises(TaskError, match="no score in `mark` in any of"):
            replay_plan(plan, nothing)


def test_missing_scores_are_left_out_and_never_zero():
    """The best model loses a third of its marks: were they zero, it would come last."""
    plan, scores = race(stop=StopTarget(half_width=1)), {}
    while True:
        specs, end = replay_plan(plan, scores)
        if end:
            break
        for number, spec in specs.items():
            if number not in scores:
                found = marks(spec, SKILL, 0.5)
                lost = [
                    seat
                    for seat, alias in spec.seats.items()
                    if alias == "m0" and Random(number).random() < 0.33
                ]
                scores[number] = found | {seat: {"mark": None} for seat in lost}
    assert end.status == "converged"
    rows = rows_of(specs, scores)
    first = rank_intervals(
        block_means(ScoreTable.of(rows)),
        compute_anytime(
            ScoreTable.of(rows), "mark", Scale(1, 10, 1), 0.05, 2, repeats_of(specs)
        ).pairs,
        frozenset(),
    )
    assert {(rank.low, rank.high) for rank in first if rank.alias == "m0"} == {(1, 1)}


def test_the_forecast_says_what_the_half_width_will_take():
    """1-10 marks with usual noise: a half-width of 0.25 in eight results takes some 400 blocks."""
    cell = WatchedCell("r", "a", "mark", 1, 10, 0.25)
    usual = forecast_blocks(cell, 1.19, 0.05 / 8, 5000)
    assert 300 <= usual.blocks <= 500
    assert forecast_blocks(cell, 1.19, 0.05 / 8, 100).blocks is None
    wide = forecast_blocks(cell, 1.19, 0.05 / 8, 5000, population=200)
    assert wide.blocks is None
    assert wide.half_width > 0.25
    said, cheaper = stable(StopTarget(half_width=0.25)).cautions()
    assert "You need about" in said
    assert "matches" in said
    assert "a fixed number of matches would be cheaper" in cheaper
    (warned,) = stable(
        StopTarget(half_width=0.25, target="these_items"), [f"i{n}" for n in range(50)]
    ).cautions()
    assert "50 items are probably too few for" in warned


def test_a_forecast_is_near_what_happens():
    cell = WatchedCell("writer", "m0", "mark", 1, 10, 0.5)
    expected = forecast_blocks(cell, 1.12, 0.05 / 6, 5000).blocks
    specs, *_ = ended(stable(StopTarget(half_width=0.5)), dict.fromkeys(MODELS, 5.5))
    assert 0.6 < len({spec.block for spec in specs.values()}) / expected < 1.7


def test_enough_blocks_are_played_at_a_time_to_keep_endpoints_busy():
    scores, plan, sizes = {}, stable(StopTarget(half_width=0.3)), []
    known = 0
    while True:
        specs, end = replay_plan(plan, scores)
        if end:
            break
        sizes.append(len(specs) - known)
        known = len(specs)
        scores |= {
            number: marks(spec, SKILL) for number, spec in specs.items() if number not in scores
        }
    assert min(sizes) >= 64
    assert max(sizes[1:]) <= max(66, 0.06 * known)


# Whole runs.

RIDERS = {
    "rider": "bot/free-rider",
    "good": "bot/altruist",
    "any": "bot/random",
    "more": "bot/random",
}


def prepared_race(**options):
    experiment = Experiment(
        "public_goods", given=from_keywords(plan="race", seats=2, half_width=10, **options)
    )
    experiment.contestants = [experiment.add_model(model, alias) for alias, model in RIDERS.items()]
    return experiment.prepare()


@pytest.mark.parametrize("at", [70, *(pytest.param(n, marks=pytest.mark.slow) for n in (10, 130))])
def test_a_race_that_was_stopped_goes_on_to_the_same_result(tmp_path, at):
    async def interrupted(at):
        tally, brake = Progress(), StopSignal()

        async def watch():
            while tally.done < at:  # noqa: ASYNC110
                await asyncio.sleep(0)
            brake.stop("enough")

        watching = asyncio.create_task(watch())
        ending = await start.play_new_run(
            prepared_race(), open_store(tmp_path / str(at)), RunContext(tally, brake)
        )
        watching.cancel()
        return ending

    whole = Result(
        asyncio.run(start.play_new_run(prepared_race(), open_store(tmp_path / "whole"))).ref
    )
    assert whole.data["run"]["stop"]["status"] == "converged"
    ending = asyncio.run(interrupted(at))
    assert ending.state == "stopped"
    asyncio.run(start.resume_run(prepare_resume(ending.ref), ending.ref))
    resumed = Result(ending.ref)
    for part in ("results", "pairs", "ranks", "tables", "positions", "stability"):
        assert json.dumps(resumed.data[part]) == json.dumps(whole.data[part])
    assert audit_run(ending.ref).breaches == []


def test_unscored_seats_are_on_record_do_not_count_and_are_audited(tmp_path):
    ending = asyncio.run(start.play_new_run(prepared_race(), open_store(tmp_path)))
    with read_run(ending.ref) as reader:
        unscored = [
            (match.number, match.unscored) for match in reader.matches.read() if match.unscored
        ]
        marked = [score for score in reader.scores.read() if score.unscored]
    assert unscored
    assert len(marked) == sum(len(seats) for _, seats in unscored)
    rows = {row["alias"]: row for row in Result(ending.ref).data["results"]}
    # it left the race: the randoms are the hard pair
    assert rows["rider"]["blocks"] < rows["any"]["blocks"]
    assert {row["interval"] for row in rows.values()} == {"anytime"}
    assert audit_run(ending.ref).breaches == []
    with sqlite3.connect(ending.ref.location) as connection:
        connection.execute("UPDATE matches SET unscored = NULL WHERE number = ?", (unscored[0][0],))
    connection.close()
    assert {breach.kind for breach in audit_run(ending.ref).breaches} >= {"plan"}


def test_a_run_marked_as_converged_too_early_is_found(tmp_path):
    ending = asyncio.run(start.play_new_run(prepared_race(max_blocks=40), open_store(tmp_path)))
    assert (ending.state, ending.status) == ("stopped", "budget")
    assert audit_run(ending.ref).breaches == []
    with sqlite3.connect(ending.ref.location) as connection:
        connection.execute("UPDATE runs SET state = 'done', status = 'converged'")
    connection.close()
    assert any(
        "has the status `converged`" in breach.detail for breach in audit_run(ending.ref).breaches
    )


def test_a_budget_of_blocks_is_exit_4_and_can_be_raised(tmp_path):
    words = (
        "run",
        "public_goods",
        "-m",
        "bot/random",
        "-m",
        "b=bot/random",
        "--until-stable",
        "--half-width",
        4,
    )
    short = command_line(*words, "--max-blocks", 80, "--json", cwd=tmp_path, code=4)
    assert "--max-blocks N" in short.err
    assert short.json["run"]["stop"]["status"] == "budget"
    command_line("resume", "last", "--max-blocks", 20, cwd=tmp_path, code=2)
    done = command_line("resume", "last", "--max-blocks", 900, "--json", cwd=tmp_path).json
    whole = command_line(*words, "--max-blocks", 900, "--json", cwd=tmp_path).json
    assert done["run"]["stop"]["status"] == whole["run"]["stop"]["status"] == "converged"
    for part in ("results", "pairs", "stability"):
        assert done[part] == whole[part]
    assert all(row["high"] - row["low"] <= 8 for row in done["results"])
    assert done["stability"]["paths"][0]["points"][-1]["blocks"] == done["results"][0]["blocks"]
    assert len(done["stability"]["paths"][0]["points"]) <= 60
    command_line("audit", "last", cwd=tmp_path)


def test_resume_raises_bounds_only_where_there_are_some(tmp_path):
    command_line(
        "run",
        "public_goods",
        "-m",
        "bot/random",
        "-m",
        "b=bot/random",
        "--repeats",
        2,
        cwd=tmp_path,
    )
    found = command_line("resume", "last", "--max-blocks", 20, cwd=tmp_path, code=2)
    assert "--until-stable" in found.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--half-width", "1"], "add --until-stable or --plan race"),
        (["--max-blocks", "5"], "add --until-stable or --plan race"),
        (["--until-stable", "--top", "2"], "add --plan race"),
        (["--until-stable", "--plan", "race"], "cannot be combined with `--plan race`"),
        (["--until-stable", "--repeats", "5"], "use --max-blocks N"),
        (["--until-stable", "--target", "these_items"], "has no items"),
        (["--until-stable", "--half-width", "-1"], "above 0"),
        (["--until-stable", "--half-width", "nan"], "above 0"),
        (["--until-stable", "--alpha", "2"], "between 0 and 1"),
        (["--plan", "rase"], "did you mean 'race'"),
        (["--plan", "race", "--top", "9"], "only 2 models"),
    ],
)
def test_options_that_do_not_fit_together_are_told_apart(tmp_path, words, said):
    found = command_line(
        "run",
        "public_goods",
        "-m",
        "bot/random",
        "-m",
        "b=bot/random",
        *words,
        cwd=tmp_path,
        code=2,
    )
    assert said in found.err


def test_a_file_says_when_to_stop_and_flags_override_it(tmp_path):
    (tmp_path / "e.yaml").write_text(
        "kind: experiment\ntask: public_goods\nmodels: {a: {model: bot/random}, b: "
        "{model: bot/altruist}}\n"
        "stop: {half_width: 6, max_blocks: 500}\n"
    )
    done = command_line("run", "e.yaml", "--json", cwd=tmp_path).json
    assert done["run"]["stop"]["status"] == "converged"
    assert done["stability"]["half_width"] == 6
    assert "stop:half_width=6,alpha=0.05,target=new_items" in done["results"][0]["signature"]
    raced = command_line(
        "run", "e.yaml", "--plan", "race", "--seats", 2, "--json", cwd=tmp_path
    ).json
    assert raced["run"]["plan"] == "race"
    (tmp_path / "top.yaml").write_text(
        (tmp_path / "e.yaml").read_text().replace("half_width: 6", "top: 1, half_width: 30")
    )
    assert (
        command_line(
            "run", "top.yaml", "--plan", "race", "--seats", 2, "--json", cwd=tmp_path
        ).json["stability"]["top"]
        == 1
    )
    assert "line 4" in command_line("run", "top.yaml", cwd=tmp_path, code=2).err


def test_the_python_door_takes_the_same_words(tmp_path):
    result = parley.run(
        "public_goods",
        models={"a": "bot/free-rider", "b": "bot/altruist"},
        plan="race",
        top=1,
        half_width=20,
        store=tmp_path,
    )
    assert result.data["run"]["stop"]["status"] == "converged"
    assert [rank["low"] for rank in result.data["ranks"]] == [1, 2]
    with pytest.raises(UsageError, match="add --until-stable"):
        parley.run("public_goods", models=["bot/random", "bot/null"], half_width=1, store=tmp_path)


def test_every_part_of_a_result_has_its_table(tmp_path):
    command_line(
        "run",
        "public_goods",
        "-m",
        "a=bot/random",
        "-m",
        "b=bot/free-rider",
        "--until-stable",
        cwd=tmp_path,
    )
    for part, said in {
        "pairs": "difference", "roles": "mean players 1", "positions": "mean over all positions",
        "ratings": "one of which can win",
        "stability": "target", "results": "widest half-width",
    }.items():  # fmt: skip
        for form in ("text", "markdown", "latex", "csv"):
            out = command_line("show", "last", "--part", part, "--format", form, cwd=tmp_path).out
            assert out.strip() or (form, part) == ("csv", "ratings")
            assert said in out or form in ("latex", "csv")
            assert "signature" in out or part == "ratings"
    rows = list(
        csv.DictReader(
            command_line(
                "show", "last", "--part", "pairs", "--format", "csv", cwd=tmp_path
            ).out.splitlines()
        )
    )
    data = command_line("show", "last", "--json", cwd=tmp_path).json["pairs"]
    assert [float(row["difference"]) for row in rows] == [pair["difference"] for pair in data]
    assert (
        "anytime-valid"
        in command_line("show", "last", "--interval", "bootstrap", cwd=tmp_path, code=2).err
    )


def test_a_judge_that_is_missing_ends_a_stable_run_with_a_reason(tmp_path):
    with pytest.raises(parley.ParleyError, match="check whether a judge is missing"):
        parley.run(games.Judged(), models=["bot/null"], until_stable=True, store=tmp_path)


def test_one_model_has_nothing_to_race_for():
    with pytest.raises(UsageError, match="at least two models"):
        choose_plan("race", games.Spelling(), ["a"], {}, ["x"], 1, 0, stop=StopTarget())


@dataclass(frozen=True)
class Mixed(Task):
    """Roles scored on different scales."""

    roles = {"writer": Role(), "editor": Role()}

    def metrics(self, seats):
        return [
            Metric("won", 0, 1, epsilon=0.1, roles=("writer",)),
            Metric("mark", 1, 10, epsilon=0.5, roles=("editor",)),
        ]

    async def play(self, referee, writer, editor):
        return {}


def test_a_half_width_is_for_the_scale_that_it_is_given_in():
    leading = leading_metrics(
        Mixed().metrics({}), ["writer", "editor"], StopTarget(half_width=0.15)
    )
    assert {role: metric.epsilon for role, metric in leading.items()} == {
        "writer": 0.15,
        "editor": 0.5,
    }


def test_results_of_a_stopped_run_rest_on_whole_blocks(tmp_path):
    """A plan that looks sees whole blocks only; so do its results, whenever it was stopped."""

    async def interrupted():
        tally, brake = Progress(), StopSignal()
        prepared = prepared_race(concurrency=1)

        async def watch():
            while tally.done < 6:  # noqa: ASYNC110
                await asyncio.sleep(0)
            brake.stop("enough")

        watching = asyncio.create_task(watch())
        ending = await start.play_new_run(prepared, open_store(tmp_path), RunContext(tally, brake))
        watching.cancel()
        return ending

    ref = asyncio.run(interrupted()).ref
    data = Result(ref).data
    assert data["run"]["matches"]["done"] % 4 != 0  # a block is four matches
    assert {row["matches"] for row in data["results"]} == {
        2 * (data["run"]["matches"]["done"] // 4)
    }


def test_matches_of_one_repeat_share_their_draws_and_count_as_one():
    """A round robin on one seed: whatever the task draws is the same for all, and no sign of how
    noisy the items are."""
    items = [f"i{n}" for n in range(11)]
    plan, scores = stable(StopTarget(target="these_items"), items, name="round_robin"), {}
    while True:
        specs, end = replay_plan(plan, scores)
        if end:
            break
        scores |= {
            n: {seat: {"mark": Random(spec.seed).choice([1, 10])} for seat in spec.seats}
            for n, spec in specs.items()
        }
    rows = rows_of(specs, scores)
    found = compute_anytime(
        ScoreTable.of(rows), "mark", Scale(1, 10, 0.5), 0.05, 2, repeats_of(specs), population=11
    )
    assert end.status == "items_exhausted"
    for low, high in found.intervals.values():
        assert low < 5.5 < high


def test_blocks_that_contradict_each_other_rank_nobody():
    rows = []
    for block in range(130):
        for alias, value in {
            "a": 0.9 if block < 60 else 0.1,
            "b": 0.1 if block < 60 else 0.9,
        }.items():
            rows.append(Observation(str(block), block, alias, "r", "m", value))
    found = compute_anytime(
        ScoreTable.of(rows), "m", Scale(0, 1, 0.1), 0.05, 1, dict.fromkeys(range(130), 1)
    )
    assert [pair.p for pair in found.pairs] == [None]


def test_a_race_in_which_each_proves_better_than_the_other_is_called_drift():
    leading = leading_metrics(Meeting().metrics({}), ["writer"], StopTarget(half_width=0.01))
    rule, rng = RaceRule(leading, ["a", "b", "c"], StopTarget(half_width=0.01)), Random(1)
    for block in range(400):
        a, b = (9, 2) if block < 60 else (2, 9)
        marks = {"a": a, "b": b, "c": 5.5}
        rule.add_block(
            {("writer", alias): [mark + rng.uniform(-1, 1)] for alias, mark in marks.items()}
        )
        if block == 59:
            assert rule.verdict().status == "converged"
    assert rule.verdict().status == "drift"


def test_drift_is_said_wherever_the_run_is_shown(tmp_path):
    calls = {"n": 0}

    def moody(view):
        calls["n"] += 1
        return json.dumps({"reason": "", "coins": 0 if calls["n"] < 500 else 10})

    result = parley.run(
        "public_goods",
        models={"a": moody, "b": "bot/free-rider"},
        until_stable=True,
        half_width=0.05,
        store=tmp_path,
        rounds=1,
    )
    assert result.data["run"]["stop"]["status"] == "drift"
    assert "drift: the scores of" in result.render()
    assert "the scores of a model drifted during the run" in result.render()


@dataclass(frozen=True)
class Bystander(Task):
    """A contestant's role that is not scored."""

    roles = {"writer": Role(), "reader": Role()}

    def metrics(self, seats):
        return [Metric("mark", 0, 10, epsilon=1, roles=("writer",))]

    async def play(self, referee, writer, reader):
        await referee.ask(reader, "Read.")
        return {writer: {"mark": 5}}


@pytest.mark.parametrize(
    "words", [("--plan", "round_robin"), ("--plan", "race", "--half-width", "5")]
)
def test_a_role_without_a_metric_is_no_breach(tmp_path, words):
    models = ("-m", "a=bot/random", "-m", "b=bot/random")
    command_line("run", f"{Path(__file__)}:Bystander", *models, *words, cwd=tmp_path)
    said = command_line("audit", "last", cwd=tmp_path)
    assert "replay" in said.out


def test_numbers_of_a_file_may_be_whole_floats_and_come_from_the_environment(tmp_path, monkeypatch):
    allowed = ["--allow-env", "HW", "--allow-env", "MB"]
    monkeypatch.setenv("HW", "6.5")
    monkeypatch.setenv("MB", "70")
    (tmp_path / "e.yaml").write_text(
        "kind: experiment\ntask: public_goods\nmodels: {a: {model: bot/random}, b: "
        "{model: bot/altruist}}\n"
        'stop: {half_width: "${HW}", max_blocks: "${MB}"}\n'
    )
    assert (
        command_line("run", "e.yaml", "--json", *allowed, cwd=tmp_path).json["stability"][
            "half_width"
        ]
        == 6.5
    )
    (tmp_path / "e.yaml").write_text((tmp_path / "e.yaml").read_text().replace('"${MB}"', "70.0"))
    command_line("run", "e.yaml", *allowed, cwd=tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE runs SET config = json_set(config, '$.stop.target', 'foo')",
        "UPDATE runs SET config = json_set(config, '$.stop.top', 1.5)",
        "UPDATE runs SET config = json_set(config, '$.max_blocks', -5)",
        "UPDATE runs SET config = json_set(config, '$.max_blocks', 2.5)",
        "UPDATE runs SET config = json_set(config, '$.stop', json('[]'))",
        "UPDATE scores SET value = 'abc' WHERE match = 1",
        (
            "UPDATE runs SET identity = json_set(identity, '$.metrics[0].low', 99, "
            "'$.metrics[0].high', 99)"
        ),
        "UPDATE runs SET status = NULL",
    ],
)
def test_a_tampered_run_is_an_error_or_a_breach_and_never_a_crash(tmp_path, change):
    ending = asyncio.run(start.play_new_run(prepared_race(max_blocks=12), open_store(tmp_path)))
    path = ending.ref.location
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET state = 'done'")
        connection.execute(change)
    connection.close()
    for words in (("show", path), ("resume", path), ("audit", path)):
        said = command_line(*words, cwd=tmp_path, code=None)
        assert "Traceback" not in said.err
    assert said.code in (1, 2, 5)
