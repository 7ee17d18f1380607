"""What calls through batch APIs cost: forecasts, budgets, prices; and how the wait is shown."""

import asyncio
import time

import pytest

import parley
from parley.config.batch_api import uses_batch_api, with_batch_api
from parley.config.experiment import Experiment
from parley.config.prices import PriceList
from parley.errors import UsageError
from parley.options import BATCH_CONCURRENCY, CONCURRENCY, from_keywords
from parley.runs import batches
from parley.runs.progress import BatchProgress, Progress
from parley.runs.progress_display import describe_progress, describe_wait, show_lines
from parley.runs.screening import forecast_with_screening
from parley.runs.start import check_concurrency
from parley.store import find_run, open_store, read_run
from parley.testing.batch_server import BatchServer
from parley.testing.server import says, sent

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100}
GPT = {"model": "openai/gpt-4.1"}


def answer(body):
    return {**says('{"coins": 5}'), "usage": USAGE}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch, tmp_path):
    for name in ("FIRST_POLL", "LONGEST_POLL", "SETTLE", "TICK"):
        monkeypatch.setattr(batches, name, 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", "key-0123456789abcdef")
    monkeypatch.chdir(tmp_path)


def test_calls_in_batches_cost_half_unless_the_price_file_says_otherwise(tmp_path, monkeypatch):
    usual = PriceList().find("a", GPT, None, None)
    half = PriceList().find("a", {**GPT, "batch_api": "true"}, None, None)
    assert half.usd(10**6, 10**5, 10**6) == pytest.approx(usual.usd(10**6, 10**5, 10**6) / 2)
    assert "half price for batches" in half.as_of
    (tmp_path / "prices.yaml").write_text(
        "a: {input: 2, output: 8}\n"
        "b: {input: 2, output: 8, batch: {input: 1.5, output: 3, cached_input: 0.5}}\n"
    )
    batched = {**GPT, "batch_api": True}
    assert PriceList().find("a", batched, None, None).usd(10**6, 0, 10**6) == 5
    assert PriceList().find("b", batched, None, None).usd(10**6, 10**5, 10**6) == 1.35 + 0.05 + 3
    assert PriceList().find("b", GPT, None, None).usd(10**6, 0, 10**6) == 10
    (tmp_path / "prices.yaml").write_text("b: {input: 2, output: 8, batch: {input: -1, output: 3}}")
    with pytest.raises(UsageError, match="batch"):
        PriceList().find("b", GPT, None, None)


def prepare(batch, **options):
    models = {"a": dict(GPT), "bot": {"model": "bot/altruist"}}
    experiment = Experiment("public_goods", models=models)
    experiment.given = from_keywords(batch=batch, repeats=20, **options)
    return experiment.prepare()


def test_a_forecast_knows_the_price_of_batches_and_does_not_guess_their_time():
    usual, batched = (forecast_with_screening(prepare(batch)) for batch in (None, True))
    assert batched.usd["high"] == pytest.approx(usual.usd["high"] / 2)
    assert batched.data["seconds"] == {"low": None, "high": None}
    assert usual.data["seconds"]["high"] > 0
    said = [note for note in batched.notes if "through the batch APIs" in note]
    assert said == [
        "a: about 5 batches of requests through the batch APIs of providers, one after the other; "
        "each takes minutes to 24 hours"
    ]


def test_matches_wait_for_batches_together():
    assert check_concurrency(prepare(None), None) == CONCURRENCY
    assert check_concurrency(prepare(True), None) == BATCH_CONCURRENCY
    assert check_concurrency(prepare(True, concurrency=7)) == 7


def test_batch_without_a_model_has_no_effect():
    bots = {name: {"model": f"bot/{name}"} for name in ("altruist", "random")}
    experiment = Experiment("public_goods", models=bots, given=from_keywords(batch=True))
    assert any(each.startswith("--batch has no effect") for each in experiment.prepare().cautions)
    assert not any("--batch" in caution for caution in prepare(True).cautions)


def test_batch_applies_to_models_that_have_a_batch_interface():
    models = {"a": GPT, "b": {**GPT, "batch_api": "false"}, "bot": {"model": "bot/random"}}
    assert {name: uses_batch_api(each) for name, each in with_batch_api(models).items()} == {
        "a": True,
        "b": False,
        "bot": False,
    }
    own = {"a": {**GPT, "rpm": 5, "batch_api": True}, "bot": {"model": "bot/altruist"}}
    assert any(
        caution.startswith("a.rpm has no effect, because a is called through the batch API of")
        for caution in Experiment("public_goods", models=own).prepare().cautions
    )


def test_a_run_records_what_its_batches_cost_and_keeps_its_budget():
    async def played():
        async with BatchServer(answer) as server:
            model = {**GPT, "base_url": server.url, "batch_api": True, "max_tokens": 100}
            models = {"a": model, "bot": "bot/altruist"}
            whole = await parley.run_async("public_goods", models, repeats=4, store="whole")
            usual = PriceList().find("a", GPT, None, None)
            (row,) = [row for row in whole.data["cost"] if row["alias"] == "a"]
            assert row["usd"] == pytest.approx(20 * usual.usd(1000, 0, 100) / 2)
            asked = len(server.batches)
            tight = await parley.run_async(
                "public_goods", models, repeats=4, store="tight", budget_usd=0.015
            )
            return whole, tight, asked

    whole, tight, asked = asyncio.run(played())
    assert whole.data["run"]["state"] == "done"
    assert asked == 5
    # the run stops before the budget is exceeded, and what was sent is on record
    assert tight.data["run"]["stop"]["status"] == "budget"
    (row,) = [row for row in tight.data["cost"] if row["alias"] == "a"]
    assert 0 < row["usd"] <= 0.015
    assert row["unanswered"] == 0


def test_requests_in_flight_are_not_counted_twice_when_a_run_is_resumed():
    async def played():
        async with BatchServer(answer) as server:
            polled = asyncio.Event()

            async def poll(asked, writer):
                polled.set()
                await sent({"id": "b", "status": "in_progress"})(asked, writer)

            server.acts["poll"] = [poll] * 1000
            model = {**GPT, "base_url": server.url, "batch_api": True, "max_tokens": 100}
            models = {"a": model, "bot": "bot/altruist"}
            options = {"repeats": 4, "store": "runs", "budget_usd": 1.0, "max_calls": 1000}
            task = asyncio.create_task(parley.run_async("public_goods", models, **options))
            await polled.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            (info,) = open_store("runs").runs()
            with read_run(find_run(info.id, "runs")) as reader:
                (batch,) = reader.batches.open()
                stopped = reader.run.spent_at_most()
                reserved = sum(each.usd for each in batch.requests)
            assert stopped[1] == pytest.approx(reserved)
            server.acts.clear()
            result = await asyncio.to_thread(
                parley.resume, info.id, store="runs", allow_hosts=["127.0.0.1"]
            )
            with read_run(find_run(info.id, "runs")) as reader:
                return result, reader.run.spent_at_most()

    result, (calls, usd) = asyncio.run(played())
    (row,) = [row for row in result.data["cost"] if row["alias"] == "a"]
    assert row["usd"] > 0
    assert usd == pytest.approx(row["usd"])
    assert calls == 20 + 20  # the bot is counted, too


def test_the_progress_line_says_which_batch_the_run_waits_for():
    progress = Progress(planned=200, in_flight=200)
    since = time.mktime((2026, 11, 16, 12, 3, 0, 0, 0, -1))
    progress.batches[3] = BatchProgress(3, "a", 180, 200, since)
    assert describe_wait(progress).startswith("waiting for batch 3 of a: 180 of 200 done, since ")
    assert describe_wait(progress).endswith("12:03")
    progress.batches[4] = BatchProgress(4, "b", 0, 200, since + 1)
    assert describe_wait(progress).endswith("12:03 and 1 more batch")
    assert "left" not in describe_progress(progress)


def test_a_log_says_once_that_the_run_waits_for_a_batch(monkeypatch):
    ticks = iter(range(5))

    async def tick(seconds):
        if next(ticks, None) is None:
            raise asyncio.CancelledError

    monkeypatch.setattr("parley.runs.progress_display.asyncio.sleep", tick)
    progress, said = Progress(planned=200, in_flight=200), []
    progress.batches[3] = BatchProgress(3, "a", 180, 200, time.time())

    def say(line):
        said.append(line)
        if len(said) == 1:
            progress.batches[3].done = 190

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(show_lines(progress, say))
    assert ["180 of 200 done" in line for line in said] == [True, False]


def test_an_interrupted_run_waits_for_calls_that_are_in_no_batch():
    progress = Progress()
    assert not progress.waits_only_for_batches
    progress.batches[1] = BatchProgress(1, "a", 0, 6, 0.0)
    progress.waiting |= {"a": {1: 0.0}, "b": {}}
    assert progress.waits_only_for_batches
    progress.waiting["b"][2] = 0.0
    assert not progress.waits_only_for_batches
