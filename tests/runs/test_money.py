"""Money: prices, what a run has cost, bounds that hold, and what a run would cost before it is
played."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest

import parley
from parley import Result, UsageError
from parley.audit.audit import audit_run
from parley.cli.run import forecast_table
from parley.config.experiment import Experiment
from parley.config.experiment_file import read_experiment
from parley.config.prepare import limit_of, prepare_resume
from parley.config.prices import PriceList, listed_price, prices_for
from parley.config.trust import Allowed
from parley.errors import Halted, ParticipantError
from parley.match.protocol import UNLIMITED, Call, Reply, Usage
from parley.money import Price, Prices, Rate, cost_remarks, cost_rows, format_usd, total_cost
from parley.options import from_keywords
from parley.participants._model import Model
from parley.participants._registry import ModelLimits
from parley.providers import _endpoint_health as endpoint_health
from parley.providers import _transport as transport
from parley.rules.pool import Seat, Turn, View
from parley.rules.readers import Text
from parley.runs import budget as budget_module
from parley.runs.budget import Budget
from parley.runs.forecast import evaluation_cost, forecast_run, scale_costs
from parley.runs.progress import Progress, StopSignal
from parley.runs.request_estimates import RequestEstimator
from parley.runs.run_context import RunContext
from parley.runs.seats import LimitedParticipant
from parley.runs.stand_ins import CACHE, estimate_text_tokens
from parley.runs.start import resume_run
from parley.store import find_run, read_run
from parley.store.types import EndpointRecord
from parley.tasks.public_goods import PublicGoods
from parley.testing.server import Server, reset, sent, silence
from tests import games, wire
from tests.cli.test_cli import parley as command
from tests.clock import clock as clock
from tests.endpoint import coins, endpoint
from tests.plans.replays import first_matches

PRICES = "a: {input: 10, cached_input: 1, output: 30}\n"  # USD per million tokens


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # some addresses answer nobody
    monkeypatch.setattr(endpoint_health, "FIRST_PAUSE", 0.001)
    (tmp_path / "prices.yaml").write_text(PRICES)
    return tmp_path


WHY = (
    "The others gave little so far, so I keep most of my coins and see whether they follow "
    "in the next round."
)


def answering(status=200, **usage):
    """An endpoint that plays, says why, and counts tokens as it is told, or from the words."""

    async def act(asked, writer):
        said = words(asked)
        counted = usage or {
            "prompt_tokens": len(asked.text) // 4,
            "completion_tokens": len(said) // 4,
        }
        choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        answer = {"model": "mock-1", "choices": [choice], "usage": counted}
        await sent(answer, status)(asked, writer)

    return act


def words(asked):
    return json.dumps({**json.loads(coins(asked.body["messages"])), "reason": WHY})


def model(server, **options):
    return {"model": "openai-compatible/x", "base_url": server.url, **options}


def played(*answers, pause=0.0, rounds=5, **options):
    """A run against a server of this process: its result, and the server with all that it was
    asked."""

    async def main():
        async with Server(*(answers or (answering(),)), pause=pause) as server:
            settings = {key: options.pop(key) for key in ("max_tokens",) if key in options}
            task = PublicGoods(rounds=rounds)
            result = await parley.run_async(
                task, {"a": model(server, **settings), "b": "bot/random"}, store="runs", **options
            )
            return result, server

    return asyncio.run(main())


# Prices


def test_a_price_file_knows_aliases_and_models(here):
    (here / "prices.yaml").write_text(
        "openai/gpt-4.1: {input: 1, output: 2}\nmine: {input: 3, output: 4}\nollama/q: free\n"
    )
    models = {
        "g": {"model": "openai/gpt-4.1"},
        "mine": {"model": "openai/gpt-4.1"},
        "q": {"model": "ollama/q"},
        "other": {"model": "ollama/other"},
    }
    prices = prices_for(models)
    assert prices.of("g").usd(1e6, 0, 1e6) == 3
    assert prices.of("mine").usd(1e6, 0, 1e6) == 7
    assert prices.of("q").free
    assert prices.of("other") is None
    assert prices.unknown() == ["other"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "a: {input: 1}\n",
            ["prices.yaml, line 1: a: the key `output` is missing", "USD per million tokens"],
        ),
        (
            "a: free\nb: {input: -1, output: 2}\n",
            ["line 2: b.input: expected a number of USD per million tokens", "-1"],
        ),
        (
            "a: {input: 1, output: 2, cashed_input: 1}\n",
            ["line 1: a", "did you mean 'cached_input'?"],
        ),
        (
            "a: dear\n",
            [
                (
                    "line 1: a: expected {input: USD, cached_input: USD, written_input: "
                    "USD, output: USD}"
                ),
                "'dear'",
            ],
        ),
        (
            "opnai/gpt-4.1: {input: 1, output: 2}\n",
            ["line 1: opnai/gpt-4.1", "did you mean 'openai'?"],
        ),
        ("- a\n", ["line 1: expected keys with values"]),
        (
            "a: free\nb: {input: .nan, output: 2}\n",
            ["line 2: b.input: expected a number of USD per million tokens", "found nan"],
        ),
        (
            "a: {input: 1, output: .inf}\n",
            ["line 1: a.output: expected a number of USD per million tokens", "found inf"],
        ),
        (
            f"a: {{input: 1{'0' * 400}, output: 2}}\n",
            ["line 1: a.input: expected a number of USD per million tokens"],
        ),
        (
            "a: {input: 1, output: '2'}\n",
            ["line 1: a.output: expected a number of USD per million tokens", "found '2'"],
        ),
        (
            "a: {input: true, output: 2}\n",
            ["line 1: a.input: expected a number of USD per million tokens", "found True"],
        ),
    ],
)
def test_what_is_wrong_in_a_price_file_is_named_by_line_and_key(here, text, parts):
    (here / "prices.yaml").write_text(text)
    with pytest.raises(UsageError) as wrong:
        prices_for({"a": {"model": "vllm/x"}}).of("a")
    for part in parts:
        assert part in str(wrong.value)


def test_a_price_file_may_stand_elsewhere_and_must_be_there_then(here, monkeypatch):
    monkeypatch.setenv("PARLEY_PRICES", str(here / "mine.yaml"))
    with pytest.raises(UsageError, match=r"mine\.yaml cannot be read"):
        prices_for({"a": {"model": "vllm/x"}}).of("a")
    (here / "mine.yaml").write_text("a: {input: 7, output: 7}\n")
    assert prices_for({"a": {"model": "vllm/x"}}).of("a").usd(1e6, 0, 0) == 7


def test_public_prices_are_known_by_provider_or_address_and_unknown_is_unknown():
    def price(model, served=None, **options):
        return prices_for({"m": {"model": model, **options}}).of("m", served)

    assert price("openai/gpt-4.1").usd(1e6, 500_000, 1e6) == pytest.approx(2 * 0.5 + 0.5 * 0.5 + 8)
    assert price("openai/gpt-4-1106-preview").usd(1e6, 0, 1e6) == 40
    assert price("openai/gpt-4o-mini", served="gpt-4.1-2025-04-14") == price("openai/gpt-4.1")
    assert price("openai/gpt-4.1", served="my-proxy-1") == price("openai/gpt-4.1")
    assert (
        price("openai-compatible/deepseek-chat", base_url="https://api.deepseek.com/v1") is not None
    )
    assert price("inspect/openai/gpt-4.1") == price("openai/gpt-4.1")
    for unknown in (
        "openai/no-such-model",
        "ollama/llama3",
        "python/os:getcwd",
        "http/http://localhost:1",
    ):
        assert price(unknown) is None, unknown
    for family in ("openai-compatible", "vllm"):
        assert price(f"{family}/gpt-4.1", base_url="http://localhost:8000/v1") is None
    # Parley runs the last one itself
    for free in ("bot/random", "scripted/x.txt", "human/terminal", "embedded/smollm2", "vllm/x"):
        assert price(free).free


def test_a_price_without_the_package_is_unknown(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert listed_price.__wrapped__("openai", "", "gpt-4.1", False, None) is None


def test_prices_are_those_of_the_day():
    early, late = (
        listed_price("openai", "", "o3", False, datetime(2025, month, 1, tzinfo=UTC))
        for month in (5, 9)
    )
    assert early.usd(1e6, 0, 0) == 10
    assert late.usd(1e6, 0, 0) == 2


def test_long_calls_and_what_is_written_to_a_cache_cost_more():
    price = Price((Rate(-1, 1, 0.5, 2), Rate(100, 10, 5, 20)), "x")
    assert price.usd(100, 50, 10) == pytest.approx((50 * 1 + 50 * 0.5 + 10 * 2) / 1e6)
    assert price.usd(101, 0, 0) == pytest.approx(101 * 10 / 1e6)
    assert price.most(101, 10) == pytest.approx((101 * 10 + 10 * 20) / 1e6)
    claude = prices_for({"m": {"model": "anthropic/claude-sonnet-4-5"}}).of("m")
    assert claude.usd(2000, 0, 0) == pytest.approx(2000 * 3 / 1e6)
    assert claude.usd(2000, 500, 0, written=1000) == pytest.approx(
        (500 * 3 + 500 * 0.3 + 1000 * 3.75) / 1e6
    )
    assert (
        claude.usd(300_000, 0, 0, written=300_000)
        == claude.most(300_000, 0)
        == pytest.approx(300_000 * 7.5 / 1e6)
    )
    plain = prices_for({"m": {"model": "anthropic/claude-sonnet-4-5", "cache": False}}).of("m")
    assert plain.most(2000, 0) == pytest.approx(0.006)


# What a run has cost


def counting(**usage):
    async def said(view):
        return Reply("5", model_served="served-2026", usage=Usage(**usage))

    return said


def test_cost_is_by_model_and_role_and_reasoning_is_part_of_the_output(here):
    speaks = counting(tokens_in=100, tokens_cached=40, tokens_out=20, tokens_reasoning=15)
    result = parley.run("public_goods", {"a": speaks, "b": "bot/random"}, repeats=2, store="runs")
    a, b = result.data["cost"]
    counts = {
        "calls": 10,
        "tokens_in": 1000,
        "tokens_cached": 400,
        "tokens_written": None,
        "tokens_out": 200,
    }
    counts["tokens_reasoning"] = 150
    usd = (600 * 10 + 400 * 1 + 200 * 30) / 1e6
    counts |= {"unanswered": 0, "usd": pytest.approx(usd), "usd_at_least": pytest.approx(usd)}
    assert a == {"alias": "a", "role": "players", **counts}
    assert (b["usd"], b["tokens_in"], b["calls"]) == (0, None, 10)
    assert f"cost: {usd:.4f} USD for 10 calls" in result.remarks()
    assert f"{usd:.4f}" in command("ls", cwd=here).out
    (facts,) = command("ls", "--json", cwd=here).json
    assert facts["cost"] == {
        "calls": 20,
        "usd": pytest.approx(usd),
        "usd_at_least": pytest.approx(usd),
    }
    shown = command("show", "last", "--part", "cost", cwd=here).out
    assert "150" in shown
    assert (
        "a as served-2026: 10 in, 1 cached, 30 out USD per million tokens [prices.yaml, 20" in shown
    )
    header, row, _ = command(
        "show", "last", "--part", "cost", "--format", "csv", cwd=here
    ).out.splitlines()
    assert dict(zip(header.split(","), row.split(","), strict=False))["tokens_cached"] == "400"


def test_what_is_written_to_a_cache_is_counted_and_paid(here):
    (here / "prices.yaml").write_text(
        "a: {input: 10, cached_input: 1, written_input: 12.5, output: 30}\n"
    )
    speaks = counting(tokens_in=100, tokens_cached=40, tokens_written=50, tokens_out=20)
    result = parley.run("public_goods", {"a": speaks, "b": "bot/random"}, repeats=1, store="runs")
    cost = result.data["cost"][0]
    assert (cost["tokens_in"], cost["tokens_written"]) == (500, 250)
    assert cost["usd"] == pytest.approx(5 * (10 * 10 + 40 * 1 + 50 * 12.5 + 20 * 30) / 1e6)
    with read_run(result.ref) as reader:
        assert reader.calls.of(1)[0].reply.usage == Usage(100, 40, 20, None, 50)


def test_what_is_partly_known_is_at_least_so_much_and_what_is_unknown_is_no_zero(here):
    seen = []

    async def sometimes(view):
        seen.append(view)
        return Reply("5", usage=Usage(tokens_in=100, tokens_out=10) if len(seen) % 2 else Usage())

    result = parley.run(
        "public_goods", {"a": sometimes, "b": "bot/random"}, repeats=2, store="runs"
    )
    (cost,) = (row for row in result.data["cost"] if row["alias"] == "a")
    assert cost["usd"] is None
    assert cost["usd_at_least"] == pytest.approx(5 * (100 * 10 + 10 * 30) / 1e6)
    assert "cost: at least 0.0065 USD for 10 calls" in result.remarks()
    assert "≥ 0.0065" in command("ls", cwd=here).out
    unknown = parley.run(
        "public_goods",
        {"c": counting(tokens_in=9, tokens_out=9), "b": "bot/random"},
        repeats=1,
        store="runs",
    )
    assert [row["usd"] for row in unknown.data["cost"]] == [0, None]
    assert total_cost(unknown.data["cost"]) == (10, None, None)
    assert "cost: unknown for 5 calls" in unknown.remarks()
    assert command("ls", cwd=here).out.splitlines()[2].endswith("–")


def test_bots_cost_nothing_and_no_word_is_made_of_it(here):
    result = parley.run(
        "public_goods", {"a": "bot/altruist", "b": "bot/random"}, repeats=1, store="runs"
    )
    assert [row["usd"] for row in result.data["cost"]] == [0, 0]
    assert not any("cost" in line for line in result.remarks())
    assert command("ls", cwd=here).out.rstrip().endswith("0.00")


def test_a_run_costs_tomorrow_what_it_costs_today(here):
    speaks = counting(tokens_in=1, tokens_out=1)
    result = parley.run(
        "public_goods", {"a": speaks, "b": "bot/random", "c": speaks}, repeats=1, store="runs"
    )
    before = result.data["cost"][0]["usd"]
    (here / "prices.yaml").unlink()
    assert Result(result.path).data["cost"][0]["usd"] == before > 0
    (here / "prices.yaml").write_text(
        "a: {input: 100, output: 300}\nc: {input: 100, output: 300}\n"
    )
    found = Result(result.path, look_up=PriceList().find).data
    assert found["cost"][0]["usd"] == before
    # what was unknown may become known
    assert found["cost"][2]["usd"] == pytest.approx(10 * before)
    assert [(row["alias"], row["input"], row["source"]) for row in found["prices"]] == [
        ("a", 10, "prices.yaml"),
        ("c", 100, "prices.yaml"),
    ]
    assert audit_run(result.ref).breaches == []


def test_public_prices_are_kept_by_the_names_that_were_served(here, monkeypatch):
    """Also where another model was served than was asked for, and a later list of prices says
    otherwise."""
    today = Price.flat(3, 5, source="public", as_of="2026-11-15, genai-prices 0.2.1")
    monkeypatch.setattr(
        "parley.config.prices.public_price",
        lambda family, name, options, on: today if name == "mock-1" else None,
    )
    monkeypatch.setitem(os.environ, "PARLEY_PRICES", "")
    (here / "prices.yaml").unlink()
    result, _ = played(answering(prompt_tokens=100, completion_tokens=10), repeats=1)
    cost, price = result.data["cost"][0], result.data["prices"][0]
    assert cost["usd"] == pytest.approx(5 * (100 * 3 + 10 * 5) / 1e6)
    assert (price["model_served"], price["source"]) == ("mock-1", "public")
    assert price["as_of"] == "2026-11-15, genai-prices 0.2.1"
    monkeypatch.setattr(
        "parley.config.prices.public_price", lambda *_: Price.flat(300, 500, source="public")
    )
    assert Result(result.path, look_up=PriceList().find).data["cost"][0] == cost


def test_a_public_price_says_of_which_day_and_release_it_is():
    price = listed_price("openai", "", "gpt-4.1", True, datetime(2026, 1, 2, tzinfo=UTC))
    assert price.as_of == f"2026-01-02, genai-prices {version('genai-prices')}"
    assert Price.kept(price.facts) == price


def test_calls_of_different_size_are_priced_apart(here, monkeypatch):
    sizes = iter([50, 500] * 5)

    async def long(view):
        return Reply("5", usage=Usage(tokens_in=next(sizes), tokens_out=0))

    price = Price((Rate(-1, 1, 1, 1), Rate(100, 10, 10, 10)), "x")
    monkeypatch.setattr(Prices, "of", lambda self, alias, served=None: price)
    result = parley.run("public_goods", {"long": long, "b": "bot/random"}, repeats=2, store="runs")
    cost = next(row for row in result.data["cost"] if row["alias"] == "long")
    assert cost["usd_at_least"] == pytest.approx((5 * 50 * 1 + 5 * 500 * 10) / 1e6)


def test_requests_that_may_have_been_paid_are_listed_and_the_cost_is_at_least_so_much(here):
    result, server = played(reset, answering(), sent(b"late", 504), answering(), repeats=1)
    [a, b] = result.data["cost"]
    assert (a["unanswered"], b["unanswered"]) == (2, 0)
    assert a["calls"] == len(server.asked) - 2
    assert a["usd"] is None
    assert a["usd_at_least"] > 0
    said = "\n".join(result.remarks())
    assert "cost: at least" in said
    assert "may have been billed: a 2" in said
    assert "unanswered" in result.render(part="cost")


def test_what_was_lost_before_is_counted_on_when_a_run_goes_on(here):
    with wire.served(
        reset, sent({"error": {"message": "no credit"}}, 402), sent(b"{}"), answering()
    ) as server:
        players = {"a": model(server), "b": "bot/random"}
        partial = parley.run("public_goods", players, repeats=1, seed=1, store="runs")
        assert [row["unanswered"] for row in partial.data["cost"] if row["alias"] == "a"] == [1]
        again = parley.resume(partial.path)  # an answer without a reply
        assert [row["unanswered"] for row in again.data["cost"] if row["alias"] == "a"] == [2]
        whole = parley.resume(partial.path)
        assert whole.state == "done"
        assert [row["unanswered"] for row in whole.data["cost"] if row["alias"] == "a"] == [2]


def test_refused_requests_are_on_record_and_counted_on_when_a_run_goes_on(here):
    busy, broke = sent(b"later", 429), sent({"error": {"message": "no credit"}}, 402)
    with wire.served(busy, broke, busy, answering()) as server:
        players = {"a": model(server), "b": "bot/random"}
        partial = parley.run("public_goods", players, repeats=1, seed=1, store="runs")
        with read_run(partial.ref) as reader:
            assert reader.run.endpoint_health() == {"a": EndpointRecord(refused=2)}
        parley.resume(partial.path)
        with read_run(partial.ref) as reader:
            assert reader.run.endpoint_health() == {"a": EndpointRecord(refused=3)}


def test_very_large_counts_are_summed(here):
    result, _ = played(repeats=2)
    with sqlite3.connect(result.path) as file:
        file.execute("UPDATE calls SET tokens_in = ?, tokens_out = ?", (2**62, 2**62))
        assert file.execute("SELECT MAX(tokens_in) FROM usage").fetchone() == (2**63 - 1,)
    file.close()
    with read_run(result.ref) as reader:
        assert reader.usage.by_model()[0].tokens_in == 2**63 - 1
        assert total_cost(cost_rows(reader)).usd > 1e12


def test_money_is_written_for_people():
    assert [format_usd(usd) for usd in (0, 1234.5, 0.05, 0.00123, 0.0000012)] == [
        "0.00",
        "1,234.50",
        "0.0500",
        "0.0012",
        "1.2e-06",
    ]
    rows = [
        {"alias": f"m{n}", "calls": 1, "unanswered": 0, "usd": 1.0, "usd_at_least": 1.0}
        for n in range(10)
    ]
    assert cost_remarks(rows) == [
        "cost: 10.00 USD for 10 calls ("
        + ", ".join(f"m{n} 1.00" for n in range(8))
        + " and 2 more)"
    ]


# Bounds


@pytest.mark.parametrize("most", [0, 1, 31, 32, 33, 77])
def test_no_call_more_than_allowed_leaves_with_many_in_flight(here, most):
    result, server = played(pause=0.002, repeats=40, concurrency=32, max_calls=most)
    run = result.data["run"]
    assert (run["state"], run["stop"]["status"]) == ("stopped", "budget")
    calls = "1 call" if most == 1 else f"{most} calls"
    assert f"the limit of --max-calls is reached ({calls} made)" in run["stop"]["reason"]
    assert sum(row["calls"] for row in result.data["cost"]) == most
    assert len(server.asked) <= most
    assert run["budget"] == {"usd": None, "calls": most}


def test_a_run_that_needs_exactly_what_is_allowed_is_done(here):
    result, _ = played(repeats=2, max_calls=20)
    assert result.state == "done"


def test_further_tries_are_calls_too(here):
    busy = [sent({}, 500)] * 3
    result, _ = played(*busy, answering(), repeats=4, concurrency=1, max_calls=13)
    recorded = sum(row["calls"] for row in result.data["cost"])
    assert result.data["run"]["stop"]["status"] == "budget"
    assert recorded == 13 - 3
    with read_run(result.ref) as reader:
        assert reader.run.spent_at_most() == (13, None)


def test_tries_before_there_was_a_bound_count_when_one_is_set(here):
    result, server = played(
        *[sent({}, 500)] * 3, answering(), sent({}, 400), repeats=2, concurrency=1
    )
    assert result.data["run"]["stop"]["status"] == "interrupted"
    with read_run(result.ref) as reader:
        calls = reader.run.spent_at_most()[0]
    bots = sum(row["calls"] for row in result.data["cost"] if row["alias"] == "b")
    assert calls == len(server.asked) + bots
    assert calls > sum(row["calls"] for row in result.data["cost"])


def spent(server):
    """What an endpoint's answers cost."""
    return (
        sum(len(asked.text) // 4 * 10 + len(words(asked)) // 4 * 30 for asked in server.asked) / 1e6
    )


@pytest.mark.parametrize("bound", [0.03, 0.05, 0.2])
def test_no_cent_more_than_allowed_is_spent_with_many_in_flight(here, bound):
    result, server = played(
        pause=0.002, repeats=60, concurrency=32, budget_usd=bound, max_tokens=40
    )
    run = result.data["run"]
    assert (run["state"], run["stop"]["status"]) == ("stopped", "budget")
    assert "USD spent; the next call to a may cost up to" in run["stop"]["reason"]
    usd = next(row["usd"] for row in result.data["cost"] if row["alias"] == "a")
    assert usd == pytest.approx(spent(server))
    assert bound - 0.02 < usd <= bound  # what is set aside for a single call stays
    assert server.most > 1
    with read_run(result.ref) as reader:
        assert reader.run.spent_at_most()[1] == pytest.approx(usd)


def test_dense_words_after_thin_ones_pass_no_bound(here):
    """Each byte of what is new may be a token, however few tokens the endpoint has made of all
    bytes before."""
    dense, paid = json.dumps({"reason": "\U0001f9ff" * 300, "coins": 3}, ensure_ascii=False), []

    def tokens_of(text):
        return sum(1 if byte > 127 else 0.2 for byte in text.encode())

    async def act(asked, writer):
        into = int(tokens_of("".join(turn["content"] for turn in asked.body["messages"])))
        out = int(tokens_of(dense))
        paid.append((into * 10 + out * 30) / 1e6)
        choice = {"message": {"role": "assistant", "content": dense}, "finish_reason": "stop"}
        await asyncio.sleep(
            0.2 if any(turn["role"] == "assistant" for turn in asked.body["messages"]) else 0.01
        )
        await sent(
            {"choices": [choice], "usage": {"prompt_tokens": into, "completion_tokens": out}}
        )(asked, writer)

    for bound in (0.6, 0.8, 1.0, 1.2):
        paid.clear()
        played(act, rounds=2, repeats=16, concurrency=16, budget_usd=bound, max_tokens=1210)
        assert sum(paid) <= bound


def test_what_is_set_aside_goes_by_what_was_counted_of_this_conversation():
    known, turns = RequestEstimator(limit=100), [Turn("user", "hello " * 1000)]

    def sized():
        return known.estimate(View(Seat("a"), 1, 0, turns, b"", Text(), None, None))

    first = sized()
    assert first.into >= 6000
    known.update(first.size, first.mark, Reply("x", usage=Usage(1001, 0, 5)))
    turns += [Turn("assistant", "\U0001f9ff" * 100), Turn("user", "And now?")]
    second = sized()
    assert 1001 + 400 <= second.into <= 1001 + 600
    known.update(
        second.size,
        second.mark,
        Reply("x", provider_state={"thought": []}, usage=Usage(1400, 0, 5000)),
    )
    turns += [Turn("assistant", "yes"), Turn("user", "And now?")]
    assert sized().into >= 6400  # what is carried may be as long as the reply
    assert (
        known.estimate(
            View(Seat("a"), 1, 0, [Turn("user", "other " * 1000)], b"", Text(), None, None)
        ).into
        >= 6000
    )


def test_where_a_single_call_could_pass_the_bound_none_leaves(here):
    result, server = played(repeats=3, budget_usd=0.002, max_tokens=40)
    assert result.data["run"]["stop"]["status"] == "budget"
    assert "the next call to a may cost up to" in result.data["run"]["stop"]["reason"]
    assert server.asked == []


def test_endpoints_that_count_more_than_can_be_are_found_out_by_the_first_call(here):
    much = {"prompt_tokens": 20_000, "completion_tokens": 1000}  # 0.23 USD a call
    result, server = played(
        answering(**much), pause=0.002, repeats=20, concurrency=32, budget_usd=1.5, max_tokens=40
    )
    assert result.data["run"]["stop"]["status"] == "budget"
    assert 0.2 < 0.23 * len(server.asked) <= 1.5


def test_requests_that_broke_off_may_have_been_paid(here):
    """Each is taken at its most, and no further try leaves once another could pass the bound."""
    result, server = played(reset, repeats=4, concurrency=4, budget_usd=0.04, max_tokens=40)
    assert result.data["run"]["stop"]["status"] == "budget"
    assert 2 <= len(server.asked) <= 4  # each may have cost about 0.01 USD
    with read_run(result.ref) as reader:
        assert 0 < reader.run.spent_at_most()[1] <= 0.04


async def asked_once(*answers, **options):
    """How many requests one call made that brought nothing, and how many of them the budget takes
    as paid."""
    async with Server(*answers) as server:
        options = {"base_url": server.url, "max_tokens": 100, **options}
        budget = Budget(
            1000.0, None, prices_for({"a": {"model": "vllm/x", **options}}), StopSignal(), Notes()
        )
        who = Model.from_options("vllm", "x", options)
        budget.add_model("a", who, options)
        placed = LimitedParticipant("a", who, ModelLimits(), Progress(), budget)
        probe = await budget.reserve("a", a_view(), True)
        most = probe.usd
        budget.settle_failed(probe, Halted("it was only to see what is set aside"))
        with pytest.raises(ParticipantError):
            await placed.reply(a_view(), UNLIMITED)
        await placed.close()
        assert budget.reserved == 0
        assert budget.calls == len(server.asked) or not server.asked
        return len(server.asked), budget.usd / most


def a_view():
    return View(Seat("a"), 1, 0, [Turn("user", "hello")], b"", Text(), None, None)


class Notes:
    """A journal that keeps what is noted as spent."""

    def __init__(self):
        self.noted = []

    async def set_spending(self, calls, usd):
        await asyncio.sleep(0)
        self.noted.append((calls, usd))


@pytest.mark.parametrize(
    ("answers", "options", "found"),
    [
        ([reset], {}, (5, 5)),
        ([sent(b"oops", 503)], {}, (5, 0)),
        ([sent(b"oops", 503), reset, sent(b"oops", 503)], {}, (5, 1)),
        ([reset, sent({"error": {"message": "no"}}, 400)], {}, (2, 1)),
        ([silence], {"deadline": 0.5}, (1, 1)),
        ([silence], {"timeout": 0.2}, (5, 5)),
        ([sent(b"later", 429, Retry_After="20")], {"deadline": 0.2}, (1, 0)),
        ([sent(b"{}")], {}, (1, 1)),  # an answer without a reply
        ([sent(b"")], {"base_url": "http://127.0.0.1:9/v1"}, (0, 0)),  # nobody listens there
    ],
    ids=[
        "resets",
        "503",
        "one reset",
        "reset, then rejected",
        "deadline",
        "timeouts",
        "429",
        "no reply",
        "nobody",
    ],
)
def test_a_request_is_paid_once_if_it_was_lost_and_never_if_it_was_refused(
    here, answers, options, found
):
    asked, times = asyncio.run(asked_once(*answers, **options))
    assert (asked, pytest.approx(times)) == found


@pytest.mark.parametrize("act", [sent(b"later", 429), reset], ids=["429", "reset"])
def test_further_tries_are_noted_before_they_leave(here, monkeypatch, act):
    """At no moment has more left, or may more be paid, than a killed process would leave on
    record."""
    monkeypatch.setattr(endpoint_health, "LONGEST_PAUSE", 0.001)
    monkeypatch.setattr(budget_module, "AHEAD", 1)
    seen = []

    async def busy(asked, writer):
        (path,) = Path("runs").glob("*.parley")
        with read_run(find_run(path)) as reader:
            seen.append(reader.run.spent_at_most())
        await (act if len(seen) < 20 else answering())(asked, writer)

    _, server = played(busy, repeats=1, concurrency=1, budget_usd=5, max_tokens=40)
    assert len(seen) >= (5 if act is reset else 20)
    assert [number for number, (calls, _) in enumerate(seen, 1) if calls < number] == []
    least = (
        sum(len(turn["content"]) for turn in server.asked[0].body["messages"]) * 10 + 40 * 30
    ) / 1e6
    assert [
        number for number, (_, usd) in enumerate(seen, 1) if act is reset and usd < number * least
    ] == []


def test_calls_that_wait_for_money_are_let_go_in_turn_and_wake_nobody_else(here, clock):
    async def main():
        budget = Budget(1.0, None, prices_for({"a": {"model": "vllm/x"}}), StopSignal(), Notes())
        budget.add_model("a", None, {})
        budget.estimators["a"] = RequestEstimator(limit=20_000, replies=1)
        order = []

        async def call(number):
            held = await budget.reserve("a", a_view(), False)
            order.append(number)
            await asyncio.sleep(0)
            budget.settle(held, Reply("x", usage=Usage(1, 0, 1)))

        before = clock.callbacks
        await asyncio.gather(*(call(number) for number in range(3000)))
        return order, clock.callbacks - before, budget

    order, callbacks, budget = clock.run(main())
    assert order == list(range(3000))
    assert callbacks < 10 * 3000
    assert (budget.calls, budget.reserved) == (3000, 0)


def test_a_small_call_goes_before_a_dear_one_of_another_model_that_waits(here):
    (here / "prices.yaml").write_text(PRICES + "b: {input: 10, output: 30}\n")

    async def main():
        budget = Budget(
            1.0,
            None,
            prices_for({"a": {"model": "vllm/x"}, "b": {"model": "vllm/y"}}),
            StopSignal(),
            Notes(),
        )
        budget.estimators["a"], budget.estimators["b"] = (
            RequestEstimator(limit=20_000, replies=1),
            RequestEstimator(limit=20, replies=1),
        )
        first = await budget.reserve("a", a_view(), False)
        second = asyncio.create_task(budget.reserve("a", a_view(), False))
        await asyncio.sleep(0.01)
        small = await asyncio.wait_for(budget.reserve("b", a_view(), False), 1)
        budget.settle(small, Reply("x", usage=Usage(1, 0, 1)))
        await asyncio.sleep(0.01)
        assert not second.done()
        budget.settle(first, Reply("x", usage=Usage(1, 0, 1)))
        await asyncio.wait_for(second, 1)

    asyncio.run(main())


def test_calls_that_wait_for_their_endpoint_have_not_left(here):
    async def main():
        budget = Budget(
            None,
            2,
            prices_for({"a": {"model": "vllm/x"}, "b": {"model": "vllm/y"}}),
            StopSignal(),
            Notes(),
        )
        for alias in "ab":
            budget.add_model(alias, None, {})
        waiting = [await budget.reserve("a", a_view(), True) for _ in range(5)]
        for _ in range(2):
            await (await budget.reserve("b", a_view(), True)).before_request()
        assert budget.calls == 2
        with pytest.raises(Halted, match=r"the limit of --max-calls is reached \(2 calls made\)"):
            await waiting[0].before_request()

    asyncio.run(main())


def test_where_calls_mostly_failed_a_bound_on_them_says_how(here):
    result, server = played(sent(b"out of order", 500), repeats=8, concurrency=4, max_calls=12)
    stop = result.data["run"]["stop"]
    assert stop["status"] == "budget"
    assert 0 < len(server.asked) <= 12
    assert stop["reason"].startswith("the limit of --max-calls is reached (12 calls made); ")
    assert stop["reason"].endswith(" of 12 calls failed, most recently a: HTTP 500: out of order")


def test_a_model_that_waits_for_its_first_reply_holds_up_no_other(here):
    (here / "prices.yaml").write_text(PRICES + "b: {input: 10, output: 30}\n")

    async def main():
        budget = Budget(
            1.0,
            None,
            prices_for({"a": {"model": "vllm/x"}, "b": {"model": "vllm/y"}}),
            StopSignal(),
            Notes(),
        )
        for alias in "ab":
            budget.add_model(alias, None, {})
        first = await budget.reserve("a", a_view(), False)
        second = asyncio.create_task(budget.reserve("a", a_view(), False))
        await asyncio.sleep(0.01)
        assert not second.done()
        await asyncio.wait_for(budget.reserve("b", a_view(), False), 1)
        budget.settle(first, Reply("x", usage=Usage(1, 0, 1)))
        await asyncio.wait_for(second, 1)

    asyncio.run(main())


def test_a_bound_in_usd_gives_replies_an_end(here, monkeypatch):
    """Without one the first reply alone could pass it."""
    flags = (
        "-m",
        "a=vllm/x",
        "-m",
        "bot/random",
        "--budget-usd",
        1,
        "--repeats",
        1,
        "-M",
        "a.base_url=http://127.0.0.1:9/v1",
    )
    done = command("run", "public_goods", *flags, cwd=here, code=3)
    assert "max_tokens=4096 for a; " in done.err
    assert "-M a.max_tokens=N" in done.err
    assert (
        command("show", "last", "--json", cwd=here).json["run"]["models"]["a"]["max_tokens"] == 4096
    )
    done = command("run", "public_goods", *flags, "-M", "a.max_tokens=50", cwd=here, code=3)
    assert "4096" not in done.err
    # Its interface wants a limit in every request, so there is one.
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-nobody")
    asked = Experiment("public_goods", given=from_keywords(budget_usd=1.0))
    asked.contestants = [
        asked.add_model("anthropic/claude-sonnet-4-5", "c"),
        asked.add_model("bot/random", "b"),
    ]
    who, _ = asked.prepare().participants["c"]
    assert limit_of(who) == who.provider.reply_limit == 16_384


def test_a_run_without_an_end_of_replies_may_be_bounded_later_and_says_what_that_means(here):
    result, _ = played(repeats=2, max_calls=4)

    async def main():
        async with Server(answering()) as server:
            tally = Progress()
            prepared = prepare_resume(
                result.ref, from_keywords(budget_usd=1.0, max_calls=4), task=PublicGoods(rounds=5)
            )
            await resume_run(prepared, result.ref, RunContext(tally))
            return tally, server

    tally, _ = asyncio.run(main())
    assert any("replies of a have no length limit" in notice for notice in tally.notices)


def test_what_an_endpoint_does_not_count_is_taken_at_its_most(here):
    result, server = played(
        answering(total=1), repeats=20, concurrency=8, budget_usd=0.1, max_tokens=40
    )
    assert result.data["run"]["stop"]["status"] == "budget"
    assert len(server.asked) > 1
    with read_run(result.ref) as reader:
        assert 0.05 < reader.run.spent_at_most()[1] <= 0.1
    prepare_resume(result.ref, from_keywords(budget_usd=1.0), task=PublicGoods(rounds=5))


def test_a_past_that_was_not_counted_cannot_be_bounded_in_usd(here):
    result, _ = played(answering(total=1), repeats=4, max_calls=10)
    with pytest.raises(UsageError, match=r"an endpoint did not count.*--max-calls"):
        prepare_resume(result.ref, from_keywords(budget_usd=1.0))


def test_a_model_without_a_price_is_refused_before_anything_is_called(here):
    (here / "prices.yaml").unlink()

    async def main():
        async with Server(answering()) as server:
            with pytest.raises(
                UsageError,
                match=r"a \(openai-compatible/x\) is unknown. Add a line to "
                r"prices.yaml.*--max-calls",
            ):
                await parley.run_async(
                    "public_goods",
                    {"a": model(server), "b": "bot/random"},
                    store="runs",
                    budget_usd=1,
                )
            assert server.asked == []

    asyncio.run(main())
    assert not Path("runs").exists()
    flags = ("-m", "a=ollama/x", "-m", "bot/random", "--budget-usd", 1)
    assert "prices.yaml" in command("run", "public_goods", *flags, cwd=here, code=2).err


def test_bots_need_no_price(here):
    result = parley.run(
        "public_goods",
        {"a": "bot/altruist", "b": "bot/random"},
        repeats=1,
        store="runs",
        budget_usd=0,
    )
    assert result.state == "done"


@pytest.mark.parametrize(
    "wrong", [{"budget_usd": -1}, {"max_calls": -1}, {"budget_usd": float("nan")}]
)
def test_bounds_that_are_none_are_refused(here, wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        parley.run("public_goods", {"a": "bot/altruist", "b": "bot/random"}, store="runs", **wrong)


def test_a_bounded_run_goes_on_with_a_higher_bound_and_ends_as_if_there_had_been_none(here):
    def play(view):
        return Reply("5", usage=Usage(tokens_in=100, tokens_out=10))

    models = {"a": play, "b": "bot/random"}
    result = parley.run("public_goods", models, repeats=8, seed=3, store="runs", budget_usd=0.045)
    assert result.data["run"]["stop"]["status"] == "budget"
    again = parley.resume(result.path, functions={"a": play})  # the bound of the run holds
    assert again.data["run"]["stop"]["status"] == "budget"
    first = sum(row["calls"] for row in again.data["cost"])
    with pytest.raises(UsageError, match=f"--max-calls {first - 1} is too low"):
        parley.resume(result.path, functions={"a": play}, max_calls=first - 1)
    bounded = parley.resume(result.path, functions={"a": play}, budget_usd=1, max_calls=first + 4)
    assert bounded.data["run"]["stop"]["status"] == "budget"
    whole = parley.resume(result.path, functions={"a": play}, budget_usd=5, max_calls=1000)
    assert whole.state == "done"
    assert whole.data["run"]["budget"] == {"usd": 5, "calls": 1000}
    straight = parley.run("public_goods", models, repeats=8, seed=3, store="runs")
    assert [row["mean"] for row in whole.data["results"]] == [
        row["mean"] for row in straight.data["results"]
    ]
    assert whole.data["cost"] == straight.data["cost"]
    assert audit_run(whole.ref).breaches == []


def test_the_command_stops_with_4_says_how_to_go_on_and_goes_on(here):
    (here / "says.txt").write_text('{"coins": 5}\n')
    pair = ("-m", "a=scripted/says.txt", "-m", "bot/random")
    done = command(
        "run", "public_goods", *pair, "--repeats", 3, "--max-calls", 11, "--json", cwd=here, code=4
    )
    assert done.json["run"]["stop"]["status"] == "budget"
    assert sum(row["calls"] for row in done.json["cost"]) == 11
    assert "--max-calls N" in done.err
    assert command("ls", "--json", cwd=here).json[0]["state"] == "stopped"
    command("resume", "last", cwd=here, code=4)
    command("resume", "last", "--max-calls", 12, cwd=here, code=4)
    assert (
        command("resume", "last", "--max-calls", 30, "--json", cwd=here).json["run"]["state"]
        == "done"
    )


def test_an_experiment_file_bounds_and_flags_override_it(here, monkeypatch):
    text = (
        "kind: experiment\ntask: public_goods\nmodels: {a: {model: bot/random}, b: {model: "
        "bot/altruist}}\nbudget: "
    )
    monkeypatch.setenv("MOST", "2.5")
    (here / "e.yaml").write_text(f"{text}{{usd: '${{MOST}}', calls: 7}}\n")
    config = read_experiment("e.yaml", Allowed.of(variables=["MOST"])).prepare().config
    assert (config.budget_usd, config.max_calls) == (2.5, 7)
    flags = ("--allow-env", "MOST", "--max-calls", 9, "--json")
    assert command("run", "e.yaml", *flags, cwd=here, code=4).json["run"]["budget"] == {
        "usd": 2.5,
        "calls": 9,
    }
    for wrong, said in (
        ("{usd: -1}", "budget.usd: expected a number of USD"),
        ("{call: 3}", "did you mean 'calls'?"),
    ):
        (here / "e.yaml").write_text(f"{text}{wrong}\n")
        assert said in command("run", "e.yaml", cwd=here, code=2).err


def test_a_process_that_is_killed_has_spent_no_more_than_its_run_knows(here):
    """What was in flight when it died counts as spent, so the bound holds over both processes."""
    most = 60
    with endpoint(0.1) as served:
        flags = [
            "-m",
            "a=vllm/x",
            "-M",
            f"a.base_url={served.url}/v1",
            "-m",
            "c=vllm/y",
            "-M",
            f"c.base_url={served.url}/v1",
        ]
        words = [
            sys.executable,
            "-m",
            "parley",
            "run",
            "public_goods",
            *flags,
            "--repeats",
            "20",
            "--max-calls",
            str(most),
        ]
        with subprocess.Popen(
            words, cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            deadline = time.monotonic() + 30
            while not served.log() and time.monotonic() < deadline:
                time.sleep(0.02)
            os.kill(process.pid, signal.SIGKILL)
        time.sleep(0.3)
        (path,) = Path("runs").glob("*.parley")
        with read_run(find_run(path)) as reader:
            assert len(served.log()) <= reader.run.spent_at_most()[0] <= most
        subprocess.run(
            [sys.executable, "-m", "parley", "resume", path],
            cwd=here,
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert len(served.log()) <= most


def test_without_a_bound_nothing_is_written_about_spending(here):
    result, _ = played(repeats=2)
    with read_run(result.ref) as reader:
        assert reader.snapshot.row("SELECT spent FROM runs") == (None,)


def test_who_counts_may_refuse_a_request_and_the_run_drains():
    class Refuses(Call):
        async def before_request(self):
            raise Halted("enough")

    async def main():
        async with Server(answering()) as server:
            refused = transport.Transport(server.url)
            with pytest.raises(Halted):
                await refused.post(b"{}", Refuses())
            await refused.close()
            assert server.asked == []

    asyncio.run(main())


# Before anything is paid


def prepared_with(server_url, repeats=12, **options):
    asked = Experiment("public_goods", params={"rounds": 4})
    asked.contestants = [
        asked.add_model("openai-compatible/x", "a", {"base_url": server_url, **options}),
        asked.add_model("bot/random", "b"),
    ]
    asked.given = from_keywords(repeats=repeats)
    return asked.prepare()


def test_a_dry_run_calls_nothing_and_says_what_to_expect(here):
    with endpoint(0) as served:
        flags = (
            "-m",
            "a=vllm/x",
            "-M",
            f"a.base_url={served.url}/v1",
            "-m",
            "bot/random",
            "--repeats",
            3,
        )
        done = command("run", "public_goods", *flags, "--dry-run", "--json", cwd=here).json
        text = command("run", "public_goods", *flags, "--dry-run", cwd=here).out
        assert served.log() == []
    assert not Path("runs").exists()
    assert done["schema"] == "parley.forecast/1"
    assert {"calls", "tokens_in", "tokens_out", "usd", "by_model"} <= set(done)
    assert done["calls"] == 30
    assert 0 < done["usd"]["low"] < done["usd"]["high"]
    assert [row["alias"] for row in done["by_model"]] == ["a", "random"]
    assert done["by_model"][1]["usd"] == {"low": 0, "high": 0}
    assert "no model was called" in text
    assert "(1 for Chinese, Japanese and Korean)" in text


def test_a_forecast_is_near_what_the_run_then_takes(here):
    async def main():
        async with Server(answering()) as server:
            task = PublicGoods(rounds=4)
            result = await parley.run_async(
                task, {"a": model(server), "b": "bot/random"}, repeats=12, store="runs"
            )
            return prepared_with(server.url), result

    prepared, result = asyncio.run(main())
    said = forecast_run(prepared).data
    (real,) = (row for row in result.data["cost"] if row["alias"] == "a")
    (row,) = (row for row in said["by_model"] if row["alias"] == "a")
    for key in ("calls", "tokens_in", "tokens_out"):
        assert real[key] / 2 <= row[key] <= real[key] * 2, key
    assert row["usd"]["low"] <= real["usd"] <= row["usd"]["high"]
    assert said["calls"] == pytest.approx(
        sum(each["calls"] for each in result.data["cost"]), rel=0.05
    )


def test_many_matches_are_scaled_up_from_some(here):
    small, large = (
        forecast_run(prepared_with("http://localhost:1/v1", repeats=n)).data for n in (40, 4000)
    )
    assert large["matches"] == 4000
    assert large["calls"] == pytest.approx(100 * small["calls"], rel=0.01)
    assert large["tokens_in"] == pytest.approx(100 * small["tokens_in"], rel=0.05)


def test_an_unknown_price_makes_no_forecast_of_money(here):
    (here / "prices.yaml").unlink()
    found = forecast_run(prepared_with("http://localhost:1/v1"))
    assert found.usd == {"low": None, "high": None}
    assert any("no price is known for a" in note for note in found.notes)
    assert "–" in forecast_table(found).render()


def test_the_blocks_of_a_plan_that_looks_are_a_forecast_too(here):
    pair = ("-m", "bot/random", "-m", "bot/altruist", "-m", "bot/gradual", "--dry-run", "--json")
    fixed = command("run", "public_goods", *pair, "--repeats", 5, cwd=here).json
    assert (fixed["blocks_are_forecast"], fixed["matches"]) == (False, 5)
    stable = command("run", "public_goods", *pair, "--until-stable", cwd=here).json
    assert stable["blocks_are_forecast"]
    assert stable["range"]["calls"]["low"] < stable["calls"] < stable["range"]["calls"]["high"]
    assert any("the number of blocks is also an estimate" in note for note in stable["notes"])
    race = command(
        "run", "public_goods", *pair, "--plan", "race", "--max-blocks", 50, cwd=here
    ).json
    assert race["range"]["calls"]["high"] <= 50 * 3 * 5


def test_a_forecast_leaves_the_plan_as_it_was(here):
    asked = Experiment(
        "public_goods", params={"rounds": 1}, given=from_keywords(until_stable=True, max_blocks=200)
    )
    asked.contestants = [asked.add_model("bot/random", "a"), asked.add_model("bot/altruist", "b")]
    prepared = asked.prepare()
    before = first_matches(prepared.plan)
    forecast_run(prepared)
    assert first_matches(prepared.plan) == before


def test_instruments_demonstrations_and_programs_are_forecast_too(here):
    def said(task, models, **more):
        asked = Experiment(task.name, instance=task, **more)
        asked.contestants = [asked.add_model(name, alias) for alias, name in models.items()]
        asked.instruments = {
            role: [asked.add_model("vllm/j", "j")] for role in task.roles if role == "judge"
        }
        return forecast_run(asked.prepare())

    judged = said(games.Judged(), {"a": "vllm/x"}).data
    assert [(row["alias"], row["role"]) for row in judged["by_model"]] == [
        ("a", "writer"),
        ("j", "judge"),
    ]
    words = [{"text": "cat"}, {"text": "dog"}]
    assert said(games.Spelling(), {"a": "vllm/x"}, item_list=words).data["calls"] == 2
    assert said(games.Running(), {"a": "vllm/x"}).data["calls"] == 1


def test_tokens_are_guessed_from_characters():
    assert estimate_text_tokens("a" * 400) == 100
    assert estimate_text_tokens("人" * 100) == 100
    assert estimate_text_tokens("人" * 10 + "a" * 40) == 20
    assert CACHE == 1024


def test_thinking_and_limits_change_a_forecast(here):
    plain, thinks, short = (
        forecast_run(prepared_with("http://localhost:1/v1", **options)).data
        for options in ({}, {"reasoning_effort": "high"}, {"max_tokens": 10})
    )
    assert thinks["tokens_out"] > 5 * plain["tokens_out"]
    assert (
        short["by_model"][0]["range"]["tokens_out"]["high"]
        <= 11 * short["by_model"][0]["range"]["calls"]["high"]
    )


# KIEval, tables 14 and 15: thousands of tokens for one model (200 samples, 5 rounds), interactor
# and evaluator

TABLE_14 = {
    "ARC-E": (554, 28, 1592, 208),
    "ARC-C": (540, 27, 1553, 205),
    "MMLU": (656, 30, 1731, 213),
    "HellaSwag": (527, 29, 1488, 198),
    "C-Eval": (505, 26, 1365, 189),
}
AVERAGE = (557, 28, 1546, 203)


def test_table_14_gives_the_cost_of_one_evaluation():
    asked, interactor, judged, evaluator = (1000 * count for count in AVERAGE)
    assert evaluation_cost(asked + judged, interactor + evaluator, 10, 30) == pytest.approx(27.96)
    means = [sum(column) / len(TABLE_14) for column in zip(*TABLE_14.values(), strict=True)]
    # The interactor's prompts average to 556.4, printed as 557; all others recompute.
    assert means == pytest.approx([556.4, 28, 1545.8, 202.6])


def test_table_15_is_linear_against_quadratic():
    rows = scale_costs(27.96, 16)
    assert [int(row["single"]) for row in rows] == [27, 279, 2796]  # printed truncated
    # One model alone makes no pair: the table prints the cost of one pair there, which the formula
    # does not give.
    assert [row["pairwise"] for row in rows] == [0, 720, 79_200]
    assert scale_costs(27.96, 16, [2])[0]["pairwise"] == 16


def test_a_dry_run_with_judges_says_what_more_models_would_cost(here):
    (here / "prices.yaml").write_text("j: {input: 10, output: 30}\n")
    asked = Experiment("judged", instance=games.Judged(), given=from_keywords(repeats=5))
    asked.contestants = [asked.add_model("bot/null", "a"), asked.add_model("bot/random", "b")]
    asked.instruments = {"judge": [asked.add_model("vllm/j", "j")]}
    found = forecast_run(asked.prepare())
    (judge,) = (row for row in found.rows if row["alias"] == "j")
    rows = {row["models"]: row for row in found.data["scaling"]}
    assert set(rows) == {1, 2, 10, 100}
    assert judge["usd"]["low"] < rows[2]["single"] < judge["usd"]["high"]
    assert rows[100]["single"] == pytest.approx(10 * rows[10]["single"])
    assert rows[100]["pairwise"] == pytest.approx(4950 * rows[2]["pairwise"])
    assert "for 100 models, judges that grade each model alone" in forecast_table(found).render()
    asked.instruments = {}
    assert forecast_run(asked.prepare()).data["scaling"] == []


# The question before spending


@pytest.fixture
def at_a_terminal(here, monkeypatch):
    asked = []

    class Terminal:
        @staticmethod
        def isatty():
            return True

    class System:
        stdin = stdout = stderr = Terminal

    def confirm(text, **options):
        asked.append(text)
        raise Halted("no")

    monkeypatch.setattr("parley.cli.run.sys", System)
    monkeypatch.setattr("parley.cli.run.click.confirm", confirm)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    return asked


def test_a_person_is_asked_before_much_is_spent(here, at_a_terminal):
    pair = (
        "-m",
        "g=openai/gpt-4.1",
        "-m",
        "h=openai/gpt-4.1",
        "-M",
        "g.deadline=0.1",
        "-M",
        "h.deadline=0.1",
    )
    dear = ("run", "public_goods", *pair)
    done = command(*dear, "--repeats", 500, cwd=here, code=1)
    assert at_a_terminal == ["parley: start the run?"]
    assert "this run makes about" in done.err
    assert not Path("runs").exists()
    command(
        "run",
        "public_goods",
        "-m",
        "g=openai/nobody-knows-it",
        "-m",
        "bot/random",
        "--repeats",
        1,
        cwd=here,
        code=1,
    )
    assert len(at_a_terminal) == 2
    at_a_terminal.clear()
    bound = "--budget-usd 0.001 -M g.max_tokens=9 -M h.max_tokens=9"
    for more, code in {
        "--yes": 3,
        "--repeats 1": 3,
        "--max-calls 2": 4,
        "--dry-run": 0,
        bound: 4,
    }.items():
        command(*dear, "--repeats", 300, *more.split(), cwd=here, code=code)
    command(
        "run", "public_goods", "-m", "bot/random", "-m", "bot/altruist", "--repeats", 1, cwd=here
    )
    assert at_a_terminal == []


# Who is there, and what they cost


def test_models_names_abilities_and_prices(here):
    (here / "models.yaml").write_text(
        "strong: {model: openai/gpt-4.1}\na: {model: vllm/x}\nc: {model: ollama/y}\n"
    )
    facts = command("models", "--json", cwd=here).json
    assert facts["prices"]["strong"] == {
        "input": 2,
        "cached_input": 0.5,
        "output": 8,
        "source": "public",
    }
    assert facts["prices"]["a"]["source"] == "prices.yaml"
    assert facts["prices"]["c"] is None
    rows = {row["provider"]: row["abilities"] for row in facts["providers"]}
    assert rows["openai"]["structured"]
    assert rows["openai"]["system_role"]
    assert not rows["completion"]["system_role"]
    out = command("models", "openai/gpt-4.1", "strong", "bot/random", "ollama/z", cwd=here).out
    assert "openai/gpt-4.1: 2 USD input (0.5 cached), 8 output per million tokens [public]" in out
    assert "bot/random: free" in out
    assert "ollama/z: price unknown" in out


def test_the_doctor_asks_each_endpoint_once_for_one_token(here):
    with endpoint(0) as served:
        env = {"OPENAI_API_KEY": "sk-do-not-show-me", "OPENAI_BASE_URL": f"{served.url}/v1"}
        (here / "models.yaml").write_text(
            f"near: {{model: vllm/x, base_url: '{served.url}/v1'}}\nfar: {{model: vllm/x, base_url: 'http://127.0.0.1:9/v1'}}\n"
        )
        quiet = command("doctor", "--no-calls", "--json", cwd=here, env=env).json
        assert served.log() == []
        assert {row["latency"] for row in [*quiet["endpoints"], *quiet["models"]]} == {None}
        facts = command("doctor", "--json", cwd=here, env=env, code=1)  # far does not answer
        assert "sk-do-not-show-me" not in facts.out
        assert len(served.log()) == 2
        text = command("doctor", cwd=here, env=env, code=1).out
    openai = next(row for row in facts.json["endpoints"] if row["provider"] == "openai")
    near, far = facts.json["models"]
    assert (openai["model_served"], near["model_served"], far["model_served"]) == (
        "mock-1",
        "mock-1",
        None,
    )
    assert near["latency"] > 0
    assert "127.0.0.1:9" in far["error"]
    assert facts.json["sandbox"] == "bubblewrap"
    assert "answers as mock-1 after" in text


def test_a_forecast_is_json_that_others_can_read(here):
    found = forecast_run(prepared_with("http://localhost:1/v1"))
    assert json.loads(json.dumps(found.data)) == found.data
