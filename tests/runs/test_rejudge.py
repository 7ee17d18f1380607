"""Judging again: no contestant is asked, nothing is overwritten, what judges change is told; kills,
tampering, wrong wishes."""

import asyncio
import hashlib
import sqlite3
from dataclasses import dataclass

import pytest

from parley import (
    Choice,
    Fields,
    Metric,
    ParleyError,
    RecordEnded,
    Result,
    Role,
    Task,
    UsageError,
    Votes,
    rejudge,
    resume,
    run,
    run_async,
)
from parley.audit.audit import audit_run
from parley.errors import ParticipantError
from parley.runs.rejudge import experiment_for_judges, prepare_judging
from parley.runs.start import play_new_run
from parley.store import find_run, open_store
from parley.testing.server import Server, says
from tests.cli.test_cli import parley as command

MARK = Fields({"score": {"type": "integer", "minimum": 1, "maximum": 10}})


@dataclass(frozen=True)
class Essay(Task):
    """A writer writes, an editor who is not ranked comments, judges mark what the writer made of
    it."""

    roles = {
        "writer": Role(),
        "editor": Role(0, 1, instrument=True),
        "judge": Role(0, 3, instrument=True),
    }

    def metrics(self, seats):
        return [
            Metric("marks", 1, 10, epsilon=1, judged=True),
            Metric("letters", 0, 1000, epsilon=10),
        ]

    async def play(self, referee, writer, editor, judge):
        text = await referee.ask(writer, "Write a line.")
        if editor:
            said = await referee.ask(editor, f"Comment on this:\n{referee.quote(text, writer)}")
            text = await referee.ask(writer, f"Again, please:\n{referee.quote(said, editor)}")
        if not judge:
            return {writer: {"letters": len(text)}}
        marks = await referee.ask(
            judge, f"Mark this:\n{referee.quote(text, writer)}", expect=MARK, default=None
        )
        given = [mark["score"] for mark in marks.values() if mark]
        referee.note(Votes({seat: {writer: mark} for seat, mark in marks.items() if mark}))
        return {writer: {"marks": sum(given) / len(given) if given else None, "letters": len(text)}}


@dataclass(frozen=True)
class Interview(Task):
    """A host decides after every answer whether to go on; it is a judge that contestants never
    hear."""

    catches: bool = True
    roles = {"guest": Role(), "host": Role(instrument=True)}

    def metrics(self, seats):
        return [Metric("answers", 0, 9, epsilon=1)]

    async def play(self, referee, guest, host):
        answers = 0
        for number in range(1, 6):
            try:
                said = await referee.ask(guest, f"Question {number}?")
            except RecordEnded:
                if not self.catches:
                    raise
                break
            answers += 1
            if (
                await referee.ask(
                    host, referee.quote(said, guest), expect=Choice("next", ("on", "stop"))
                )
                == "stop"
            ):
                break
        return {guest: answers}


def marking(score):
    """A judge that gives everybody the same mark."""
    return lambda view: f'{{"score": {score}}}'


def hosting(last):
    """A host that stops after so many answers."""
    return lambda view: f'{{"next": "{"stop" if view.reply_count + 1 >= last else "on"}"}}'


WRITERS = {
    "short": lambda view: "A line.",
    "long": lambda view: "A line that is longer than the other one.",
}


def essay(tmp_path, **roles):
    return run(Essay(), models=WRITERS, roles=roles, repeats=3, store=tmp_path, seed=4)


def means(result, metric):
    return {row["alias"]: row["mean"] for row in result.data["results"] if row["metric"] == metric}


def test_other_judges_score_the_same_matches_and_no_contestant_is_needed(tmp_path):
    first = essay(tmp_path, judge={"soft": marking(9)}, editor={"editor": lambda view: "Shorter."})
    kept = hashlib.sha256(first.path.read_bytes()).digest()
    second = rejudge(
        first.path,
        {"judge": {"hard": marking(2), "fair": marking(4)}},
        task=Essay(),
        store=tmp_path,
    )
    assert means(second, "marks") == {"short": 3, "long": 3}
    assert means(second, "letters") == means(first, "letters")
    assert hashlib.sha256(first.path.read_bytes()).digest() == kept
    assert {row["alias"]: row["calls"] for row in second.data["cost"]} == {"hard": 6, "fair": 6}
    told = second.data["rejudged"]
    assert (told["run"], told["roles"]) == (first.data["run"]["id"], ["judge"])
    assert {
        (row["alias"], row["before"], row["now"], row["difference"]) for row in told["models"]
    } == {
        ("short", 9, 3, -6),
        ("long", 9, 3, -6),
    }
    assert f"rejudged:{first.data['run']['id']}" in second.data["results"][0]["signature"]
    assert "contestants were not called again" in second.render()
    assert first.data["run"]["id"] in second.render(part="rejudged")
    assert audit_run(second.ref).breaches == []


def test_a_run_without_judges_can_be_judged_later(tmp_path):
    first = essay(tmp_path)
    assert means(first, "marks") == {"short": None, "long": None}
    second = rejudge(first.path, {"judge": {"fair": marking(5)}}, task=Essay(), store=tmp_path)
    assert means(second, "marks") == {"short": 5, "long": 5}
    assert {row["before"] for row in second.data["rejudged"]["models"]} == {None}
    third = rejudge(second.path, {"judge": {"late": marking(6)}}, task=Essay(), store=tmp_path)
    assert {row["before"] for row in third.data["rejudged"]["models"]} == {5}


def test_a_judge_that_fails_stops_it_and_going_on_asks_only_for_the_rest(tmp_path):
    first, asked = essay(tmp_path), []

    def failing(view):
        if len(asked) >= 3:
            raise ParticipantError("no more")
        asked.append(view)
        return '{"score": 7}'

    second = rejudge(
        first.path, {"judge": {"j": failing}}, task=Essay(), store=tmp_path, concurrency=1
    )
    assert second.state == "stopped"
    assert len(asked) == 3
    done = resume(second.path, functions={"j": marking(7)}, task=Essay())
    assert (done.state, means(done, "marks")) == ("done", {"short": 7, "long": 7})
    assert {row["alias"]: row["calls"] for row in done.data["cost"]} == {"j": 6}


def test_judges_see_no_reply_of_those_before_them(tmp_path):
    first, seen = essay(tmp_path, judge={"soft": marking(9)}), []
    rejudge(
        first.path,
        {"judge": {"j": lambda view: seen.append(view) or '{"score": 1}'}},
        task=Essay(),
        store=tmp_path,
    )
    assert all(len(view.turns) == 1 and '"score": 9' not in view.turns[0].content for view in seen)


def test_where_a_record_ends_a_rule_may_end_too(tmp_path):
    first = run(
        Interview(),
        models={"g": lambda view: "Well."},
        roles={"host": {"h": hosting(3)}},
        repeats=2,
        store=tmp_path,
    )
    assert means(first, "answers") == {"g": 3}
    shorter = rejudge(first.path, {"host": {"brief": hosting(1)}}, task=Interview(), store=tmp_path)
    longer = rejudge(
        first.path, {"host": {"patient": hosting(5)}}, task=Interview(), store=tmp_path
    )
    assert (means(shorter, "answers"), means(longer, "answers")) == ({"g": 1}, {"g": 3})
    assert {row["difference"] for row in shorter.data["rejudged"]["models"]} == {-2}
    assert audit_run(shorter.ref).breaches == audit_run(longer.ref).breaches == []


def test_where_a_rule_cannot_end_the_score_is_missing(tmp_path):
    task = Interview(catches=False)
    first = run(
        task,
        models={"g": lambda view: "Well."},
        roles={"host": {"h": hosting(2)}},
        repeats=2,
        store=tmp_path,
    )
    longer = rejudge(first.path, {"host": {"patient": hosting(5)}}, task=task, store=tmp_path)
    assert means(longer, "answers") == {"g": None}
    assert {match["state"] for match in longer.matches} == {"aborted"}
    assert "the recorded match ends here" in longer.matches[0]["reason"]


def test_an_instrument_that_contestants_hear_cannot_be_replaced(tmp_path):
    first = essay(tmp_path, editor={"editor": lambda view: "Shorter."})
    with pytest.raises(ParleyError, match="differs from the recorded prompt"):
        rejudge(
            first.path, {"editor": {"other": lambda view: "Longer."}}, task=Essay(), store=tmp_path
        )


def test_a_reply_that_was_tampered_with_is_not_judged(tmp_path):
    first = essay(tmp_path, editor={"editor": lambda view: "Shorter."}, judge={"soft": marking(9)})
    with sqlite3.connect(first.path) as connection:
        connection.execute(
            "UPDATE calls SET content = 'Better.' WHERE seat = 'editor' AND match = 2"
        )
    with pytest.raises(ParleyError, match="differs from the recorded prompt"):
        rejudge(first.path, {"judge": {"j": marking(3)}}, task=Essay(), store=tmp_path)


def test_who_sits_in_the_record_keeps_its_alias_and_its_options(tmp_path):
    command(
        "run",
        "translation",
        "-m",
        "bot/translator",
        "-m",
        "b=bot/translator",
        "--items",
        1,
        cwd=tmp_path,
    )
    wrong = command("rejudge", "last", "--role", "judge=b=bot/judge", cwd=tmp_path, code=2)
    assert "the alias 'b' belongs to another model" in wrong.err
    assert "give the judge another alias" in wrong.err


def test_wrong_wishes_are_said_before_anything_is_asked(tmp_path):
    first = essay(tmp_path)
    with pytest.raises(
        UsageError, match=r"unknown instrument role of essay: 'jugde'.*did you mean 'judge'"
    ):
        rejudge(first.path, {"jugde": {"j": marking(1)}}, task=Essay(), store=tmp_path)
    with pytest.raises(UsageError, match="needs 0 to 3 models, not 4"):
        rejudge(
            first.path,
            {"judge": {f"j{n}": marking(1) for n in range(4)}},
            task=Essay(),
            store=tmp_path,
        )
    with pytest.raises(UsageError, match=r"name a model that judges .*: add --role editor="):
        rejudge(first.path, {}, task=Essay(), store=tmp_path)
    assert len(list(tmp_path.glob("*.parley"))) == 1


def test_names_are_masked_as_they_were_when_the_match_was_played(tmp_path):
    """A writer claims the name of whoever judges later: nobody masked it then, so the editor must
    be shown it now, too."""
    writers = {"w": lambda view: "I am omega-7000, and this is a line."}
    first = run(
        Essay(), writers, roles={"editor": {"editor": lambda view: "Go on."}}, store=tmp_path
    )

    async def whole():
        async with Server(says('{"score": 4}')) as server:
            experiment = experiment_for_judges(first.ref)
            judge = experiment.add_model("vllm/omega-7000", "j", {"base_url": server.url})
            experiment.instruments = {"judge": [judge]}
            return await play_new_run(
                prepare_judging(first.ref, experiment, task=Essay()), open_store(tmp_path)
            )

    ending = asyncio.run(whole())
    assert ending.state == "done", ending.reason
    assert means(Result(ending.ref), "marks") == {"w": 4}


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    """A folder with a run that one judge has marked."""
    place = tmp_path_factory.mktemp("translated")
    two = ("-m", "a=bot/translator", "-m", "b=bot/translator", "-M", "b.strength=0.2")
    command(
        "run",
        "translation",
        *two,
        "--role",
        "judge=bot/judge",
        "--items",
        4,
        "--name",
        "played",
        cwd=place,
    )
    return place


def test_a_dry_run_counts_the_judges_only(translated):
    wish = ("rejudge", "played", "--role", "judge=j=bot/judge", "--role", "judge=k=bot/judge")
    found = command(*wish, "--dry-run", "--json", cwd=translated).json
    assert {row["alias"]: row["calls"] for row in found["by_model"]} == {"j": 8, "k": 8}
    assert len(list((translated / "runs").glob("*.parley"))) == 1


def test_from_the_command_line_to_the_table(translated):
    again = command(
        "rejudge", "played", "--role", "judge=r=bot/random", "--name", "again", cwd=translated
    )
    assert "8 matches of translation-" in again.err
    assert "dataset" not in again.err
    shown = command("show", "again", "--part", "rejudged", cwd=translated).out
    assert "`before` is the score in run translation-" in shown
    assert "(judge: bot/judge)" in shown
    other = command(
        "rejudge", "played", "--role", "judge=r=bot/random", "--seed", 9, "--json", cwd=translated
    ).json
    first = command("show", "again", "--json", cwd=translated).json
    marks = [
        [row["mean"] for row in found["results"] if row["metric"] == "judge"]
        for found in (first, other)
    ]
    assert marks[0] != marks[1]
    assert command(
        "show", "again", "--part", "rejudged", "--format", "csv", cwd=translated
    ).out.startswith("role,metric,alias")
    assert "does not rejudge" in command("show", "played", "--part", "rejudged", cwd=translated).out


def judged_by(tmp_path, options, seed=None):
    """The seeds that a judge behind an endpoint is sent, and what is said before it is asked."""

    async def whole():
        async with Server(says('{"score": 4}')) as server:
            judge = {"model": "openai-compatible/m", "base_url": server.url, **options}
            played = await run_async(
                Essay(),
                {"w": lambda view: "words"},
                roles={"judge": {"j": judge}},
                store=tmp_path,
            )
            before = len(server.asked)
            experiment = experiment_for_judges(played.ref)
            experiment.instruments = {"judge": ["j"]}
            prepared = prepare_judging(played.ref, experiment, seed=seed, task=Essay())
            await play_new_run(prepared, open_store(tmp_path))
            seeds = [each.body.get("seed") for each in server.asked]
            return seeds[:before], seeds[before:], "\n".join(prepared.cautions)

    return asyncio.run(whole())


def test_another_seed_asks_judges_for_other_samples_or_says_that_it_cannot(tmp_path):
    before, now, said = judged_by(tmp_path, {"temperature": 1}, seed=2)
    assert len(now) == len(before) > 0
    assert not set(now) & set(before)
    assert "seed" not in said
    before, now, said = judged_by(tmp_path, {"temperature": 1})
    assert now == before
    assert "gets the same random seeds again" in said
    said = judged_by(tmp_path, {"temperature": "0"}, seed=2)[2]
    assert (
        "--seed 2 has no effect on judge j: its temperature is 0; to get new replies, add -M "
        "j.temperature=1" in said
    )
    said = judged_by(tmp_path, {"temperature": 1, "seed": 5}, seed=2)[2]
    assert "--seed 2 has no effect on judge j: it has its own option seed=5" in said
    assert "seed" not in judged_by(tmp_path, {"temperature": 1, "seed": "none"}, seed=2)[2]


def test_prompts_of_judges_may_change_and_others_may_not(translated, tmp_path):
    words = command("tasks", "translation", "--json", cwd=translated).json["prompts"]
    assert {"translation.judge", "translation.review"} <= words.keys()
    mine = tmp_path / "mine.txt"
    mine.write_text(
        "Judge {roles}. {rubric} " + " ".join(f"{{{name}}}" for name in words["translation.judge"])
    )
    command(
        "rejudge",
        "played",
        "--role",
        "judge=j=bot/judge",
        "--prompt",
        f"translation.judge={mine}",
        cwd=translated,
    )
    mine.write_text(
        "Polish this. " + " ".join(f"{{{name}}}" for name in words["translation.review"])
    )
    wish = (
        "rejudge",
        "played",
        "--role",
        "judge=j=bot/judge",
        "--prompt",
        f"translation.review={mine}",
    )
    assert "differs from the recorded prompt" in command(*wish, cwd=translated, code=1).err


def test_what_was_taken_over_and_changed_afterwards_is_a_breach(translated):
    command(
        "rejudge", "played", "--role", "judge=j=bot/judge", "--name", "tampered", cwd=translated
    )
    path = find_run("tampered", translated / "runs").location
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE calls SET content = 'Better.' WHERE seat = 'proofreader' AND match = 2"
        )
    assert {breach.match for breach in audit_run(find_run(path)).breaches} == {2}
