"""People as feedback: a run waits for their votes between stages, and their votes decide what is
remembered."""

import io
import json
import shutil
import signal
import sqlite3
from contextlib import closing

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parley
from parley import Result
from parley.annotation.verdict_ballots import (
    cast_verdict,
    choose_place,
    list_open_places,
    read_conversation,
    summarise_verdicts,
)
from parley.audit.audit import audit_run
from parley.errors import StoreError, UsageError
from parley.match.protocol import Reply
from parley.memory.feedback import VERDICT_CHOICES
from parley.results.judged_matches import list_judged_matches
from parley.results.transcript import TranscriptReader
from parley.rules.pool import Seat
from parley.runs.people_votes import count_verdict, describe_missing_votes
from parley.store import find_run, open_verdict_votes, read_run, read_verdict_votes
from parley.store.sqlite.folder import VOTES_FILE
from tests.cli.test_cli import parley as command_in
from tests.endpoint import endpoint
from tests.games import Echo
from tests.resealed import reseal
from tests.runs.test_recall import accuracy, evolve, rows
from tests.runs.test_recall_killed import on_record, wait_for_calls
from tests.runs.test_recall_killed import parley as start

PEOPLE = {"stages": 1, "probe": False, "feedback": "people"}


def vote(ref, choose=lambda place: "yes", name="ann"):
    """Give a vote on every conversation that a run asks about; how many."""
    with read_run(ref) as reader, open_verdict_votes(ref) as votes:
        places = list_open_places(reader)
        for place in places:
            cast_verdict(votes, reader, place, name, choose(place))
    return len(places)


def verdicts(ref):
    with read_run(ref) as reader:
        return {(each.match, each.seat.key): each for each in reader.people.verdicts()}


def sources(result):
    """The matches that anything shown comes from."""
    return {each.match for row in rows(result)[1] for each in row.shown}


def stop_of(result):
    return result.head.run.stop


def command(*words, cwd=".", typed="", code=0):
    """The command, with lines that somebody types."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO(typed))
        return command_in(*words, cwd=cwd, code=code)


# ── the rule ──


@given(st.lists(st.sampled_from(VERDICT_CHOICES), min_size=1, max_size=7))
def test_most_of_those_who_can_tell_decide(choices):
    said = count_verdict(1, Seat("student"), {str(n): each for n, each in enumerate(choices)})
    yes, no = choices.count("yes"), choices.count("no")
    assert said.success is (None if yes == no else yes > no)
    assert not said.is_open
    assert said.yes + said.no + said.unsure == len(choices)


def test_a_message_says_which_matches_lack_a_vote():
    one, two = Seat("red"), Seat("blue")
    places = [(number, one) for number in range(1, 31)]
    assert (
        describe_missing_votes(places, {}, 0)
        == "30 of 30 matches of the standard stage lack a vote"
    )
    votes = {place: {"ann": "yes"} for place in places}
    assert describe_missing_votes(places, votes, 0) == ""
    del votes[7, one]
    assert describe_missing_votes(places, votes, 2) == "1 of 30 matches of stage 2 lacks a vote: 7"
    few = {place: {"ann": "no"} for place in places[:15]}
    assert describe_missing_votes(places, few, 2).endswith("22, 23, 24, 25 and 5 more")
    both = [(1, one), (1, two), (2, one), (2, two)]
    assert describe_missing_votes(both, {(1, one): {"ann": "yes"}}, 1) == (
        "2 of 2 matches of stage 1 lack a vote, 3 votes in all"
    )


# ── a run that waits ──


def test_a_run_waits_after_each_stage_and_remembers_what_people_call_a_success(tmp_path):
    settings = {"stages": 2, "feedback": "people"}
    result = evolve(tmp_path, ["bot/random"], count=8, evolve=settings)
    assert result.state == "stopped"
    assert stop_of(result).status == "waiting_for_votes"
    assert stop_of(result).reason == "8 of 8 matches of the standard stage lack a vote"
    again = Result(result.ref).render()
    assert f"vote with `parley annotate vote {result.ref.id} --annotator NAME`" in again
    assert not audit_run(result.ref).breaches
    _, _, scores = rows(result)
    # people call the wrong answers right
    wrong = {n for n, by in scores.items() if not next(iter(by.values()))["accuracy"]}
    assert vote(result.ref, lambda place: "yes" if place[0] in wrong else "no") == 8
    result = parley.resume(result)
    assert stop_of(result).reason == "8 of 8 matches of stage 1 lack a vote"
    assert sources(result) <= wrong
    assert vote(result.ref) == 8
    result = parley.resume(result)
    assert result.state == "done"
    matches, recalled, _ = rows(result)
    # everybody said yes in stage 1, so stage 2 sees all of it; the last stage is not judged
    assert {each.match for row in recalled if matches[row.match].stage == 2 for each in row.shown}
    assert {matches[match].stage for match, _ in verdicts(result.ref)} == {0, 1}
    plain = evolve(tmp_path, ["bot/random"], count=8, evolve={"stages": 2})
    assert accuracy(result)["", 0] == accuracy(plain)["", 0]  # scores stay the task's own
    found = audit_run(result.ref)
    assert not found.breaches
    assert found.checked["votes"] == 16
    (row,) = result.part("evolve").feedback
    assert (row.feedback, row.verdicts, row.unreadable) == ("people", 16, 0)
    assert row.kept == len(wrong) + 8


def test_people_who_disagree_or_cannot_tell_keep_nothing_and_are_counted(tmp_path):
    result = evolve(tmp_path, ["bot/student"], count=6, evolve={**PEOPLE, "keep": "all"})
    vote(result.ref, lambda place: "unsure" if place[0] == 1 else "yes", "ann")
    vote(result.ref, lambda place: "unsure" if place[0] == 1 else "no", "bob")
    vote(result.ref, lambda place: "yes" if place[0] == 2 else "unsure", "cyd")
    result = parley.resume(result)
    assert result.state == "done"
    assert sources(result) == {2}
    said = verdicts(result.ref)
    assert [said[n, "student"].success for n in (1, 2, 3)] == [None, True, None]
    with read_run(result.ref) as reader:
        judged = list(list_judged_matches(reader))
        data = summarise_verdicts(reader, read_verdict_votes(reader))
    assert sum(each.verdict is None for each in judged) == 5
    assert data["stages"] == [
        {"stage": 0, "asked": 6, "success": 1, "failure": 0, "undecided": 5, "missing": 0}
    ]
    assert [each["votes"] for each in data["annotators"]] == [6, 6, 6]
    (row,) = result.part("evolve").feedback
    assert (row.kept, row.unreadable) == (1, 5)


def test_a_run_without_votes_or_with_some_missing_waits_and_asks_no_model(tmp_path):
    asked = []

    def model(view):
        asked.append(view.text)
        return "A"

    result = evolve(tmp_path, {"m": model}, count=4, evolve=PEOPLE)
    assert len(asked) == 4
    for _ in range(2):  # nobody has voted: there is not even a file of votes
        result = parley.resume(result, functions={"m": model})
        assert stop_of(result).reason.startswith("4 of 4 matches")
    with read_run(result.ref) as reader, open_verdict_votes(result.ref) as votes:
        cast_verdict(votes, reader, (3, Seat("student")), "ann", "no")
    result = parley.resume(result, functions={"m": model})
    assert stop_of(result).reason == ("3 of 4 matches of the standard stage lack a vote: 1, 2, 4")
    assert len(asked) == 4
    assert all(each.is_open for each in verdicts(result.ref).values())
    assert not audit_run(result.ref).breaches


def test_votes_that_come_or_change_later_change_nothing(tmp_path):
    result = evolve(tmp_path, ["bot/copier"], count=6, evolve={"stages": 2, "feedback": "people"})
    with read_run(result.ref) as reader, open_verdict_votes(result.ref) as votes:
        place = list_open_places(reader)[0]
        cast_verdict(votes, reader, place, "ann", "no")
        with pytest.raises(UsageError, match="Ann has already voted no on match 1"):
            cast_verdict(votes, reader, place, "Ann", "yes")
        assert cast_verdict(votes, reader, place, "ANN", "yes", change=True) == "changed"
        assert cast_verdict(votes, reader, place, "ann", "yes") == "same"
        with pytest.raises(UsageError, match="bob has not voted on match 1"):
            cast_verdict(votes, reader, place, "bob", "yes", change=True)
        for other in list_open_places(reader)[1:]:
            cast_verdict(votes, reader, other, "ann", "yes")
    result = parley.resume(result)
    used, shown = verdicts(result.ref), rows(result)[1]
    with read_run(result.ref) as reader, open_verdict_votes(result.ref) as votes:
        with pytest.raises(UsageError, match="cannot change any more, because a later stage"):
            cast_verdict(votes, reader, place, "bob", "no")
        with pytest.raises(UsageError, match="does not ask for votes on match 1, Other"):
            cast_verdict(votes, reader, (1, Seat("other")), "bob", "no")
        with pytest.raises(UsageError, match="a vote must be yes, no or unsure"):
            cast_verdict(votes, reader, list_open_places(reader)[0], "bob", "maybe")
    flip_votes(tmp_path)  # somebody writes into the file of votes
    result = parley.resume(result)
    assert stop_of(result).reason.startswith("6 of 6 matches of stage 1")
    vote(result.ref, name="bob")
    result = parley.resume(result)
    assert result.state == "done"
    later = verdicts(result.ref)
    assert {place: later[place] for place in used if not used[place].is_open} == {
        place: each for place, each in used.items() if not each.is_open
    }
    assert [row for row in rows(result)[1] if row in shown] == shown
    assert not audit_run(result.ref).breaches


def flip_votes(folder):
    """Turn every vote round, as nobody can through the command."""
    with closing(sqlite3.connect(folder / VOTES_FILE)) as connection, connection:
        connection.execute(
            "UPDATE verdict_votes SET choice = CASE choice WHEN 'yes' THEN 'no' ELSE 'yes' END"
        )


def test_a_damaged_file_of_votes_is_named_and_the_run_stays_as_it_is(tmp_path):
    result = evolve(tmp_path, ["bot/student"], count=4, evolve=PEOPLE)
    vote(result.ref)
    file = tmp_path / VOTES_FILE
    good = file.read_bytes()
    for damage in (b"no database", good[:100] + b"\xff" * (len(good) - 100)):
        file.write_bytes(damage)
        stopped = parley.resume(result)
        assert stopped.state == "stopped"
        assert str(file) in stop_of(stopped).reason
    file.write_bytes(good)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE verdict_votes SET choice = 'perhaps' WHERE match = 2")
    assert "the vote 'perhaps' on 'student' in match 2" in stop_of(parley.resume(result)).reason
    assert not rows(result)[1]
    file.write_bytes(good)
    assert parley.resume(result).state == "done"


# ── what people are asked about ──


def test_only_what_a_memory_of_people_could_hold_is_asked(tmp_path):
    arms = {"truth": {"feedback": "truth"}, "people": {}, "fixed": {"retriever": "fixed"}}
    settings = {"stages": 2, "feedback": "people", "held_out": 0.25, "arms": arms}
    result = evolve(tmp_path, ["bot/student"], count=8, evolve=settings)
    assert stop_of(result).reason == "6 of 6 matches of the standard stage lack a vote"
    assert vote(result.ref) == 6
    result = parley.resume(result)
    assert vote(result.ref) == 6  # of one arm of three
    result = parley.resume(result)
    assert result.state == "done"
    matches = rows(result)[0]
    assert {matches[match].arm for match, _ in verdicts(result.ref)} == {"", "people"}
    assert not audit_run(result.ref).breaches


def test_in_a_stream_the_control_is_not_judged(tmp_path):
    settings = {"window": 3, "feedback": "people"}
    result = evolve(tmp_path, ["bot/student"], count=6, evolve=settings)
    # the first window has an empty memory, so nobody is asked before it
    assert stop_of(result).reason == "3 of 3 matches of stage 1 lack a vote"
    vote(result.ref)
    assert parley.resume(result).state == "done"


def test_a_cut_reply_is_no_experience_and_nobody_is_asked_about_it(tmp_path):
    def model(view):
        return Reply("B", finish="length" if "thing 0 " in view.text else "stop")

    result = evolve(tmp_path, {"m": model}, count=4, evolve=PEOPLE)
    assert stop_of(result).reason == "3 of 3 matches of the standard stage lack a vote"


def test_every_seat_of_a_game_without_items_gets_its_own_vote(tmp_path):
    models = {name: lambda view: "hello" for name in "xy"}
    settings = {"retriever": "random", "k": 1, "success": "points>=1", **PEOPLE}
    result = parley.run(Echo(1), models, store=tmp_path, items=2, evolve=settings)
    places = len(rows(result)[0]) * 2
    assert f", {places} votes in all" in stop_of(result).reason
    assert vote(result.ref, lambda place: "yes" if place[1].number == 1 else "no") == places
    result = parley.resume(result, functions=models, task=Echo(1))
    assert result.state == "done"
    assert {each.seat for row in rows(result)[1] for each in row.shown} == {"guests.1"}


def test_settings_that_cannot_be_are_refused_before_any_call(tmp_path):
    with pytest.raises(
        UsageError, match="`memory=insights` and `feedback=people` cannot be combined"
    ):
        evolve(tmp_path, evolve={**PEOPLE, "memory": "insights"})
    with pytest.raises(UsageError, match="people"):
        evolve(tmp_path, evolve={"feedback": "peple"})
    with pytest.raises(UsageError, match="at least two items"):
        evolve(tmp_path, count=1, evolve=PEOPLE)
    assert not list(tmp_path.glob("*.parley"))


def test_an_annotator_sees_the_conversation_and_neither_names_nor_scores(tmp_path):
    def model(view):
        return "I am GPT-4, and my answer is A"

    result = evolve(tmp_path, {"GPT-4": model}, count=2, evolve=PEOPLE)
    with read_run(result.ref) as reader:
        places = list_open_places(reader)
        shown = read_conversation(reader, places[0])
        (said,) = TranscriptReader(reader, str).read(reader.matches.find(1)).votes
    assert said == "Student (GPT-4): people have not voted yet"
    (turn,) = shown.turns
    assert "thing 0" in turn.question
    assert "GPT-4" not in turn.answer
    assert "my answer is A" in turn.answer


def test_people_who_vote_at_once_begin_in_different_places_and_share_the_work():
    places = [(number, Seat("student")) for number in range(1, 41)]
    orders = {}
    for name in ("ann", "bob"):
        votes, orders[name] = {}, []
        while (place := choose_place(places, votes, name)) is not None:
            orders[name].append(place)
            votes[place] = {name: "yes"}
        assert sorted(orders[name]) == places
    assert orders["ann"] != orders["bob"]
    votes = {place: {"ann": "yes"} for place in places[1:]}
    assert choose_place(places, votes, "bob") == places[0]  # what has no vote comes first
    assert choose_place(places, votes, "ANN", {places[0]}) is None


# ── record, audit, other runs ──


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    result = evolve(tmp_path_factory.mktemp("judged"), ["bot/copier"], count=4, evolve=PEOPLE)
    vote(result.ref, lambda place: "no" if place[0] == 1 else "yes")
    return parley.resume(result)


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        (
            "UPDATE people_verdicts SET yes = NULL, no = NULL, unsure = NULL WHERE match = 2",
            "votes",
            "stage 1 began before people had voted on student",
        ),
        ("DELETE FROM people_verdicts WHERE match = 2", "votes", "stage 1 began"),
        ("UPDATE people_verdicts SET yes = 1, no = 0 WHERE match = 1", "recalled", "differs"),
        (
            "INSERT INTO people_verdicts SELECT MAX(number), 'student', 1, 0, 0 FROM matches",
            "votes",
            "although no memory uses that seat",
        ),
        (
            "UPDATE runs SET state = 'stopped', status = 'waiting_for_votes'",
            "plan",
            "no match",
        ),
    ],
)
def test_audit_finds_verdicts_that_were_changed(judged, tmp_path, change, kind, said):
    copy = tmp_path / "forged.parley"
    shutil.copy(judged.path, copy)
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute(change)
        reseal(connection)
    found = audit_run(find_run(copy)).breaches
    assert any(each.kind == kind and said in each.detail for each in found), found


def test_the_digest_covers_what_people_said(judged, tmp_path):
    copy = tmp_path / "changed.parley"
    shutil.copy(judged.path, copy)
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("UPDATE people_verdicts SET yes = 2 WHERE match = 2")
    assert {each.kind for each in audit_run(find_run(copy)).breaches} == {"digest"}


@pytest.mark.parametrize("counts", ["yes = -1", "yes = NULL", "yes = 0, no = 0", "no = 'x'"])
def test_counts_that_cannot_be_are_damage(judged, tmp_path, counts):
    copy = tmp_path / "damaged.parley"
    shutil.copy(judged.path, copy)
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute(f"UPDATE people_verdicts SET {counts} WHERE match = 2")
    with read_run(find_run(copy)) as reader, pytest.raises(StoreError, match="match 2"):
        reader.people.verdicts()


def test_verdicts_are_exported(judged):
    first, second = judged.matches[:2]
    assert first["people_verdicts"] == [
        {"seat": "student", "success": False, "yes": 0, "no": 1, "unsure": 0}
    ]
    assert second["people_verdicts"][0]["success"] is True
    shown = command("show", str(judged.path), "1", "--json")
    assert json.loads(shown.out)["people_verdicts"] == first["people_verdicts"]
    text = command("show", str(judged.path), "1").out
    assert "a failure (0 yes, 1 no, 0 cannot tell)" in text


def test_another_run_takes_over_what_people_called_a_success(judged, tmp_path):
    settings = {"stages": 1, "probe": False, "transfer": str(judged.path), "k": 9}
    result = evolve(tmp_path, ["bot/copier"], count=4, evolve=settings)
    with read_run(result.ref) as reader:
        transferred = reader.experiences.transferred()
    assert {each.item for each in transferred} == {"q1", "q2", "q3"}


def test_a_critic_who_judges_again_leaves_the_votes_as_they_are(tmp_path):
    arms = {"people": {}, "critic": {"feedback": "critic"}}
    result = evolve(
        tmp_path, ["bot/student"], count=4, evolve={**PEOPLE, "arms": arms},
        roles={"critic": {"judge": "bot/critic"}},
    )  # fmt: skip
    vote(result.ref)
    result = parley.resume(result)
    again = parley.rejudge(result, {"critic": {"other": "bot/critic"}}, store=tmp_path)
    assert verdicts(again.ref) == verdicts(result.ref)
    by_people = [row for row in again.part("evolve").feedback if row.feedback == "people"]
    assert [row.kept for row in by_people] == [4]
    assert not audit_run(again.ref).breaches


# ── the command ──


def run_words(*more):
    settings = ("retriever=bm25", "k=2", "stages=1", "probe=false", "feedback=people")
    words = [word for setting in settings for word in ("--evolve", setting)]
    return ["run", "qa", "-m", "bot/student", "--items", "4", "--set", "shots=0", *words, *more]


def test_the_command_waits_takes_votes_and_goes_on(tmp_path):
    forecast = command(*run_words("--dry-run"), cwd=tmp_path)
    assert (
        "waits for people's votes, up to 4 votes in all: 4 after the standard stage" in forecast.out
    )
    data = json.loads(command(*run_words("--dry-run", "--json"), cwd=tmp_path).out)
    assert data["people_votes"] == [{"stage": 0, "votes": 4}]

    played = command(*run_words("--name", "talk"), cwd=tmp_path, code=3)
    assert "waiting for votes (4 of 4 matches of the standard stage lack a vote)" in played.err
    (path,) = (tmp_path / "runs").glob("*.parley")
    assert f"annotate vote runs/{path.name} --annotator NAME" in played.err
    assert f"resume runs/{path.name}" in played.err

    drawn = command("annotate", "draw", "talk", cwd=tmp_path, code=2)  # nothing to compare yet
    assert f"annotate vote runs/{path.name} --annotator NAME" in drawn.err
    asked = command("annotate", "results", "talk", cwd=tmp_path)
    assert asked.out.splitlines()[2].split() == ["standard", "4", "0", "0", "0", "4"]
    assert "4 votes still missing" in asked.err
    sitting = ["annotate", "vote", "talk", "--annotator", "Ann"]
    voted = command(*sitting, cwd=tmp_path, typed="maybe\ny\ns\nq\n")
    assert "please answer y (yes)" in voted.err
    assert "stopped after 1 vote" in voted.err
    waits = command("resume", "talk", cwd=tmp_path, code=3)
    assert "3 of 4 matches" in waits.err
    voted = command(*sitting, cwd=tmp_path, typed="n\nu\ny\n")
    assert "every match has a vote; resume with:" in voted.err
    data = json.loads(command("annotate", "results", "talk", "--json", cwd=tmp_path).out)
    assert data["stages"] == [
        {"stage": 0, "asked": 4, "success": 2, "failure": 1, "undecided": 1, "missing": 0}
    ]
    with read_run(find_run(path)) as reader:
        own = {choice: place[0] for place, by in read_verdict_votes(reader).items()
               for choice in by.values()}  # fmt: skip
    changed = command(*sitting, "--change", str(own["unsure"]), cwd=tmp_path, typed="y\n")
    assert "the record keeps both votes" in changed.err
    done = command("resume", "talk", "--json", cwd=tmp_path)
    assert done.json["run"]["state"] == "done"
    late = command(*sitting, "--change", str(own["no"]), cwd=tmp_path, typed="y\n", code=2)
    assert "cannot change any more" in late.err
    assert "no conversation needs a vote" in command(*sitting, cwd=tmp_path, typed="y\n").err
    invited = command("annotate", "invite", "talk", "--annotator", "Ann", cwd=tmp_path, code=2)
    assert "parley annotate draw" in invited.err
    assert "no breach" in command("audit", "talk", cwd=tmp_path).out
    assert verdicts(find_run(path))[own["unsure"], "student"].success is True


def test_an_experiment_file_may_ask_people(tmp_path):
    (tmp_path / "people.yaml").write_bytes(
        orjson.dumps(  # JSON is YAML
            {
                "kind": "experiment", "task": "qa", "models": {"m": {"model": "bot/student"}},
                "items": 3, "set": {"shots": 0},
                "evolve": {"retriever": "bm25", "k": 1, **PEOPLE},
            }
        )
    )  # fmt: skip
    result = parley.run(tmp_path / "people.yaml", store=tmp_path)
    assert stop_of(result).reason == "3 of 3 matches of the standard stage lack a vote"


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_kill_9_between_votes_and_the_next_stage(tmp_path, kills):
    """A run is killed in the stage after the votes, and the votes change before it goes on: it is
    shown, says and scores the same as an unbroken one with the votes of then."""
    words = [*run_words()[2:]]
    words[1] = "m=openai-compatible/mock"
    records = {}
    for name, times in (("straight", 0), ("killed", kills)):
        store = tmp_path / name
        with endpoint(0.02 if times else 0) as server:
            first = start("run", "qa", *words, store=store, url=server.url)
            _, err = first.communicate(timeout=120)
            assert first.returncode == 3, err
            (path,) = store.glob("*.parley")
            vote(find_run(path), lambda place: "yes" if place[0] % 2 else "no")
            for number in range(times):
                process = start("resume", str(path), "--concurrency", "1", store=store,
                                url=server.url)  # fmt: skip
                wait_for_calls(store, process, 4 + number)
                process.send_signal(signal.SIGKILL)
                process.communicate()
                if all(not each.is_open for each in verdicts(find_run(path)).values()):
                    flip_votes(store)
            last = start("resume", str(path), store=store, url=server.url)
            _, err = last.communicate(timeout=120)
            assert last.returncode == 0, err
        records[name] = [*on_record(path), verdicts(find_run(path))]
        assert audit_run(find_run(path)).breaches == []
    assert records["killed"] == records["straight"]
