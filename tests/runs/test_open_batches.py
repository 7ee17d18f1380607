"""Batches that are still with a provider: what a run says of them, and that it is not deleted."""

import asyncio

import pytest
from click.testing import CliRunner

from parley import Result
from parley.cli import command
from parley.config.prepare import refuse_unknown_past
from parley.config.prices import PriceList
from parley.errors import UsageError
from parley.money import prices_of
from parley.runs import batches
from parley.store import open_store, read_run
from parley.testing.batch_server import BatchServer
from tests.runs.test_batches import Playing, answer, cancel_in_batches

PRICES = "a: {input: 2, output: 8}\nb: {input: 2, output: 8}\n"


@pytest.fixture
def interrupted(monkeypatch, tmp_path):
    """A run that was stopped when its first two batches were sent."""
    for name in ("FIRST_POLL", "LONGEST_POLL", "SETTLE", "TICK"):
        monkeypatch.setattr(batches, name, 0.01)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.yaml").write_text(PRICES)

    async def played():
        async with BatchServer(answer) as server:
            playing = Playing(server)
            await cancel_in_batches(playing, server)
            return playing

    return asyncio.run(played())


def print_command(*words, code=0):
    done = CliRunner().invoke(command, words)
    assert done.exit_code == code, done.output
    return done


def test_the_cost_of_batches_at_a_provider_is_not_zero(interrupted):
    run = interrupted.ref.id
    assert print_command("ls").stdout.rstrip().endswith("≥ 0.00")
    shown = print_command("show", run).output
    assert "unfinished: a 4 of 4 matches, b 4 of 4 matches" in shown
    assert "cost: at least 0.00 USD (a ≥ 0.00, b ≥ 0.00)" in shown
    billed = f"still with the provider and will be billed; `parley resume {run}` collects its"
    assert f"of a (4 requests) is {billed} replies" in shown
    assert f"of b (4 requests) is {billed} replies" in shown
    assert print_command("show", run, "--part", "cost").output.count("≥ 0.00") == 3
    absent = print_command("show", run, "--part", "efficiency").output
    assert "no model of this run has a score beside a known latency" in absent
    result = Result(interrupted.ref)
    assert [row["usd"] for row in result.data["cost"]] == [None, None]
    batches_on_record = result.data["run"]["open_batches"]
    assert [batch["requests"] for batch in batches_on_record] == [4, 4]
    assert all(batch["provider_id"] for batch in batches_on_record)


def test_a_budget_can_be_set_when_batches_are_open(interrupted):
    with read_run(interrupted.ref) as reader:
        refuse_unknown_past(reader, prices_of(reader, PriceList().find))


def test_a_run_with_batches_at_a_provider_is_deleted_only_by_force(interrupted):
    run = interrupted.ref.id
    with pytest.raises(UsageError, match=r"a provider still has batch 1 of . \(4 requests\) as"):
        CliRunner().invoke(command, ["rm", run, "--yes"], catch_exceptions=False)
    assert [found.id for found in open_store("runs").runs()] == [run]
    CliRunner().invoke(command, ["rm", run, "--yes", "--force"], catch_exceptions=False)
    assert list(open_store("runs").runs()) == []
