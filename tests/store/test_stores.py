"""What holds for every store: each test runs on a folder of files and on a PostgreSQL database."""

import asyncio
import inspect
from collections import Counter
from contextlib import closing
from dataclasses import replace
from itertools import count

import pytest

import parley
from parley.audit.audit import audit_run
from parley.errors import StoreError, UsageError
from parley.match.match import Outcome
from parley.match.protocol import CallPlace, DeviceSetup, DeviceUse, Reply, Usage
from parley.match.record import RecordedCall
from parley.memory.experiences import Experience, Recalled, ShownExperience
from parley.memory.feedback import PeopleVerdict
from parley.plans import MatchSpec
from parley.rules.notes import WrittenNote
from parley.rules.pool import ContentPart, Example, Message, Seat
from parley.rules.referee import Violation
from parley.statistics.preferences import CHOICES, ConversationPair, ConversationSide
from parley.store import RunWatch, Store, open_store
from parley.store.batch_records import Batch, OpenBatch, StoredRequest
from parley.store.call_rows import call_row
from parley.store.journal import CROWD, ENOUGH
from parley.store.postgres.database import PostgresStore, PostgresWatch
from parley.store.sqlite.folder import FolderStore
from parley.store.sqlite.watch import SqliteWatch
from parley.store.types import CopiedMatch, DeviceTime, EndpointRecord, NewRun, StoredPart
from tests.store.test_journal import CONFIG, IDENTITY, SEAT, call, ended, spec

NUMBERS = count(1)
STRANGE = "zero \x00 one \x01 two \x01\x02 \x01\x03 ü 語 🎲 %s ? {run} \\N \\. \t\n"


@pytest.fixture
def store(place):
    return open_store(place)


async def begin(store, **parts):
    return await store.create(NewRun(f"run-{next(NUMBERS):04}", CONFIG, IDENTITY, **parts))


def write(store, *steps, **parts):
    """Create a run, let each step write to its journal, and close it."""

    async def main():
        journal = await begin(store, **parts)
        for step in steps:
            await step(journal)
        await journal.close()
        return journal.ref

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("protocol", "classes"),
    [
        (Store, (FolderStore, PostgresStore)),
        (RunWatch, (SqliteWatch, PostgresWatch)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_both_stores_have_every_method_of_the_protocol(protocol, classes):
    names = [name for name in vars(protocol) if not name.startswith("_") and name != "info"]
    assert names
    for kind in classes:
        assert not inspect.isabstract(kind), kind.__abstractmethods__
        for name in names:
            found, wanted = getattr(kind, name, None), getattr(protocol, name)
            assert found is not None, f"{kind.__name__} has no {name}"
            if callable(wanted):
                given, asked = (inspect.signature(each).parameters for each in (found, wanted))
                assert list(given) == list(asked), f"{kind.__name__}.{name}"


def test_a_call_reads_back_as_it_was_written(store):
    full = call(
        content=(ContentPart("text", "a"), ContentPart("text", STRANGE)),
        reasoning=STRANGE,
        finish="length",
        usage=Usage(1, 2, 3, 2**62),
        model_served=STRANGE,
        response_id="chatcmpl-1",
        request_id="req_2",
        system_fingerprint="fp_3",
        latency=0.1 + 0.2,
        provider_state={"id": [1, STRANGE]},
        sent="ab",
    )
    later = call(2, content=STRANGE)

    async def play(journal):
        await journal.add_matches([spec()])
        record = journal.lease(spec(1))
        await record.append(full)
        await record.append(later)

    ref = write(store, play)
    with store.read(ref) as reader:
        assert reader.calls.of(1) == [full, later]
        assert list(reader.snapshot.find_changes()) == []


def test_many_waiting_appends_share_commits(store):
    async def main():
        journal = await begin(store)
        await journal.add_matches([spec(n) for n in range(1, 301)])
        before = journal.commits
        await asyncio.gather(*(journal.lease(spec(n)).append(call()) for n in range(1, 301)))
        await journal.close()
        return journal.commits - before

    assert asyncio.run(main()) < 30


@pytest.mark.parametrize("waiting", [ENOUGH, 1])  # when the first commit has ended
def test_a_commit_does_not_wait_longer_once_enough_callers_wait(store, monkeypatch, waiting):
    monkeypatch.setattr("parley.store.journal.LINGER", 3600)

    async def main():
        journal = await begin(store)
        await journal.add_matches([spec(1)])
        record, before = journal.lease(spec(1)), journal.commits
        first = [record.append(call(round)) for round in range(1, CROWD + 1)]
        await asyncio.sleep(0)  # handed over
        later = [record.append(call(round)) for round in range(100, 100 + waiting)]
        await asyncio.gather(*first)
        later += [record.append(call(round)) for round in range(100 + waiting, 100 + ENOUGH)]
        await asyncio.wait_for(asyncio.gather(*later), 60)
        assert journal.commits == before + 2
        await journal.close()
        return journal.ref

    with store.read(asyncio.run(main())) as reader:
        assert len(reader.calls.of(1)) == CROWD + ENOUGH


def test_a_match_ends_once(store):
    async def play(journal):
        await journal.add_matches([spec()])
        journal.lease(spec(1))
        await journal.finish(1, ended())
        with pytest.raises(StoreError, match="already ended"):
            await journal.finish(1, ended())
        await journal.add_matches([spec(2)])
        with pytest.raises(StoreError, match="match 2 is not being played"):
            await journal.finish(2, ended())  # its digest would be of no calls

    write(store, play)


def test_a_call_is_recorded_once_and_a_journal_that_failed_takes_nothing_more(store):
    """A record with a hole in it would be worse than none: also what nobody waits for may not be
    lost unseen."""

    async def play(journal):
        await journal.add_matches([spec(1), spec(2)])
        record = journal.lease(spec(1))
        await record.append(call())
        # nobody waits for this one
        journal.add_row("calls", (*call_row(1, call()), ""))
        journal.lease(spec(2))
        with pytest.raises(StoreError, match=r"UNIQUE|already on record"):
            await record.append(call(2))
        with pytest.raises(StoreError, match=r"UNIQUE|already on record"):
            await journal.finish(1, ended())

    ref = write(store, play)
    with store.read(ref) as reader:
        assert reader.calls.of(1) == [call()]


def test_values_that_only_sqlite_takes_as_they_are_are_stored_by_both(store):
    """Their group is written once, together with its other rows."""
    latency = [0.5, float("nan"), True, 0.25]
    texts = ["NaN", "a\tNaN", "zero \x00", "plain"]

    async def play(journal):
        await journal.add_matches([spec()])
        record = journal.lease(spec(1))
        await asyncio.gather(
            *(
                record.append(call(round, content=text, latency=seconds))
                for round, (text, seconds) in enumerate(zip(texts, latency, strict=True), 1)
            )
        )
        await journal.finish(1, replace(ended(), scores={SEAT: {"points": True}}))

    with store.read(write(store, play)) as reader:
        replies = [found.reply for found in reader.calls.of(1)]
        assert [reply.content for reply in replies] == texts
        assert [reply.latency for reply in replies] == [0.5, None, 1, 0.25]
        assert [score.value for score in reader.scores.read()] == [1]


def test_an_unfinished_match_comes_back_with_what_is_on_record(store):
    async def main():
        journal = await begin(store)
        await journal.add_matches([spec(1), spec(2)])
        record = journal.lease(spec(1))
        await record.append(call(content=STRANGE))
        await record.append_effect(1, 0, b"request", {"value": STRANGE})
        record.circulate([Message(1, "tell", None, (SEAT,), STRANGE, 0)], 0)
        await journal.close()
        journal = await store.open(journal.ref)
        record = journal.lease(spec(1))
        assert record.call(1, SEAT, 0) == call(content=STRANGE)
        assert record.call(2, SEAT, 0) is None
        assert record.effect(1, 0) == (b"request", {"value": STRANGE})
        record.circulate([Message(1, "tell", None, (SEAT,), STRANGE, 0)], 0)  # known already
        assert journal.lease(spec(2)).call(1, SEAT, 0) is None
        await journal.finish(1, ended())
        _, gone = await journal.restart(2)
        assert gone == Counter()
        await journal.close()
        return journal.ref

    ref = asyncio.run(main())
    with store.read(ref) as reader:
        (message,) = reader.messages.of(1)
        assert message["content"] == STRANGE
        assert reader.effects.of(1) == {(1, 0): (b"request", {"value": STRANGE})}
        assert list(reader.snapshot.find_changes()) == []


def test_a_match_that_restarts_loses_its_record(store):
    async def main():
        journal = await begin(store)
        await journal.add_matches([spec(1)])
        await journal.lease(spec(1)).append(call())
        await journal.close()
        journal = await store.open(journal.ref)
        journal.lease(spec(1))
        record, gone = await journal.restart(1)
        assert gone == Counter({SEAT: 1})
        await record.append(call(content="again"))
        await journal.close()
        return journal.ref

    ref = asyncio.run(main())
    with store.read(ref) as reader:
        assert reader.calls.of(1) == [call(content="again")]
        assert list(reader.snapshot.find_changes()) == []


def test_a_run_that_is_being_played_cannot_be_played_or_deleted_by_another_process(store):
    async def main():
        journal = await begin(store)
        with pytest.raises(StoreError, match="is already being played"):
            await store.open(journal.ref)
        with pytest.raises(UsageError, match="still running"):
            store.delete(journal.ref)
        with store.read(journal.ref) as reader:
            assert reader.info.state == "running"
        await journal.set_state("stopped", "interrupted", "")
        await journal.close()
        journal = await store.open(journal.ref)
        await journal.set_state("done", "plan_complete", "")
        await journal.close()
        store.delete(journal.ref)
        with pytest.raises(StoreError):
            store.read(journal.ref)
        with pytest.raises(StoreError):
            store.delete(journal.ref)

    asyncio.run(main())


def test_a_run_that_exists_is_not_created_again(store):
    ref = write(store)
    with pytest.raises(StoreError, match="already exists"):
        asyncio.run(store.create(NewRun(ref.id, CONFIG, IDENTITY)))


EXPERIENCE = Experience(
    match=1,
    seat="players.1",
    alias="a",
    role="players",
    item="i",
    stage=1,
    arm="x",
    series=1,
    cue=STRANGE,
    turns=(Example("q", STRANGE, "h"),),
    success=True,
    right=True,
    subject="s",
    lesson="",
)
PART = StoredPart("new", "1", "{}", '{"a": "b"}', "[]")


async def fill(journal):
    """Two blocks, one of which is not finished, and a row in every table."""
    specs = [MatchSpec(n, str((n + 1) // 2), None, 1, 42, {SEAT: "a"}) for n in range(1, 5)]
    await journal.add_matches(specs)
    for number in (1, 2, 3):
        record = journal.lease(specs[number - 1])
        await record.append(
            call(usage=Usage(5, None, 7, None), model_served="m" if number > 1 else None)
        )
        record.circulate([Message(1, "tell", None, (SEAT,), "hello", 0)], 0)
        await record.append_effect(1, 0, b"request", {"guarantee": "full"})
        notes = [
            WrittenNote(1, {"free": number}),
            WrittenNote(2, {"fact": STRANGE}, "test.note"),
        ]
        scores = {SEAT: {"points": None if number == 2 else 0.5}}
        violations = [Violation(1, SEAT, 0, "format", STRANGE, "retried")]
        await journal.finish(number, Outcome("done", "", scores, 1, violations, notes))
    await journal.fail(4, STRANGE)
    await journal.keep_parts([StoredPart("old", "1", "{}", "{}", "[]")])
    await journal.keep_parts([PART])
    shown = (ShownExperience(1, "players.1", 0.5),)
    await journal.add_recalled([Recalled(1, "players.1", "v", shown, 1, 0, "s")])
    await journal.ask_people([(1, SEAT), (2, SEAT)])
    await journal.ask_people([(1, SEAT)])
    await journal.set_people_verdicts([PeopleVerdict(1, SEAT, 2, 1, 0)])
    await journal.set_people_verdicts([PeopleVerdict(1, SEAT, 9, 9, 9)])
    await journal.set_spending(7, 0.25)
    await journal.set_unanswered({"a": {"players": 2}})
    await journal.set_endpoint_health({"a": EndpointRecord(3, 1)})
    await journal.set_prices([{"alias": "a", "rates": [[0, 1, 2, 3]], "source": "x"}])
    await journal.reconfigure(replace(CONFIG, name="Renamed"))
    await journal.heartbeat()
    await journal.set_state("done", "plan_complete", "")


def test_everything_that_is_written_is_read_and_digested(store):
    ref = write(store, fill, items=[("i", b'{"id":"i"}')], transferred=[EXPERIENCE])
    with store.read(ref) as reader:
        info = reader.info
        assert (info.state, info.status, info.planned) == ("done", "plan_complete", 4)
        assert info.config.name == "Renamed"
        assert info.digest
        found = [(note.match, note.round, note.facts) for note in reader.notes.read("test.note")]
        assert found == [(n, 2, {"fact": STRANGE}) for n in (1, 2, 3)]
        assert [note.kind for note in reader.notes.of(2)] == [None, "test.note"]
        assert len(list(reader.notes.read())) == 6
        assert reader.run.part_results() == [PART]
        assert reader.matches.counts() == {"done": 3, "failed": 1}
        assert reader.matches.find(4).reason == STRANGE
        assert reader.matches.find(5) is None
        assert [row.number for row in reader.matches.read()] == [1, 2, 3, 4]
        assert [score.value for score in reader.scores.read()] == [0.5, None, 0.5]
        assert list(reader.scores.read(metrics=["other"])) == []
        assert list(reader.scores.read(metrics=["other", "points"])) == list(reader.scores.read())
        assert reader.scores.of(2) == {SEAT: {"points": None}}
        assert set(reader.scores.by_match()) == {1, 2, 3}
        assert [row.detail for row in reader.violations.read()] == [STRANGE] * 3
        assert [row.match for row in reader.violations.read(2)] == [2]
        wanted = [(n, "players", "a", "hello") for n in (1, 2, 3)]
        assert list(reader.calls.replies_in(["players"])) == wanted
        assert [found.match for found in reader.calls.recent(2)] == [3, 2]
        assert [each.number for each in reader.messages.recorded_matches(1)] == [2, 3]
        assert [each.shown for each in reader.experiences.recalled()] == [
            (ShownExperience(1, "players.1", 0.5),)
        ]
        assert reader.people.verdicts() == [
            PeopleVerdict(1, SEAT, 2, 1, 0),
            PeopleVerdict(2, SEAT, None, None, None),
        ]
        assert reader.experiences.transferred() == [EXPERIENCE]
        assert reader.run.items() == [{"id": "i"}]
        assert reader.effects.verdict_kinds() == Counter(full=3)
        usage = [(row.model_served, row.calls, row.tokens_in, row.tokens_cached, row.tokens_out)
                 for row in reader.usage.by_model([1, 6])]  # fmt: skip
        assert usage == [(None, 1, 5, None, 7), ("m", 2, 10, None, 14)]
        assert [each.usage.calls for each in reader.usage.by_stage()] == [1, 2]
        assert [row.calls for row in reader.usage.of_matches([2, 4])[2]] == [1]
        assert reader.usage.of_matches([2, 4])[4] == []
        assert reader.usage.models_served() == [("a", None), ("a", "m")]
        assert reader.usage.names_served() == {"a": ["m"]}
        assert sum(row.calls for row in reader.usage.by_model()) == 3  # read once, and kept
        assert reader.usage.unsupported_options() == []
        assert reader.calls.count() == 3
        assert reader.run.spent_at_most() == (7, 0.25)
        assert reader.run.unanswered() == {"a": {"players": 2}}
        assert reader.run.endpoint_health() == {"a": EndpointRecord(3, 1)}
        assert reader.run.prices()[0]["rates"] == [[0, 1, 2, 3]]
        assert reader.usage.median_latencies() == {}
        assert reader.scores.orphans() == []
        assert list(reader.usage.reply_lengths()) == [(n, SEAT, len("hello")) for n in (1, 2, 3)]
        assert list(reader.snapshot.find_changes()) == []


def test_the_reason_of_a_match_may_be_any_text(store):
    async def play(journal):
        await journal.add_matches([spec()])
        journal.lease(spec(1))
        await journal.finish(1, Outcome("aborted", STRANGE, {SEAT: {"points": 1.0}}, 1, [], []))

    with store.read(write(store, play)) as reader:
        assert reader.matches.find(1).reason == STRANGE
        assert list(reader.snapshot.find_changes()) == []


def test_the_time_of_devices_is_added_up(store):
    setup = DeviceSetup("NVIDIA H200", "gpu", "engine", batch=4)

    async def play(journal):
        await journal.add_matches([spec()])
        record = journal.lease(spec(1))
        await record.append(call(1))
        for round in (2, 3):
            timed = Reply("hello", usage=Usage(2, None, 3), device=DeviceUse(setup, 0.25))
            await record.append(RecordedCall(round, SEAT, 0, b"digest", timed, 1.0))
        await journal.finish(1, ended())
        await journal.set_state("done", "plan_complete", "")

    with store.read(write(store, play)) as reader:
        assert reader.usage.device_times() == [DeviceTime("a", setup, 2, 0.5, 4, 6, untimed=1)]
        assert list(reader.snapshot.find_changes()) == []


def test_batches_are_recorded_and_those_without_a_reply_stay_open(store):
    batch = Batch(1, "uid", "a", "new", None, 3, 5.0)
    requests = [StoredRequest(n, CallPlace(1, n, SEAT.key, 0), b"body", 0.5) for n in (1, 2, 3)]

    async def play(journal):
        await journal.add_matches([spec()])
        record = journal.lease(spec(1))
        await journal.add_batch(batch, requests)
        await journal.add_batch(batch._replace(number=2), requests[:1])
        await journal.set_batch(1, "sending")
        await journal.set_batch(1, "sent", "batch-1")
        await journal.set_batch(2, "dropped")
        await record.append(call(1))

    ref = write(store, play)
    sent = batch._replace(state="sent", provider_id="batch-1")
    with store.read(ref) as reader:
        assert reader.batches.read() == [sent, batch._replace(number=2, state="dropped")]
        assert reader.batches.open() == [OpenBatch(sent, requests[1:])]

    async def resume():
        journal = await store.open(ref)
        await journal.end_batch(1, [2])
        await journal.close()

    asyncio.run(resume())
    with store.read(ref) as reader:
        assert reader.batches.read()[0].state == "ended"
        assert [each.requests for each in reader.batches.open()] == [requests[2:]]
        assert list(reader.snapshot.find_changes()) == []


def test_names_are_sorted_by_code_points(store):
    """A database sorts by the rules of a language unless it is told otherwise."""
    seats = [Seat("players", n) for n in (1, 2, 10)]
    aliases = ["b", "B", "a", "ä", "_"]
    config = replace(
        CONFIG, models={alias: {"model": "bot/x"} for alias in aliases}, contestants=aliases
    )
    identity = {**IDENTITY, "seats": {"players": 10}}

    async def main():
        journal = await store.create(NewRun(f"run-{next(NUMBERS):04}", config, identity))
        for number, alias in enumerate(aliases, 1):
            planned = MatchSpec(number, "1", None, 1, 42, dict.fromkeys(seats, alias))
            await journal.add_matches([planned])
            record = journal.lease(planned)
            for seat in seats:
                for model in ("B", "a", "Z", "_"):
                    place = ("B", "a", "Z", "_").index(model)
                    reply = Reply("x", model_served=model)
                    await record.append(RecordedCall(1, seat, place, b"", reply, 1.0))
            scores = {seat: {"points": 1.0} for seat in seats}
            await journal.finish(number, Outcome("done", "", scores, 1, [], []))
        await journal.set_state("done", "plan_complete", "")
        await journal.close()
        return journal.ref

    with store.read(asyncio.run(main())) as reader:
        served = reader.usage.models_served()
        assert served == sorted(served)
        assert len(served) == 20
        rows = [(row.alias, row.seat.key, row.model_served) for row in reader.usage.by_model()]
        assert rows == sorted(rows)
        order = [found.seat.key for found in reader.calls.of(1)]
        assert order == sorted(order)
        assert list(reader.snapshot.find_changes()) == []


def test_a_change_of_the_record_is_found(store, place):
    ref = write(store, fill)
    for statement, said in (
        ("UPDATE calls SET content = 'other' WHERE match = 2 AND {run}", "calls of this match"),
        ("UPDATE matches SET tokens = 1 WHERE number = 3 AND {run}", "lists of matches"),
        ("UPDATE scores SET value = 1 WHERE match = 1 AND {run}", "its record"),
        ("UPDATE runs SET spent = NULL WHERE {run}", "spending"),
        ("DELETE FROM matches WHERE number = 2 AND {run}", "but not the match itself"),
    ):
        tamper(place, ref, statement)
        with store.read(ref) as reader:
            assert any(said in fault.detail for fault in reader.snapshot.find_changes()), statement
    with pytest.raises(StoreError, match="was changed after it was recorded") as refused:
        asyncio.run(store.open(ref))
    kind = "database" if "://" in place else "file"
    assert f"restore the {kind} from a backup, or start a new run" in str(refused.value)


def tamper(place, ref, statement):
    """Change the record without Parley."""
    if "://" in place:
        import psycopg

        with psycopg.connect(place) as connection:
            connection.execute("SET search_path = parley")
            (run,) = connection.execute("SELECT run FROM runs WHERE id = %s", (ref.id,)).fetchone()
            connection.execute(statement.format(run=f"run = {run}"))
    else:
        import sqlite3

        with sqlite3.connect(ref.location) as connection:
            connection.execute(statement.format(run="TRUE"))
        connection.close()


def read_all(store, ref):
    with store.read(ref) as reader:
        reader.run.spent_at_most()
        for match in reader.matches.read():
            reader.messages.of(match.number)
            reader.scores.of(match.number)
        for read in (reader.scores.read, reader.notes.read, reader.usage.by_model):
            list(read())


@pytest.mark.parametrize(
    "damage",
    [
        'UPDATE matches SET seats = \'{{"judges.1": "a"}}\' WHERE {run}',
        "UPDATE matches SET unscored = '{{}}' WHERE {run}",
        "UPDATE scores SET value = 7 WHERE {run}",
        "UPDATE scores SET metric = 'charm' WHERE {run}",
        "UPDATE notes SET facts = '[1]' WHERE {run}",
        "UPDATE calls SET seat = 'ghost' WHERE {run}",
        """UPDATE calls SET masked = '[[0, 9999999, "GPT", []]]' WHERE {run}""",
        """UPDATE calls SET masked = '[[0.5, 1, "GPT", []]]' WHERE {run}""",
        "UPDATE runs SET spent = '[]' WHERE {run}",
        "UPDATE runs SET created = 1e30 WHERE {run}",
        "UPDATE runs SET identity = '{{}}' WHERE {run}",
    ],
)
def test_what_is_damaged_is_refused_where_it_is_read(store, place, damage):
    ref = write(store, fill)
    tamper(place, ref, damage)
    with pytest.raises(StoreError, match=r"damaged|cannot be read"):
        read_all(store, ref)


def test_a_rejudged_match_is_copied(store):
    copied = CopiedMatch(
        spec(),
        [call(content=STRANGE)],
        {(1, 0): (b"request", [1])},
        {SEAT: {"points": 0.5}},
        "before",
        [PeopleVerdict(1, SEAT, 1, 0, 0)],
    )
    ref = write(store, copied=[copied])
    with store.read(ref) as reader:
        assert reader.calls.of(1) == [call(content=STRANGE)]
        assert reader.calls.count() == 0
        assert reader.effects.of(1) == {(1, 0): (b"request", [1])}
        assert reader.people.verdicts() == [PeopleVerdict(1, SEAT, 1, 0, 0)]
        assert list(reader.snapshot.find_changes()) == []


def test_a_change_is_noticed_once_and_so_is_a_deleted_run(store):
    ref = write(store, fill)

    async def resume():
        journal = await store.open(ref)
        await journal.set_state("done", "plan_complete", "")
        await journal.close()

    stamp = store.stamp(ref)
    with closing(store.watch(ref)) as watch:
        assert not watch.has_changed()
        assert store.stamp(ref) == stamp
        asyncio.run(resume())
        assert watch.has_changed()
        assert not watch.has_changed()
        assert store.stamp(ref) != stamp
        store.delete(ref)
        with pytest.raises(StoreError, match="there is no"):
            watch.has_changed()
    assert store.stamp(ref) == ""
    with pytest.raises(StoreError, match="there is no"):
        store.watch(ref)


def test_runs_are_found_by_id_beginning_end_name_and_location(store):
    old, new = write(store), write(store, fill)
    assert store.find("last") == new
    for ref in (old, new):
        assert store.find(ref.id) == store.find_exact(ref.id) == ref
        assert store.find(ref.location) == ref
        assert open_store("elsewhere").find(ref.location) == ref  # a location names its store
    assert store.find_exact(new.id[:-1]) is None
    assert new in store.refs()
    assert store.refs()[0] == new
    assert [run.ref for run in store.runs()] == store.refs()  # also those that cannot be read
    store.delete(new)
    write(store)
    with pytest.raises(UsageError, match="matches several runs"):
        store.find("run-")
    with pytest.raises(UsageError, match="nothing like it"):
        store.find("nothing like it")
    assert store.name in store.check().location


def vote_and_fail(votes, study, who):
    with votes.transaction():
        votes.record_vote(study, 2, who, CHOICES[0])
        raise RuntimeError


def test_people_vote_on_pairs(store):
    one, two = write(store), write(store)
    runs = [one.id, two.id]
    with pytest.raises(UsageError, match="no votes yet"):
        store.open_votes([one], read_only=True).__exit__(None, None, None)
    a, b = ConversationSide(one.id, 1, "a", 0.5), ConversationSide(two.id, 2, "b", 1.0)
    with store.open_votes([one, two]) as votes:
        study = votes.create_study(runs, 7, True)
        assert votes.create_study(runs[::-1], 8, False) == study == votes.find_study(runs)
        study = votes.reset_study(study, 9, False)
        pair = ConversationPair("d", "i", a, b)
        votes.add_pairs(study, [pair, pair], 0)
        votes.add_pairs(study, [pair], 0)  # somebody else was faster
        assert votes.pairs(study) == {1: pair, 2: pair}
        ann = votes.add_annotator(study, "Ann")
        assert votes.add_annotator(study, "ANN") == ann
        bob = votes.add_annotator(study, "Bob")
        votes.set_token(ann, b"secret")
        votes.set_token(ann, b"newer")
        assert votes.find_token(b"secret").ended
        assert not votes.find_token(b"newer").ended
        assert votes.find_token(b"none") is None
        assert votes.end_token(ann)
        assert not votes.end_token(ann)
        votes.hold_pair(study, ann, 1, 60)
        assert votes.held_pairs(study) == {1: {ann.id}}
        votes.release_pair(study, ann, 2)
        assert votes.held_pairs(study) == {1: {ann.id}}
        votes.skip_pair(study, ann, 1)
        assert votes.skipped_pairs(study, ann) == {1}
        votes.forget_skipped(study, ann)
        assert votes.held_pairs(study) == {}
        votes.record_vote(study, 1, ann, CHOICES[0])
        votes.record_vote(study, 1, ann, CHOICES[1])
        votes.record_vote(study, 1, bob, CHOICES[0])
        assert votes.votes(study) == {1: {ann.id: CHOICES[1], bob.id: CHOICES[0]}, 2: {}}
        assert votes.votes_of(study, ann) == {1: CHOICES[1]}
        assert votes.count_replaced(study) == {ann.id: 1}
        assert votes.annotators(study) == [ann, bob]
        assert votes.reset_study(study, 1, True) is None
        with pytest.raises(RuntimeError):
            vote_and_fail(votes, study, ann)
        assert votes.votes(study)[2] == {}
    with store.open_votes([one, two], read_only=True) as votes:
        assert study in votes.studies()


def test_people_vote_on_single_conversations(store):
    ref = write(store)
    assert store.read_verdict_votes(ref, ref.id) == {}
    with store.open_verdict_votes(ref) as votes:
        votes.record(ref.id, 1, SEAT, "Ann", "yes")
        votes.record(ref.id, 1, SEAT, "ANN", "no")
        votes.record(ref.id, 2, SEAT, "Bob", "unsure")
        assert votes.votes_of(ref.id, "ann") == {(1, SEAT): "no"}
        votes.invite(ref.id, "Ann", b"one")
        votes.invite(ref.id, "ann", b"two")
        assert votes.find_invitation(b"one").ended
        assert not votes.find_invitation(b"two").ended
        assert votes.find_invitation(b"three") is None
        assert votes.end_invitation(ref.id, "ANN")
        assert not votes.end_invitation(ref.id, "Ann")
    wanted = {(1, SEAT): {"ANN": "no"}, (2, SEAT): {"Bob": "unsure"}}
    assert store.read_verdict_votes(ref, ref.id) == wanted


def test_the_same_run_is_the_same_on_both_stores(tmp_path, postgres_url):
    models = dict.fromkeys(("a", "b", "c"), "bot/random")
    found = []
    for place in (str(tmp_path), postgres_url):
        result = parley.run("public_goods", models=models, repeats=2, seed=3, store=place)
        audit = audit_run(result.ref)
        assert audit.breaches == []
        assert audit.checked["replay"] == 2
        with open_store(place).read(result.ref) as reader:
            matches = [replace(row, began=None, ended=None) for row in reader.matches.read()]
            calls = [
                (found.round, found.seat, found.attempt, found.view_digest, found.reply.content)
                for row in matches
                for found in reader.calls.of(row.number)
            ]
            messages = [reader.messages.of(row.number) for row in matches]
            scores = list(reader.scores.read())
        data = {key: result.data[key] for key in ("results", "pairs", "ranks", "violations")}
        found.append(
            (
                matches,
                calls,
                messages,
                scores,
                data,
                [row.signature for row in result.part("results")],
            )
        )
    assert found[0] == found[1]
