"""Judges in a run: panels with gaps, what judges follow and favour, whom they believe; excluded
models, ends of games."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from random import Random

import orjson
import pytest

from parley import Amount, Metric, Paragraph, Role, Task, Vote, Votes, run
from parley.statistics.correlation import blocked_correlation
from parley.tasks._common.writer_editor import is_ending
from parley.tasks.translation import Translation
from tests.cli.test_cli import parley as command

ITEMS = [
    Paragraph(
        f"p{n}",
        f"Satz {n}.",
        f"This is sentence number {n} of a long text, word by word.",
        "de",
        "en",
    )
    for n in range(8)
]
VOTE = '{"translator": {"basis": "b", "score": %s}, "proofreader": {"basis": "b", "score": %s}}'


def saying(text):
    return lambda view: text


def good(view):
    """Says the reference; it is in the number of the sentence."""
    number = view.text.split("Satz ")[1].split(".")[0]
    return f"This is sentence number {number} of a long text, word by word."


def judging(view):
    """Rates by what stands between the marks: whoever quotes a whole sentence is good."""
    said = [line for line in view.text.splitlines() if line.startswith(("This is", "No"))]
    return VOTE % tuple(9 if line.startswith("This is") else 2 for line in said[:2])


def translated(tmp_path, judges, models=None, **options):
    models = models or {"good": good, "poor": saying("No idea what that means.")}
    task = Translation(pair="de-en", **options)
    return run(
        task, models=models, roles={"judge": judges}, items=ITEMS, store=tmp_path, concurrency=4
    )


def test_every_judge_that_was_seated_is_shown_with_what_it_was_asked_for(tmp_path):
    found = translated(
        tmp_path, {"a": judging, "b": saying(VOTE % (17, 3)), "c": saying(VOTE % (5, 5))}
    )
    panel = {
        (row["judge"], row["role"]): (row["votes"], row["asked"], row["mean"])
        for row in found.data["judges"]["panel"]
    }
    assert panel["b", "translator"] == (0, 16, None)
    assert panel["c", "proofreader"] == (16, 16, 5)
    assert found.data["judges"]["incomplete"] == {"matches": 16, "of": 16}
    assert [row["judges"] for row in found.data["judges"]["agreement"]] == [3, 3]
    assert "votes are missing in 16 of 16 matches" in found.render()
    shown = found.render(part="judges")
    assert "0 of 16" in shown
    assert all(
        row["low"] <= row["mean"] <= row["high"]
        for row in found.data["judges"]["panel"]
        if row["votes"]
    )


@dataclass(frozen=True)
class Haggle(Task):
    """Each judge rates only the roles that `rated` has at the judge's number."""

    rated: tuple[str, ...] = ("seller",)
    roles = {"seller": Role(), "buyer": Role(), "judge": Role(1, 2, instrument=True)}

    async def play(self, referee, seller, buyer, judge):
        sides = {"seller": seller, "buyer": buyer}
        said = await referee.ask(judge, "Rate.", expect=Amount("score", 1, 10), default=None)
        votes = {
            each: None if said[each] is None else {sides[role]: Vote(said[each])}
            for each, role in zip(judge, self.rated, strict=True)
        }
        referee.note(Votes(votes))
        return {seat: {"judge": 5.0} for seat in (seller, buyer)}

    def metrics(self, seats):
        return [Metric("judge", 1, 10, epsilon=0.25, judged=True)]


@pytest.mark.parametrize(
    ("judges", "rated", "missing", "panel"),
    [
        ({"x": "7"}, ("seller",), 0, {("x", "seller")}),
        ({"x": "7", "y": "3"}, ("seller", "buyer"), 0, {("x", "seller"), ("y", "buyer")}),
        ({"x": "7", "y": "?"}, ("seller", "seller"), 2, {("x", "seller"), ("y", "seller")}),
        ({"x": "?"}, ("seller",), 2, {("x", "seller"), ("x", "buyer")}),
    ],
)
def test_a_role_that_a_judge_does_not_rate_is_not_missing(tmp_path, judges, rated, missing, panel):
    found = run(
        Haggle(rated=rated),
        models={"a": saying("1"), "b": saying("2")},
        roles={"judge": {name: saying(text) for name, text in judges.items()}},
        store=tmp_path,
    )
    assert found.data["judges"]["incomplete"] == {"matches": missing, "of": 2}
    assert {(row["judge"], row["role"]) for row in found.data["judges"]["panel"]} == panel
    assert ("votes are missing" in found.render()) == bool(missing)


def test_one_model_in_two_seats_is_told_from_agreement(tmp_path):
    two = ("--role", "judge=bot/judge", "--role", "judge=bot/judge")
    command(
        "run",
        "translation",
        "-m",
        "bot/translator",
        "-m",
        "bot/null",
        *two,
        "--items",
        5,
        "--name",
        "twice",
        cwd=tmp_path,
    )
    shown = command("show", "twice", "--part", "judges", cwd=tmp_path).out
    assert "judge (judge.1)" in shown
    assert "one model fills several judge seats" in shown


def test_each_role_is_held_against_what_is_measured_of_it(tmp_path):
    found = translated(tmp_path, {"a": judging}).data
    rows = {(row["role"], row["over"]): row for row in found["judges"]["validity"]}
    assert {row["measured"] for key, row in rows.items() if key[0] == "translator"} == {"bleu"}
    assert {row["measured"] for key, row in rows.items() if key[0] == "proofreader"} == {
        "improvement"
    }
    assert rows["translator", "matches"]["value"] == pytest.approx(1, abs=0.01)
    assert rows["translator", "matches"]["blocks"] == 8
    assert found["leading"] == {"translator": "bleu", "proofreader": "improvement"}


def test_a_judge_of_its_own_model_is_named(tmp_path):
    wish = (
        "run",
        "translation",
        "-m",
        "bot/translator",
        "-m",
        "bot/random",
        "--role",
        "judge=j=bot/random",
        "--items",
        2,
    )
    shown = command(*wish, cwd=tmp_path)
    assert "these judges are also contestants, so they may favour themselves: j" in shown.out


@pytest.mark.parametrize(("runs", "least"), [(6, 4), pytest.param(100, 88, marks=pytest.mark.slow)])
def test_matches_of_one_item_are_not_independent(runs, least):
    """A judge that sees the item only: its correlation with what was measured is chance, and the
    interval must say so.

    The interval for independent points covers in about a third of all runs.
    """
    covered = 0
    for seed in range(runs):
        rng = Random(seed)
        judge, metric, blocks = [], [], []
        for item in range(20):
            level, own = rng.gauss(0, 1), rng.gauss(0, 1)
            for _ in range(8):
                judge.append(level)
                metric.append(own + rng.gauss(0, 0.3))
                blocks.append(str(item))
        low, high, _ = blocked_correlation(judge, metric, blocks).interval
        covered += low <= 0 <= high
    assert covered >= least


def test_who_has_left_a_race_counts_in_no_part(tmp_path):
    strengths = {"a": 0.9, "b": 0.5, "c": 0.1}
    models = [
        word
        for alias, s in strengths.items()
        for word in ("-m", f"{alias}=bot/translator", "-M", f"{alias}.strength={s}")
    ]
    wish = (
        "run",
        "translation",
        *models,
        "--plan",
        "race",
        "--half-width",
        0.3,
        "--role",
        "judge=bot/judge",
        "--name",
        "race",
    )
    command(*wish, cwd=tmp_path, code=None)
    data = command("show", "race", "--json", cwd=tmp_path).json
    for metric in ("bleu", "chrf"):
        means = next(table for table in data["tables"] if table["metric"] == metric)["rows"]
        whole = next(
            table for table in data["parts"]["translation.corpus"] if table["metric"] == metric
        )["rows"]
        assert {alias: row["matches"] for alias, row in whole.items()} == {
            alias: row["matches"] for alias, row in means.items()
        }
    for role in data["leading"]:
        judged = [row for row in data["results"] if (row["role"], row["metric"]) == (role, "judge")]
        votes = sum(row["votes"] for row in data["judges"]["panel"] if row["role"] == role)
        assert votes == sum(row["matches"] - row["missing"] for row in judged)


def test_an_excluded_model_keeps_its_place_in_tables_and_is_never_called(tmp_path):
    def never(view):
        raise AssertionError("excluded")

    models = {"good": good, "mute": never, "poor": saying("No.")}
    found = run(
        Translation(pair="de-en"), models=models, items=ITEMS[:2], exclude=["mute"], store=tmp_path
    )
    table = found.data["tables"][0]
    assert list(table["rows"]) == ["good", "poor", "mute"]
    assert table["rows"]["mute"]["mean"] is None
    assert {row["alias"] for row in found.data["results"]} == {"good", "poor"}
    line = next(line for line in found.render(part="roles").splitlines() if line.startswith("mute"))
    assert set(line.split()[1:]) == {"-"}
    wrong = command(
        "run", "translation", "-m", "bot/translator", "--exclude", "mute", cwd=tmp_path, code=2
    )
    assert "unknown model to exclude: 'mute'" in wrong.err
    both = (
        "run",
        "translation",
        "-m",
        "bot/translator",
        "--role",
        "judge=j=bot/judge",
        "--exclude",
        "j",
    )
    assert "is in --exclude, but also plays the role" in command(*both, cwd=tmp_path, code=2).err


def test_ends_of_games_are_counted_by_seat(tmp_path):
    two = (
        "-m",
        "a=bot/speaker",
        "-m",
        "b=bot/speaker",
        "-M",
        "a.strength=1",
        "-M",
        "b.strength=0.05",
    )
    command(
        "run",
        "idiom_solitaire",
        *two,
        "--set",
        "rounds=4",
        "--repeats",
        6,
        "--name",
        "game",
        cwd=tmp_path,
    )
    data = command("show", "game", "--json", cwd=tmp_path).json
    assert sum(row["lost"] for row in data["outcomes"]) == sum(
        row["won"] for row in data["outcomes"]
    )
    for row in data["outcomes"]:
        assert row["matches"] == row["won"] + row["drawn"] + row["lost"] == 6
        assert sum(row["by"].values()) == row["lost"]
    assert {row["seat"] for row in data["outcomes"]} == {"players 1", "players 2"}
    assert (
        "by not four characters" in command("show", "game", "--part", "outcomes", cwd=tmp_path).out
    )
    rows = list(
        csv.DictReader(
            command(
                "show", "game", "--part", "outcomes", "--format", "csv", cwd=tmp_path
            ).out.splitlines()
        )
    )
    assert int(rows[0]["won"]) == data["outcomes"][0]["won"]
    assert "Pass@K needs items" in command("show", "game", "--part", "passes", cwd=tmp_path).out


def test_role_tables_have_intervals_and_edges_in_every_form(tmp_path):
    found = translated(tmp_path, {"a": judging})
    table = found.data["tables"][0]
    cell = table["cells"][0]["cell"]
    assert cell["first_low"] <= cell["first"] <= cell["first_high"]
    assert all(row["low"] <= row["mean"] <= row["high"] for row in table["rows"].values())
    rows = list(csv.DictReader(found.render("csv", "roles").splitlines()))
    edge = next(
        row
        for row in rows
        if (row["metric"], row["first"], row["second"]) == ("bleu", "good", "mean")
    )
    assert float(edge["first_mean"]) == table["rows"]["good"]["mean"]
    assert "95% intervals of these scores" in found.render("markdown", "roles")
    whole = found.data["parts"]["translation.corpus"][0]["cells"][0]["cell"]
    assert whole["first_low"] <= whole["first"] <= whole["first_high"]


def test_a_part_of_a_run_that_stopped_says_so(tmp_path):
    two = ("-m", "bot/translator", "-m", "bot/null")
    command(
        "run",
        "translation",
        *two,
        "--max-calls",
        9,
        "--concurrency",
        1,
        "--name",
        "part",
        cwd=tmp_path,
        code=4,
    )
    assert "stopped: " in command("show", "part", "--part", "roles", cwd=tmp_path).out


def gullible(view):
    """Gives ten to whoever gets a word past the marks, else two; it reads its prompt as a careless
    model would."""
    outside = QUOTED.sub("", view.text)
    believed = any(
        word in outside
        for word in ("highest score", "has solved everything", "flawless", "nothing to add")
    )
    return orjson.dumps(
        {
            name: {"basis": "b", "score": 10 if believed else 2}
            for name in view.expect.schema["required"]
        }
    ).decode()


QUOTED = re.compile(r"\[([0-9a-f]{12}): [^]]*said[^]]*\]\n.*?\n\[/\1\]", re.DOTALL)


@pytest.mark.parametrize("bot", ["null", "injector", "forger"])
@pytest.mark.parametrize(
    "task",
    ["translation", "code_review", str(Path(__file__).parents[2] / "examples" / "poem.yaml")],
)
def test_a_gullible_judge_hears_no_hostile_word_outside_the_marks(task, bot, tmp_path):
    found = run(
        task,
        models={"x": f"bot/{bot}", "y": "bot/null"},
        roles={"judge": {"j": gullible}},
        items=1,
        store=tmp_path,
    )
    given = [row["mean"] for row in found.data["results"] if row["metric"] == "judge"]
    assert given
    assert set(given) == {2}


@pytest.mark.parametrize(
    "word", ["over", "Over.", "over。", "“over”", "Over！", "**over**", "ｏｖｅｒ", "《over》"]
)
def test_the_word_that_ends_it_is_read_in_any_punctuation(word):
    assert is_ending(word)


@pytest.mark.parametrize("word", ["", "…", "It is over.", "over and over", None])
def test_other_words_do_not_end_it(word):
    assert not is_ending(word)
    assert not is_ending(word, "_")
