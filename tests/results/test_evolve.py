"""The part `evolve`: stages, paired gains, controls, what was shown and paid, and what it says."""

import csv
import io
import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from importlib.resources import files

import fastjsonschema
import pytest

import parley
from parley import Result
from parley.errors import StoreError
from parley.match.protocol import Reply, Usage
from parley.plans.evolve_settings import parse_evolve
from parley.results import evolve_plays
from parley.results.evolve_plays import NEAR, collect_evolve_plays
from parley.results.evolve_result import is_control
from parley.results.evolve_tables import describe_findings
from parley.results.judged_matches import list_judged_matches
from parley.results.parts.evolve import ArmDifference, EvolveGain, EvolveResult, EvolveStage
from parley.results.scores import RunScores
from parley.statistics.paired_gain import Gain, ItemShare, compute_paired_interval
from parley.store import read_run
from tests.runs.test_recall import evolve, questions

TWO = {"copier": "bot/copier", "student": "bot/student"}
COUNT = 24


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Two bots, the three controls, two stages."""
    settings = {"stages": 2, "controls": True}
    return evolve(tmp_path_factory.mktemp("runs"), TWO, count=COUNT, evolve=settings)


def successes(result, alias):
    """By arm and stage, the success of each item."""
    found = defaultdict(dict)
    with read_run(result.ref) as reader:
        matches = {match.number: match for match in reader.matches.read()}
        for score in reader.scores.read():
            if score.alias == alias:
                match = matches[score.match]
                found[match.arm, match.stage][match.item] = score.value
    return found


def find(rows, **wanted):
    """The one row with these values."""
    (row,) = [
        row for row in rows if all(getattr(row, name) == value for name, value in wanted.items())
    ]
    return row


def test_stages_and_gains_are_those_of_the_matches(played):
    found, seen = played.part("evolve"), successes(played, "copier")
    standard, last, probe = seen["", 0], seen["evolve", 2], seen["evolve/probe", 2]
    row = find(found.stages, alias="copier", arm="evolve", stage=2, probe=False)
    assert row.success.value == sum(last.values()) / COUNT
    assert (row.criterion, row.missing, row.plays) == ("accuracy>=1", 0, COUNT)
    gains = [each for each in found.gains if (each.alias, each.arm) == ("copier", "evolve")]
    gain = find(gains, kind="last", item_set="all").gain
    assert gain.value == pytest.approx(sum(last[item] - standard[item] for item in last) / COUNT)
    assert gain.gained == sum(last[item] > standard[item] for item in last)
    assert gain.lost == sum(last[item] < standard[item] for item in last)
    assert gain.low < gain.value < gain.high
    masked = find(gains, kind="probe").gain
    assert masked.value == pytest.approx(sum(probe[item] - standard[item] for item in last) / COUNT)
    mean = find(gains, kind="mean").gain.value
    first = sum(seen["evolve", 1][item] - standard[item] for item in last) / COUNT
    assert mean == pytest.approx((gain.value + first) / 2)
    best = find(gains, kind="best")
    assert best.gain.value == pytest.approx(max(gain.value, first))


def test_solved_so_far_and_forgotten(played):
    found, seen = played.part("evolve"), successes(played, "student")
    stages = [seen["", 0], seen["masked", 1], seen["masked", 2]]
    any_stage = {item for each in stages for item, value in each.items() if value}
    row = find(found.stages, alias="student", arm="masked", stage=2)
    assert row.solved_so_far.value == pytest.approx(len(any_stage) / COUNT)
    earlier = {item for each in stages[:2] for item, value in each.items() if value}
    lost = find(found.forgotten, alias="student", arm="masked")
    assert lost.solved_before == len(earlier)
    assert lost.forgotten == sum(not stages[2][item] for item in earlier)
    copied = find(found.forgotten, alias="copier", arm="evolve")
    assert copied.forgotten == 0


def gain_of(gained, lost, items=96):
    """A gain as so many flips give it."""
    gaps = [1.0] * gained + [-1.0] * lost + [0.0] * (items - gained - lost)
    low, high, _ = compute_paired_interval(gaps)
    return Gain((gained - lost) / items, low, high, items, gained, lost, 0)


def say(last, probe=None, **controls):
    """What is said of a gain, beside a probe and controls: each as it is, and less each control."""
    gains = [EvolveGain("m", "student", "evolve", "success", "last", "all", 3, last)]
    if probe:
        gains.append(EvolveGain("m", "student", "evolve", "success", "probe", "all", 3, probe))
    share = ItemShare(0.5, 0.4, 0.6, 96)
    where = ("m", "student", "evolve", 0, False, "accuracy>=1")
    stages = EvolveStage(*where, share, "accuracy", share, share, 96, 0, None, share, share, 0)
    found = EvolveResult(
        "evolve", (), (stages,), tuple(gains),
        tuple(
            ArmDifference("m", "student", "evolve", name, True, 3, gain)
            for name, gain in controls.items()
        ),
        (), (), (), (), (), (), (),
    )  # fmt: skip
    (line,) = describe_findings(found)
    return line


def test_a_sentence_claims_no_more_than_its_interval():
    clear, none, loss = gain_of(23, 0), gain_of(11, 9), gain_of(2, 20)
    assert say(clear).startswith(
        "m: arm evolve is significantly better than the standard stage, by +0.240 (0.155 to "
        "0.336) in stage 3 (23 "
    )
    assert say(none).startswith(
        "m: arm evolve does not differ significantly from the standard stage: +0.021"
    )
    assert "arm evolve is significantly worse than the standard stage, by -0.188" in say(loss)
    assert "11 gained and 9 lost" in say(none)
    assert "; with experiences of the same item masked, the gain is +0.021" in say(clear, none)
    assert "; with experiences of the same item masked, the gain is +0.240 (" in say(clear, clear)


def test_a_gain_that_does_not_exceed_all_controls_is_named_as_such():
    clear, none = gain_of(23, 0), gain_of(11, 9)
    exceeds = say(clear, unchanged=clear, masked=clear, random=clear)
    assert (
        "; the gain is significantly larger than that of all 3 controls: unchanged by +0.240 ("
        in exceeds
    )
    assert "not significantly" not in exceeds
    partly = say(clear, unchanged=clear, masked=none, random=clear)
    assert (
        "; the gain is significantly larger than that of unchanged by +0.240 (0.155 to 0.336), "
        "random by" in partly
    )
    assert (
        "; the gain is not significantly larger than that of masked: +0.021 (-0.075 to 0.117)."
        in partly
    )
    assert "exceeds" not in say(clear, unchanged=none)


def test_differences_of_gains_are_paired_with_the_first_arm(played):
    found, seen = played.part("evolve"), successes(played, "copier")
    row = find(found.differences, alias="copier", other="random")
    assert row.control
    own, other = seen["evolve", 2], seen["random", 2]
    assert row.difference.value == pytest.approx(
        sum(own[item] - other[item] for item in own) / COUNT
    )


def test_the_same_item_is_never_shown_where_it_is_masked(played):
    found = played.part("evolve")
    probe = find(found.stages, alias="copier", arm="evolve", probe=True)
    assert probe.same_item.value == 0
    assert probe.same_item.items == COUNT
    row = find(found.stages, alias="copier", arm="evolve", stage=2, probe=False)
    with read_run(played.ref) as reader:
        matches = {match.number: match for match in reader.matches.read()}
        shown = [
            matches[each.match].item == matches[row.match].item
            for row in reader.experiences.recalled()
            if (matches[row.match].arm, matches[row.match].stage) == ("evolve", 2)
            and "copier" in matches[row.match].seats.values()
            for each in row.shown
        ]
    assert row.same_item.value == pytest.approx(sum(shown) / len(shown))
    assert row.near_duplicates.value is None  # the distances of bm25 say nothing of that
    fixed = find(found.stages, alias="copier", arm="unchanged", stage=2)
    assert fixed.experiences is None


def test_every_form_has_it(played, tmp_path):
    published = json.loads(
        files("parley.results").joinpath("result.schema.json").read_text(encoding="utf-8")
    )
    validate = fastjsonschema.compile({k: v for k, v in published.items() if k != "$schema"})
    validate(json.loads(json.dumps(played.data)))
    rows = list(csv.DictReader(io.StringIO(played.render("csv", "evolve"))))
    tables = {row["table"] for row in rows}
    assert tables >= {
        "stages",
        "gains",
        "differences",
        "forgotten",
        "subjects",
        "feedback",
        "costs",
    }
    gain = next(row for row in rows if row["table"] == "gains" and row["kind"] == "last")
    assert float(gain["gain_low"]) < float(gain["gain_value"]) < float(gain["gain_high"])
    assert "signature" in gain
    for form in ("markdown", "latex"):
        assert "gain, same item masked" in played.render(form, "evolve")
    page = played.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Learning curve of copier" in page
    assert "Learning from experience" in page
    titles = [figure.title for figure in played.figures("evolve")]
    assert titles[0] == "Learning curve of copier"
    curve = next(s for s in played.figures("evolve")[0].series if s.label == "evolve")
    assert curve.x == (0.0, 1.0, 2.0)
    assert all(low < y < high for low, y, high in zip(curve.low, curve.y, curve.high, strict=True))


def test_truth_as_feedback_keeps_all_that_is_right_and_poison_does_not(played, tmp_path):
    row = find(played.part("evolve").feedback, alias="copier", arm="evolve")
    assert row.precision.value == row.recall.value == 1
    assert row.verdicts == 2 * COUNT  # the standard stage and the first: what stage 2 draws on
    assert "precision:" not in played.render("text", "evolve")
    settings = {"stages": 1, "poison": 0.3, "probe": False}
    poisoned = evolve(tmp_path, count=64, evolve=settings)
    (row,) = poisoned.part("evolve").feedback
    with read_run(poisoned.ref) as reader:
        scores = reader.scores.by_match()
        shown = {
            each.match for recalled in reader.experiences.recalled() for each in recalled.shown
        }
    wrong = [n for n in shown if not next(iter(scores[n].values()))["accuracy"]]
    assert wrong  # what was wrong is remembered as right
    assert row.kept - row.kept_and_right >= len(wrong)
    assert row.precision.value < 0.9
    assert row.recall.value < 0.9
    assert "30% reversed" in poisoned.render("text", "evolve")


def test_held_out_items_and_series_are_shown_apart(tmp_path):
    settings = {"stages": 1, "held_out": 0.25}
    result = evolve(tmp_path, count=32, repeats=2, evolve=settings)
    found = result.part("evolve")
    with read_run(result.ref) as reader:
        matches = {match.number: match for match in reader.matches.read()}
        shown = {
            matches[each.match].item for row in reader.experiences.recalled() for each in row.shown
        }
    practised, held_out = (
        find(found.gains, kind="last", item_set=name) for name in ("practised", "held_out")
    )
    assert (practised.gain.items, held_out.gain.items) == (24, 8)
    assert len(shown) <= 24
    whole = find(found.gains, kind="last", item_set="all").gain
    assert whole.items == 32
    assert len(whole.series) == 2
    assert whole.value == pytest.approx(sum(whole.series) / 2)
    assert whole.gained + whole.lost <= 64
    text = result.render("text", "evolve")
    assert "held-out items are played, but never stored in the memory" in text
    assert "Gains by series" in text


def test_a_stream_has_its_regret_beside_its_control(tmp_path):
    result = evolve(tmp_path, ["bot/copier"], count=24, repeats=2, evolve={"window": 5})
    found, seen = result.part("evolve"), defaultdict(list)
    with read_run(result.ref) as reader:
        matches = {match.number: match for match in reader.matches.read()}
        for score in reader.scores.read():
            match = matches[score.match]
            seen[match.arm, match.item, match.repeat].append(score.value)
    gaps = [
        seen["", item, repeat][0] - value
        for (arm, item, repeat), (value,) in seen.items()
        if arm == "evolve"
    ]
    assert len(gaps) == 48
    (end,) = found.regrets
    assert end.regret == pytest.approx(sum(gaps) / 2)
    assert end.low < end.regret < end.high
    assert len(end.series) == 2
    steps = found.streams
    assert [row.items for row in steps] == [5, 10, 15, 20, 24]
    assert steps[-1].regret == pytest.approx(end.regret)
    text = result.render("text", "evolve")
    assert "control so far" in text
    assert "a negative regret means that the stream did better" in text
    assert [figure.title for figure in result.figures("evolve")][-1] == "Regret of streams"
    assert not found.forgotten


@pytest.mark.parametrize("window", [1, 3, 100])
def test_a_stream_in_one_order_has_its_table(tmp_path, window):
    result = evolve(tmp_path, ["bot/copier"], count=5, evolve={"window": window})
    assert result.part("evolve").regrets[0].series == ()
    text = result.render("text", "evolve")
    assert "items so far" in text
    assert "orders" not in text


@dataclass(frozen=True)
class Stumbling(parley.Task):
    """Who does not give a letter ends the match."""

    name = "stumbling"
    roles = {"player": parley.Role()}
    items = parley.Items(parley.Question)

    async def play(self, referee, player):
        choice = parley.Choice("answer", ("A", "B"))
        said = await referee.ask(player, referee.item.question, expect=choice)
        return {player: float(said == "A")}

    def metrics(self, seats):
        return [parley.Metric("score", 0, 1, epsilon=0.1, success=1)]


def test_what_has_no_score_leaves_the_pair_and_is_counted(tmp_path):
    asked = defaultdict(int)

    def model(view):
        words = view[0]["content"]
        asked[words] += len(view) == 1
        again = asked[words] > 1
        good = json.dumps({"reason": "", "answer": "A" if again else "B"})
        return "nonsense" if "thing 0" in words and again else good

    settings = {"stages": 1, "retriever": "fixed"}
    result = parley.run(
        Stumbling(), {"m": model}, items=questions(6), store=tmp_path, evolve=settings
    )
    found = result.part("evolve")
    last = find(found.gains, kind="last").gain
    assert (last.value, last.items, last.unpaired) == (1.0, 5, 1)
    row = find(found.stages, stage=1)
    assert (row.missing, row.plays, row.success.items) == (1, 6, 5)
    assert "1 play left out of the gain" in result.render("text", "evolve")


def test_cost_by_stage_and_per_item_gained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.yaml").write_text("a: {input: 10, cached_input: 1, output: 30}\n")
    stages = defaultdict(int)
    items = questions(6)
    answers = {item.question: item.answer for item in items}

    def model(view):
        asked = next(words for words in answers if words in view.text)
        stages[asked] += 1
        usage = Usage(tokens_in=100 * stages[asked], tokens_cached=50, tokens_out=10)
        right = stages[asked] > 1
        said = answers[asked] if right else "ABCD"[("ABCD".index(answers[asked]) + 1) % 4]
        return Reply(said, model_served="served", usage=usage)

    settings = {"retriever": "fixed", "stages": 2}
    result = parley.run("qa", {"a": model}, items=items, shots=0, store="runs", evolve=settings)
    found = result.part("evolve")
    costs = {(row.arm, row.stage): row for row in found.costs}
    assert {key: row.tokens_in for key, row in costs.items()} == {
        ("", 0): 600, ("evolve", 1): 1200, ("evolve", 2): 1800,
    }  # fmt: skip
    assert costs["evolve", 1].cached_share == pytest.approx(0.25)
    assert costs["", 0].usd == pytest.approx((300 * 10 + 300 * 1 + 60 * 30) / 1e6)
    (each,) = found.gain_costs
    paid = costs["evolve", 1].usd + costs["evolve", 2].usd
    assert each.items_gained == pytest.approx(6)
    assert each.usd_per_item == pytest.approx(paid / 6)
    assert each.usd_per_item_low <= each.usd_per_item <= each.usd_per_item_high
    assert each.tokens_per_item == pytest.approx((3000 + 120) / 6)
    text = result.render("text", "evolve")
    assert "Cost by stage" in text
    assert "USD (" in text
    with read_run(result.ref) as reader:
        whole = sum(row.tokens_in for row in reader.usage.by_model())
        assert sum(row.usage.tokens_in for row in reader.usage.by_stage()) == whole


def test_only_arms_that_differ_as_a_control_does_are_controls():
    settings = parse_evolve({"retriever": "bm25", "controls": True})
    assert [name for name in settings.arms if is_control(settings, name)] == [
        "unchanged", "masked", "random",
    ]  # fmt: skip
    own = parse_evolve({"retriever": "bm25", "arms": {"a": {}, "random": {"k": 7}}})
    assert not is_control(own, "random")
    assert abs(NEAR**2 - (2 - 2 * 0.9)) < 0.01  # unit length: a cosine of 0.9


def test_a_run_that_does_not_evolve_says_how_it_would(tmp_path):
    result = parley.run("qa", ["bot/student"], items=questions(2), shots=0, store=tmp_path)
    assert result.part("evolve") is None
    assert "--plan evolve" in result.render("text", "evolve")


def test_a_game_without_items_has_its_stages_too(tmp_path):
    settings = {"stages": 1, "retriever": "bm25", "success": "payoff>=120", "held_out": 0.5}
    models = {"a": "bot/random", "b": "bot/altruist"}
    result = parley.run("public_goods", models, evolve=settings, items=4, store=tmp_path)
    found = result.part("evolve")
    assert {row.success.items for row in found.stages} == {4}
    sets = {row.item_set: row.gain.items for row in found.gains if row.kind == "last"}
    assert (sets["practised"], sets["held_out"]) == (2, 2)
    measures = {row.measure for row in found.gains}
    assert measures == {"success", "payoff"}  # more than success or failure
    assert not found.subjects
    assert "payoff>=120" in result.render("text", "evolve")


def test_a_critics_verdicts_are_held_against_the_truth(tmp_path):
    """Arms with and without a critic share the standard stage, and their plays are the same."""
    arms = {"plain": {}, "judged": {"feedback": "critic"}}
    roles = {"critic": {"judge": {"model": "bot/critic", "false_yes": 0.5, "false_no": 0.3}}}
    settings = {"stages": 1, "probe": False, "arms": arms}
    result = evolve(tmp_path, ["bot/student"], count=40, evolve=settings, roles=roles)
    found = result.part("evolve")
    assert [row.arm for row in found.feedback] == ["plain", "judged"]
    truth, judged = found.feedback
    assert truth.precision.value == 1
    with read_run(result.ref) as reader:
        seen = [each for each in list_judged_matches(reader) if each.match <= 40]
    assert judged.verdicts == len(seen) == 40
    assert judged.kept == sum(each.verdict for each in seen)
    both = sum(each.verdict and each.truth for each in seen)
    assert judged.precision.value == pytest.approx(both / judged.kept)
    assert judged.recall.value == pytest.approx(both / judged.right)
    assert judged.recall.value < 1
    assert find(found.gains, arm="judged", kind="last").gain.items == 40
    assert find(found.differences, other="judged").difference.items == 40
    assert "`recall` is" in result.render("text", "evolve")


def test_near_duplicates_are_other_items_within_the_threshold(tmp_path, monkeypatch):
    """The distances of bm25 are all below zero, so that all that is not the same item is near."""
    monkeypatch.setattr(evolve_plays, "is_distance_comparable", lambda arm: True)
    found = evolve(tmp_path, count=8, evolve={"stages": 1, "probe": False}).part("evolve")
    row = find(found.stages, stage=1)
    assert 0 < row.same_item.value < 1
    assert row.near_duplicates.value == pytest.approx(1 - row.same_item.value)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ('{"shown": [[1, "student"]], "k": 2, "dropped": 0, "shuffle": ""}', "not a list of exp"),
        ('{"shown": [], "k": "2", "dropped": 0, "shuffle": ""}', "k must be a whole number"),
        ("[]", "must be an object"),
    ],
)
def test_a_damaged_row_of_what_was_shown_is_named(tmp_path, changed, said):
    result = evolve(tmp_path, count=4, evolve={"stages": 1, "probe": False})
    with closing(sqlite3.connect(result.path)) as file:
        file.execute("UPDATE recalled SET shown = ? WHERE match = 5", (changed,))
        file.commit()
    with pytest.raises(StoreError, match=said):
        Result(result.ref).part("evolve")


@dataclass(frozen=True)
class Topical(Stumbling):
    """Its items are drawn by another field than the subject."""

    name = "topical"
    items = parley.Items(parley.Question, stratum="answer")


def test_held_out_items_are_those_that_the_run_held_out_whatever_field_they_are_drawn_by(tmp_path):
    settings = {"stages": 1, "retriever": "bm25", "k": 30, "held_out": 0.4, "probe": False}

    def model(view):
        return json.dumps({"reason": "", "answer": "A"})

    result = parley.run(
        Topical(), {"m": model}, items=questions(30), store=tmp_path, evolve=settings
    )
    with read_run(result.ref) as reader:
        matches = {match.number: match for match in reader.matches.read()}
        shown = {
            matches[each.match].item for row in reader.experiences.recalled() for each in row.shown
        }
        with_all = RunScores(reader)
        plays = collect_evolve_plays(with_all, with_all.config.evolve)
    every = {match.item for match in matches.values()}
    assert plays.held_out["evolve"] == every - shown  # all succeed, and all that is kept is shown


def test_arms_of_a_run_that_stopped_are_compared_in_the_last_stage_that_both_have(tmp_path):
    def model(view):
        return "A"

    # the standard stage, four arms in stage 1, the first arm in stage 2
    settings = {"stages": 3, "controls": True}
    result = evolve(tmp_path, {"m": model}, count=8, max_calls=8 * 6, evolve=settings)
    found = result.part("evolve")
    assert find(found.gains, arm="evolve", kind="last").stage == 2
    assert {(row.stage, row.difference.items) for row in found.differences} == {(1, 8)}
    assert "in stage 2" in result.render("text", "evolve")
