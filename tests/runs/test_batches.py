"""Runs through batch interfaces: one batch for each round of all matches, whatever the provider
does, and no reply is paid for twice."""

import asyncio
import json
import random
import signal
import sqlite3
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

import parley
from parley.audit.audit import audit_run
from parley.config.experiment import Experiment
from parley.errors import StoreError, UsageError
from parley.options import from_keywords
from parley.providers._batches import split_requests
from parley.providers._openai_batches import OpenAIBatchClient
from parley.runs import batches
from parley.runs.batches import endpoint_of
from parley.runs.progress import Progress, StopSignal
from parley.runs.run_context import RunContext
from parley.runs.start import play_new_run
from parley.store import find_run, open_store
from parley.testing.batch_server import BatchServer, Failed, says_as_anthropic
from parley.testing.server import Server, reset, says, sent

COINS = '{"coins": 5}'
ROUNDS = 5
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch, tmp_path):
    """Poll at once, keys for the providers, and a folder of its own."""
    for name in ("FIRST_POLL", "LONGEST_POLL", "SETTLE", "TICK"):
        monkeypatch.setattr(batches, name, 0.01)
    monkeypatch.setattr(batches, "backoff_seconds", lambda tries: 0.01)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-0123456789abcdef")
    monkeypatch.chdir(tmp_path)


def answer(body):
    return {**says(COINS), "usage": USAGE}


def answer_as_anthropic(body):
    return says_as_anthropic(COINS)


class Playing:
    """One run of public_goods with two models, and what its user was shown."""

    def __init__(self, server, family="openai-compatible", store="runs", **options):
        self.notices, self.events = [], []
        self.models = {
            name: {"model": f"{family}/m", "base_url": server.url, "batch_api": True, **options}
            for name in "ab"
        }
        self.store = store

    def see(self, event):
        self.events.append(event)
        if event.kind == "notice":
            self.notices.append(event.text)

    def said(self, words):
        return any(words in notice for notice in self.notices)

    async def run(self, repeats=4, **options):
        options = {"models": self.models, **options}
        return await parley.run_async(
            "public_goods", repeats=repeats, store=self.store, progress=self.see, **options
        )

    async def resume(self, **options):
        (info,) = open_store(self.store).runs()
        return await asyncio.to_thread(
            parley.resume, info.id, store=self.store, progress=self.see, **options
        )

    @property
    def ref(self):
        (info,) = open_store(self.store).runs()
        return find_run(info.id, self.store)

    def rows(self, query):
        with closing(sqlite3.connect(self.ref.location)) as connection:
            return connection.execute(query).fetchall()


def play(server, repeats=4, family="openai-compatible", **options):
    """Play a run to its end: the result, the run, and the server."""

    async def played():
        async with server:
            playing = Playing(server, family)
            result = await playing.run(repeats, **options)
            return result, playing

    return asyncio.run(played())


def check_paid_once(server, playing, result):
    """The run is done, its record is sound, and each of its replies was billed once."""
    assert result.data["run"]["state"] == "done", playing.notices
    ((replies,),) = playing.rows("SELECT COUNT(*) FROM calls")
    assert server.billed.total() == replies
    assert not audit_run(playing.ref).breaches


@pytest.mark.parametrize(
    ("family", "reply"),
    [("openai-compatible", answer), ("anthropic", answer_as_anthropic)],
)
def test_each_round_is_one_batch_and_its_record_is_that_of_ordinary_calls(family, reply):
    server = BatchServer(reply)
    result, batched = play(server, family=family)
    check_paid_once(server, batched, result)
    assert server.single == 0
    assert len(server.batches) == ROUNDS * 2  # one for each model
    assert all(len(batch.requests) == 4 for batch in server.batches.values())

    async def ordinary():
        async with BatchServer(reply) as other:
            playing = Playing(other, family, store="ordinary", batch_api=False)
            await playing.run()
            return other, playing

    other, playing = asyncio.run(ordinary())
    assert other.single == other.billed.total() == server.billed.total()
    assert other.billed == server.billed  # the same bodies
    columns = (
        "match, round, seat, attempt, hex(view_digest), content, parts, reasoning, finish, "
        "model_served, tokens_in, tokens_cached, tokens_out, provider_state, sent, left_out"
    )
    query = f"SELECT {columns} FROM calls ORDER BY match, round, seat, attempt"
    assert playing.rows(query) == batched.rows(query)
    assert batched.rows("SELECT DISTINCT latency FROM calls") == [(None,)]
    batches_on_record = batched.rows("SELECT state, requests FROM batches")
    assert batches_on_record == [("ended", 4)] * (ROUNDS * 2)


def test_a_seat_that_is_slow_does_not_split_a_batch(monkeypatch):
    post = batches.Batches._post

    async def post_late(self, model, body, call):
        if model.alias == "b" and call.place().match % 2:
            await asyncio.sleep(0.1)  # the other seat of the match waits, for longer than SETTLE
        return await post(self, model, body, call)

    monkeypatch.setattr(batches.Batches, "_post", post_late)
    server = BatchServer(answer)
    result, playing = play(server)
    check_paid_once(server, playing, result)
    assert [len(batch.requests) for batch in server.batches.values()] == [4] * (ROUNDS * 2)


@pytest.mark.parametrize("family", ["openai-compatible", "anthropic"])
@pytest.mark.parametrize("ending", ["expired", "cancelled"])
def test_requests_of_a_batch_that_broke_off_are_part_of_the_next_one(family, ending):
    reply = answer if family == "openai-compatible" else answer_as_anthropic
    server = BatchServer(reply, ends=[ending, ending])
    result, playing = play(server, family=family)
    check_paid_once(server, playing, result)
    assert len(server.batches) >= ROUNDS * 2 + 2
    assert playing.said("2 requests failed")


def test_an_error_of_one_request_is_the_error_of_an_ordinary_call():
    failing = Counter()

    def sometimes(body):
        key = json.dumps(body, sort_keys=True)
        failing[key] += 1
        if failing[key] == 1 and len(failing) % 3 == 0:
            return Failed(500)
        return answer(body)

    server = BatchServer(sometimes)
    result, playing = play(server)
    check_paid_once(server, playing, result)
    assert max(failing.values()) == 2


def test_an_option_that_the_model_rejects_is_left_out_of_the_next_batch():
    def without_temperature(body):
        if "temperature" in body:
            return Failed(400, "Unsupported parameter: 'temperature' is not supported here.")
        return answer(body)

    async def played():
        async with BatchServer(without_temperature) as server:
            playing = Playing(server, temperature=0.5)
            return server, playing, await playing.run()

    server, playing, result = asyncio.run(played())
    check_paid_once(server, playing, result)
    assert playing.rows("SELECT DISTINCT left_out FROM calls") == [("temperature",)]


def test_a_request_that_never_succeeds_fails_its_match():
    server = BatchServer(lambda body: Failed(503, "no capacity"))
    result, playing = play(server, repeats=1)
    assert result.data["run"]["state"] == "stopped"
    assert any("no capacity" in event.text for event in playing.events)
    assert len(server.batches) == 2 * batches.TRIES
    assert playing.rows("SELECT COUNT(*) FROM batch_requests WHERE NOT failed") == [(0,)]


def test_results_may_be_disordered_repeated_foreign_or_missing():
    foreign = [{"custom_id": name, "response": None} for name in ("x", "p0-0", "", None, 5)]

    disturbed = set()  # the first two batches

    def mangle(lines):
        uid = lines[0]["custom_id"].partition("-")[0]
        if len(disturbed) < 2 or uid in disturbed:
            disturbed.add(uid)
            return [*lines[:0:-1], *lines[1:2], *foreign]
        return lines[::-1]

    server = BatchServer(answer, mangle=mangle)
    result, playing = play(server, repeats=3)
    assert result.data["run"]["state"] == "done"
    assert not audit_run(playing.ref).breaches
    wrong = "1 result missing, 1 result repeated, 5 lines not of this batch"
    assert playing.said(f"batch 1 of a (completed): {wrong}; 1 request can be retried")
    assert playing.said("2 of 3 results could be read after 8 tries; Parley sends 1 request again")
    # a reply that is missing may have been billed
    ((replies,),) = playing.rows("SELECT COUNT(*) FROM calls")
    assert replies == 3 * 2 * ROUNDS == server.billed.total() - 2
    assert sum(row["unanswered"] for row in result.data["cost"]) == 2


@pytest.mark.parametrize("family", ["openai-compatible", "anthropic"])
def test_a_batch_whose_answer_was_lost_is_found_again(family):
    reply = answer if family == "openai-compatible" else answer_as_anthropic
    server = BatchServer(reply, acts={"created": [reset, None, reset, sent(b"oops", 500)]})
    result, playing = play(server, family=family)
    check_paid_once(server, playing, result)
    assert len(server.batches) == ROUNDS * 2


@pytest.mark.parametrize("family", ["openai-compatible", "anthropic"])
@pytest.mark.parametrize("status", [408, 500, 503, 504, 524])
def test_a_batch_that_exists_although_its_creation_failed_is_not_paid_for_twice(family, status):
    reply = answer if family == "openai-compatible" else answer_as_anthropic
    failed = sent(b"try again later", status, Retry_After="0.01")
    server = BatchServer(reply, acts={"created": [failed, None, failed]})
    result, playing = play(server, repeats=2, family=family)
    check_paid_once(server, playing, result)
    assert len(server.batches) == ROUNDS * 2
    assert not server.acts["created"]


@pytest.mark.parametrize("listed", [{"data": 5}, {"error": {"message": "busy"}}, b"<html>"])
def test_a_list_that_cannot_be_read_does_not_mean_that_a_batch_does_not_exist(listed):
    acts = {"created": [reset], "list": [None, None, sent(listed), sent(listed)]}
    server = BatchServer(answer, acts=acts)
    result, playing = play(server, repeats=2)
    check_paid_once(server, playing, result)
    assert not server.acts["list"]


def test_requests_of_a_batch_that_may_exist_count_as_unanswered():
    refused = sent({"error": {"message": "no such key"}}, 401)
    acts = {"created": [reset, reset], "list": [None, None, *[refused] * 99]}
    result, playing = play(BatchServer(answer, acts=acts), repeats=2)
    assert result.data["run"]["state"] == "stopped"
    assert playing.rows("SELECT DISTINCT state FROM batches") == [("sending",)]
    assert sum(row["unanswered"] for row in result.data["cost"]) == 4


@pytest.mark.parametrize("family", ["openai-compatible", "anthropic"])
def test_passing_errors_of_the_interface_are_waited_out(family):
    later, broken = sent(b"later", 429, Retry_After="0.01"), sent(b"broken", 500)
    acts = {
        "upload": [broken, later],
        "create": [later, broken, None, reset],
        "list": [None, None, broken, reset],
        "poll": [broken, later, reset, sent(b"no JSON")],
        "results": [broken, reset, later],
    }
    reply = answer if family == "openai-compatible" else answer_as_anthropic
    server = BatchServer(reply, acts=acts)
    result, playing = play(server, family=family)
    check_paid_once(server, playing, result)
    assert len(server.batches) == ROUNDS * 2
    assert not any(server.acts[name] for name in ("create", "poll", "results"))


def test_a_batch_that_cannot_be_sent_costs_nothing():
    server = BatchServer(answer, acts={"create": [sent(b"broken", 500)] * 99})
    result, playing = play(server, repeats=1)
    assert result.data["run"]["state"] == "stopped"
    assert any("HTTP 500: broken (5 tries)" in event.text for event in playing.events)
    assert not server.batches
    assert sum(row["unanswered"] for row in result.data["cost"]) == 0
    assert playing.rows("SELECT DISTINCT state FROM batches") == [("dropped",)]


@pytest.mark.parametrize("family", ["openai-compatible", "anthropic"])
@pytest.mark.parametrize(
    "found",
    [
        sent({"error": {"message": "no such file"}}, 404),
        sent({"error": {"message": "overloaded"}}),
        sent(b"<html>maintenance</html>"),
        sent(b""),
        sent(b"not allowed now", 400),
    ],
    ids=["404", "error", "HTML", "empty", "400"],
)
def test_results_that_cannot_be_fetched_at_first_are_fetched_again(family, found):
    reply = answer if family == "openai-compatible" else answer_as_anthropic
    server = BatchServer(reply, acts={"results": [found, found, None, found]})
    result, playing = play(server, repeats=2, family=family)
    check_paid_once(server, playing, result)
    assert playing.said("0 of 2 results could be read")
    assert len(server.batches) == ROUNDS * 2
    assert sum(row["unanswered"] for row in result.data["cost"]) == 0


@pytest.mark.parametrize("family", ["openai-compatible", "anthropic"])
@pytest.mark.parametrize("ending", ["completed", "expired"])
def test_results_that_are_incomplete_at_first_are_fetched_again(family, ending):
    reply = answer if family == "openai-compatible" else answer_as_anthropic
    fetched = Counter()

    def cut_at_first(lines):
        fetched[lines[0]["custom_id"]] += 1
        return lines[1:] if fetched[lines[0]["custom_id"]] < 3 else lines

    server = BatchServer(reply, mangle=cut_at_first, ends=[ending, ending])
    result, playing = play(server, repeats=4, family=family)
    check_paid_once(server, playing, result)
    assert sum(row["unanswered"] for row in result.data["cost"]) == 0


def test_a_line_that_is_too_large_costs_only_its_own_request(monkeypatch):
    monkeypatch.setattr("parley.providers._batches.LARGEST", 5_000)
    large = set()

    def enlarge(lines):
        line = lines[0]
        uid = line["custom_id"].partition("-")[0]
        if not large or uid in large:
            large.add(uid)
            return [*lines[1:], {**line, "padding": "x" * 20_000}]
        return lines

    server = BatchServer(answer, mangle=enlarge)
    result, playing = play(server)
    assert result.data["run"]["state"] == "done", playing.notices
    assert playing.said("1 result missing, 1 line not of this batch; 1 request can be retried")
    ((replies,),) = playing.rows("SELECT COUNT(*) FROM calls")
    assert server.billed.total() == replies + 1
    assert sum(row["unanswered"] for row in result.data["cost"]) == 1


def test_ids_with_thousands_of_digits_belong_to_no_request():
    def add(lines):
        uid = lines[0]["custom_id"].partition("-")[0]
        return [{**lines[0], "custom_id": f"{uid}-{'9' * 5000}"}, *lines]

    server = BatchServer(answer, mangle=add)
    result, playing = play(server, repeats=2)
    check_paid_once(server, playing, result)
    assert playing.said("1 line not of this batch")


def test_an_unexpected_error_fails_only_the_requests_of_its_batch():
    async def broken(fault):
        raise fault

    async def fail_one_of_two(fault):
        run = batches.Batches(None, Progress(), StopSignal())
        future = asyncio.get_running_loop().create_future
        both = [batches.OpenRequest(None, name, future()) for name in (b"1", b"2")]
        run._open = {each.key: each for each in both}
        run._start(broken(fault), both[:1])
        await asyncio.gather(*run._tasks)
        return [str(each.answer.exception()) if each.answer.done() else "" for each in both]

    said = asyncio.run(fail_one_of_two(TypeError("a bug")))
    assert "unexpected TypeError: a bug" in said[0]
    assert not said[1]
    # an error of the store concerns all
    assert asyncio.run(fail_one_of_two(StoreError("disk full"))) == ["disk full"] * 2


def test_a_batch_that_is_completed_before_it_has_a_file_is_polled_again():
    counts = {"total": 2, "completed": 2, "failed": 0}
    early = sent({"status": "completed", "request_counts": counts, "output_file_id": None})
    uncounted = sent({"status": "completed"})
    server = BatchServer(answer, acts={"poll": [early, uncounted, early, uncounted]})
    result, playing = play(server, repeats=2)
    check_paid_once(server, playing, result)
    assert len(server.batches) == ROUNDS * 2


def test_a_key_that_may_not_fetch_results_sends_nothing_again():
    refused = sent({"error": {"message": "no"}}, 403)
    server = BatchServer(answer, acts={"results": [refused] * 99})
    result, playing = play(server, repeats=2)
    assert result.data["run"]["state"] == "stopped"
    assert len(server.batches) == 2
    assert playing.rows("SELECT DISTINCT state FROM batches") == [("sent",)]


def test_requests_whose_results_stay_away_are_sent_again_and_the_user_knows():
    gone = sent({"error": {"message": "gone"}}, 404)
    server = BatchServer(answer, acts={"results": [gone] * (2 * batches.FETCHES)})
    result, playing = play(server, repeats=2)
    assert result.data["run"]["state"] == "done"
    assert playing.said("gone")
    assert playing.said("after 8 tries; Parley sends 2 requests again, and you may be billed twice")
    assert playing.said("2 results missing")
    # what was billed without a reply on record is counted
    assert sum(row["unanswered"] for row in result.data["cost"]) == 4


def test_a_batch_with_too_many_tokens_is_sent_in_smaller_batches(monkeypatch):
    monkeypatch.setattr(batches, "HOLD", 0.01)
    fault = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}
    server = BatchServer(answer, ends=["failed", "failed"], fault=fault)
    result, playing = play(server)
    check_paid_once(server, playing, result)
    sizes = [len(batch.requests) for batch in server.batches.values()]
    assert sizes == [4, 4] + [2] * (len(sizes) - 2)


def test_a_batch_that_the_provider_does_not_accept_stops_the_run():
    server = BatchServer(answer, ends=["failed"] * 99)
    result, playing = play(server, repeats=2)
    assert result.data["run"]["state"] == "stopped"
    assert any("line 1 is not JSON" in event.text for event in playing.events)
    assert playing.said("2 requests failed (line 1 is not JSON)")
    assert not playing.said("retried")
    assert len(server.batches) == 2


def test_batches_are_split_at_the_limits_of_the_provider(monkeypatch):
    monkeypatch.setattr(OpenAIBatchClient, "most_requests", 3)
    server = BatchServer(answer)
    result, playing = play(server)
    check_paid_once(server, playing, result)
    assert [len(batch.requests) for batch in server.batches.values()] == [3, 1] * (ROUNDS * 2)
    assert split_requests([5, 5, 5], 10, 10) == [(0, 2), (2, 3)]
    assert split_requests([50, 5, 5], 10, 10) == [(0, 1), (1, 3)]
    assert split_requests([1] * 5, 2, 10) == [(0, 2), (2, 4), (4, 5)]
    assert split_requests([], 2, 10) == []


def test_an_endpoint_without_a_batch_interface_is_refused_before_anything_is_written(tmp_path):
    async def played():
        async with Server(sent({"error": "not here"}, 404)) as server:
            await Playing(server).run()

    with pytest.raises(UsageError, match=r"a: the endpoint has no batch API \(.*/batches answers"):
        asyncio.run(played())
    assert not list((tmp_path / "runs").glob("*.parley*"))
    models = {"a": {"model": "ollama/m", "batch_api": True}, "b": "bot/altruist"}
    with pytest.raises(UsageError, match=r"a \(ollama/m\) has no .*: remove a.batch_api=true"):
        parley.run("public_goods", models)
    with pytest.raises(UsageError, match=r"but a \(ollama/m\) has none .*: set -M a.batch_api=f"):
        parley.run("public_goods", {"a": "ollama/m", "b": "bot/altruist"}, batch=True)


def test_a_server_that_cannot_be_reached_is_refused_before_anything_is_written(tmp_path):
    model = {"model": "openai-compatible/m", "base_url": "http://127.0.0.1:1/v1"}
    said = r"a: http://127\.0\.0\.1:1/v1/batches: cannot connect: .*set -M a.base_url=URL"
    with pytest.raises(UsageError, match=said):
        parley.run("public_goods", {"a": model, "b": "bot/altruist"}, batch=True)
    assert not list((tmp_path / "runs").glob("*.parley*"))


def test_errors_of_batches_name_the_address_of_batches():
    server = BatchServer(answer, acts={"upload": [sent({"error": "who are you"}, 401)] * 2})
    result, playing = play(server, repeats=1)
    assert result.data["run"]["state"] == "stopped"
    assert any("/v1/batches: HTTP 401" in event.text for event in playing.events)
    assert not any("/chat/completions" in event.text for event in playing.events)


def test_a_participant_without_an_endpoint_has_no_batch_interface():
    with pytest.raises(UsageError, match="a has no batch API that Parley can use: set -M a"):
        endpoint_of("a", object())


def test_bots_play_beside_a_model_in_batches():
    async def played():
        async with BatchServer(answer) as server:
            playing = Playing(server)
            models = {
                "a": {"model": "openai-compatible/m", "base_url": server.url},
                "bot": "bot/altruist",
            }
            return server, await playing.run(models=models, batch=True)

    server, result = asyncio.run(played())
    assert result.data["run"]["state"] == "done"
    assert (len(server.batches), server.single) == (ROUNDS, 0)
    assert result.data["run"]["models"]["a"]["batch_api"] is True


async def cancel_in_batches(playing, server):
    """Play until the first two batches are sent, and stop at once."""
    polled = asyncio.Event()

    async def poll_first(asked, writer):
        if len(server.batches) == 2:
            polled.set()
        await sent({"id": "b", "status": "in_progress"})(asked, writer)

    server.acts["poll"] = [poll_first] * 1000
    task = asyncio.create_task(playing.run())
    await asyncio.wait({task, asyncio.create_task(polled.wait())}, return_when="FIRST_COMPLETED")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server.acts.clear()


def test_a_run_that_is_interrupted_leaves_its_batches_and_collects_their_replies_later():
    async def played():
        async with BatchServer(answer) as server:
            playing = Playing(server)

            await cancel_in_batches(playing, server)
            ((replies,),) = playing.rows("SELECT COUNT(*) FROM calls")
            assert (replies, server.billed.total()) == (0, 8)
            assert playing.rows("SELECT state FROM batches") == [("sent",), ("sent",)]
            result = await playing.resume()
            return server, playing, result

    server, playing, result = asyncio.run(played())
    check_paid_once(server, playing, result)
    assert playing.said("batch 1 of a was sent at") or playing.said("batch 1 of b was sent at")
    assert playing.said("stays with the provider")
    assert len(server.batches) == ROUNDS * 2
    assert sum(row["unanswered"] for row in result.data["cost"]) == 0


def test_another_account_does_not_pay_for_the_batches_again():
    async def played():
        async with BatchServer(answer) as server:
            playing = Playing(server)
            await cancel_in_batches(playing, server)
            server.batches.clear()
            result = await playing.resume()
            return server, playing, result

    server, playing, result = asyncio.run(played())
    assert result.data["run"]["state"] == "stopped"
    assert any("check that base_url and the API key" in event.text for event in playing.events)
    assert not server.batches  # nothing was sent


PROGRAM = """
import json, sys
from pathlib import Path
import parley
from parley.runs import batches
from parley.store import open_store

for name in ("FIRST_POLL", "LONGEST_POLL", "SETTLE", "TICK"):
    setattr(batches, name, 0.03)
batches.backoff_seconds = lambda tries: 0.01
models, repeats = json.loads(sys.argv[1]), int(sys.argv[2])
known = list(open_store("runs").runs()) if Path("runs").exists() else []
if known:
    result = parley.resume(known[0].id, store="runs", allow_hosts=["127.0.0.1"])
else:
    result = parley.run("public_goods", models, repeats=repeats, store="runs")
assert result.data["run"]["state"] == "done", result.data["run"]
"""


class KillingServer(BatchServer):
    """Kills the program that asks, at the first request for which `is_fatal` holds: before or
    after it was dealt with."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.program, self.is_fatal, self.afterwards = None, None, False

    async def _respond(self, asked, writer):
        if self.is_fatal is not None and self.is_fatal(asked):
            self.is_fatal = None
            self.program.send_signal(signal.SIGKILL)
            await self.program.wait()
            if self.afterwards:  # its answer does not arrive
                await super()._respond(asked, Swallowing())
        else:
            await super()._respond(asked, writer)


class Swallowing:
    def write(self, data):
        pass


async def kill_and_resume(server, family, repeats, kills):
    """Play in a program of its own that is killed, resumed and killed again; returns how often it
    died."""
    models = {
        name: {"model": f"{family}/m", "base_url": server.url, "batch_api": True} for name in "ab"
    }
    died = 0
    for server.is_fatal, server.afterwards in [*kills, (None, False)]:
        words = ["-c", PROGRAM, json.dumps(models), str(repeats)]
        server.program = await asyncio.create_subprocess_exec(
            sys.executable, *words, stderr=asyncio.subprocess.PIPE
        )
        _, said = await server.program.communicate()
        if server.program.returncode == -signal.SIGKILL:
            died += 1
        else:
            assert server.program.returncode == 0, said.decode()[-2000:]
    return died


def creates(asked):
    return asked.method == "POST" and asked.path.endswith("/batches")


def fetches_results(asked):
    return asked.path.endswith(("/content", "/results"))


@pytest.mark.parametrize("family", ["openai-compatible", "anthropic"])
def test_a_run_killed_while_batches_are_sent_and_read_pays_for_no_reply_twice(family):
    reply = answer if family == "openai-compatible" else answer_as_anthropic
    # the first batch exists, and its id never arrives; later, the results are on their way
    kills = [(creates, True), (fetches_results, True)][: 2 if family != "anthropic" else 1]

    async def played():
        async with KillingServer(reply, polls=2) as server:
            return server, await kill_and_resume(server, family, 4, kills)

    server, died = asyncio.run(played())
    assert died == len(kills)
    playing = Playing(server, family)
    ((replies,),) = playing.rows("SELECT COUNT(*) FROM calls")
    assert server.billed.total() == replies == 4 * 2 * ROUNDS
    assert not audit_run(playing.ref).breaches


def after(count):
    """A condition that holds at the request with this number."""
    numbers = iter(range(1, 10**9))
    return lambda asked: next(numbers) >= count


@pytest.mark.slow
@pytest.mark.parametrize("family", ["openai-compatible", "anthropic"])
def test_twenty_kills_of_200_matches_pay_for_no_reply_twice(family):
    reply = answer if family == "openai-compatible" else answer_as_anthropic
    rng = random.Random(family)
    kills = [(after(rng.randint(1, 8)), rng.random() < 0.5) for _ in range(20)]

    async def played():
        async with KillingServer(reply, polls=6) as server:
            return server, await kill_and_resume(server, family, 200, kills)

    server, died = asyncio.run(played())
    assert died == 20
    playing = Playing(server, family)
    ((replies,),) = playing.rows("SELECT COUNT(*) FROM calls")
    assert server.billed.total() == replies == 200 * 2 * ROUNDS
    if family == "openai-compatible":  # bodies differ in their seeds
        assert max(server.billed.values()) == 1
    assert not audit_run(playing.ref).breaches


def test_ctrl_c_does_not_wait_for_batches():
    async def played():
        async with BatchServer(answer) as server:
            stop_signal, progress = StopSignal(), Progress()

            async def interrupt(asked, writer):
                if len(server.batches) == 2:
                    stop_signal.stop("interrupted")
                await sent({"id": "b", "status": "in_progress"})(asked, writer)

            server.acts["poll"] = [interrupt] * 10_000
            playing = Playing(server)
            experiment = Experiment("public_goods", models=playing.models)
            experiment.given = from_keywords(repeats=4)
            store = open_store("runs")
            context = RunContext(progress, stop_signal)
            ending = await play_new_run(experiment.prepare(), store, context)
            assert (ending.state, ending.status) == ("stopped", "interrupted")
            server.acts.clear()
            assert any("stays with the provider" in notice for notice in progress.notices)
            return server, playing, await playing.resume()

    server, playing, result = asyncio.run(played())
    check_paid_once(server, playing, result)
    assert len(server.batches) == ROUNDS * 2


def test_a_key_in_an_answer_reaches_neither_the_run_nor_its_user(monkeypatch):
    key = "key-0123456789abcdef"

    def echo(body):
        return {**answer(body), "model": key, "usage": USAGE}

    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", key)
    tries = Counter()

    def first_an_error(body):
        tries["all"] += 1
        return Failed(500, f"wrong key {key}") if tries["all"] < 3 else echo(body)

    server = BatchServer(first_an_error)
    result, playing = play(server, repeats=2)
    assert result.data["run"]["state"] == "done"
    assert playing.said("wrong key")
    assert key.encode() not in Path(playing.ref.location).read_bytes()
    assert not any(key in event.text for event in playing.events)
