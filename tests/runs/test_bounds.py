"""Bounds that cannot hold or cannot be enough are told before anything is asked; totals are those
of models."""

import asyncio
from functools import partial

import pytest

import parley
from parley import UsageError
from parley.config.prepare import prepare_resume
from parley.options import from_keywords
from parley.runs.forecast import Forecast, compare_with_limits
from parley.testing.server import Server
from tests.cli.test_cli import parley as command
from tests.runs.test_money import answering, at_a_terminal, here, model, played  # noqa: F401

PAIR = ("-m", "g=openai/gpt-4.1", "-m", "bot/random")


@pytest.fixture
def no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_a_dry_run_needs_no_keys_and_still_knows_wrong_options(here, no_keys):  # noqa: F811
    done = command("run", "public_goods", *PAIR, "--dry-run", cwd=here)
    assert (
        "g: no API key found: set OPENAI_API_KEY in the environment or in .env before you start "
        "the run" in done.err
    )
    assert "no model was called" in done.out
    assert (
        "temperature"
        in command(
            "run", "public_goods", *PAIR, "-M", "g.temprature=1", "--dry-run", cwd=here, code=2
        ).err
    )
    assert "no API key found" in command("run", "public_goods", *PAIR, cwd=here, code=2).err
    service = (
        "-m",
        "s=http/http://127.0.0.1:9/f",
        "-M",
        "s.api_key_env=NOT_THERE",
        "-m",
        "bot/random",
    )
    assert "set NOT_THERE" in command("run", "public_goods", *service, "--dry-run", cwd=here).err


def test_a_dry_run_says_whether_the_bounds_are_enough(here, no_keys):  # noqa: F811
    def said(*flags):
        return command(
            "run", "public_goods", *PAIR, "--repeats", 5, "--dry-run", *flags, cwd=here
        ).out

    assert "--max-calls 3 is too low: the run will need at least" in said("--max-calls", 3)
    assert "--max-calls 9000 is enough according to this forecast" in said("--max-calls", 9000)
    assert "--budget-usd 0.0001 is too low" in said("--budget-usd", 0.0001)
    assert "--budget-usd 50 is enough" in said("--budget-usd", 50)
    assert "enough" not in said()


def test_between_the_least_and_the_most_a_bound_may_not_be_enough():
    rows = [
        {
            "calls": 5,
            "tokens_in": 1,
            "tokens_out": 1,
            "usd": {"low": 1.0, "high": 3.0},
            "model": "vllm/x",
        }
    ]
    rows[0]["range"] = {key: {"low": 4, "high": 6} for key in ("calls", "tokens_in", "tokens_out")}
    from parley.store.config import Config

    config = Config("t", {}, {}, [], budget_usd=2.0, max_calls=5)
    assert compare_with_limits(Forecast(rows, 1, False), config) == [
        "--budget-usd 2 may be too low: the run may need up to 3.0000 USD",
        "--max-calls 5 may be too low: the run may need up to 6 calls",
    ]


def test_bots_read_no_tokens_and_their_calls_are_told_apart(here, no_keys):  # noqa: F811
    flags = ("run", "public_goods", *PAIR, "--repeats", 2, "--dry-run")
    data = command(*flags, "--json", cwd=here).json
    rows = {row["alias"]: row for row in data["by_model"]}
    assert (rows["random"]["tokens_in"], rows["random"]["tokens_out"]) == (0, 0)
    assert data["tokens_in"] == rows["g"]["tokens_in"] > 0
    assert "(about 10 of them to bots or people" in command(*flags, cwd=here).out


def test_a_bound_that_no_call_fits_in_is_refused_with_the_remedy(here):  # noqa: F811
    with pytest.raises(
        UsageError,
        match=r"--budget-usd 0.001 is too low for a single call to a, .*-M a.max_tokens=N",
    ):
        played(repeats=1, budget_usd=0.001)
    assert not (here / "runs").exists()


def test_a_bound_below_what_is_spent_is_refused_when_a_run_goes_on(here):  # noqa: F811
    result, _ = played(repeats=20, budget_usd=0.05, max_tokens=40)
    assert result.data["run"]["stop"]["status"] == "budget"
    with pytest.raises(UsageError, match=r"0.001 is too low, .* has already spent 0.\d+ USD"):
        prepare_resume(result.ref, from_keywords(budget_usd=0.001))


def test_the_cost_of_a_run_leaves_bots_out(here):  # noqa: F811
    (here / "prices.yaml").unlink()
    result, server = played(repeats=2)
    (line,) = (line for line in result.remarks() if line.startswith("cost: "))
    assert line == f"cost: unknown for {len(server.asked)} calls"


def test_an_endpoint_that_counts_no_tokens_is_told_with_what_is_taken_as_spent(here, capsys):  # noqa: F811
    from parley.cli.playing import play_attended
    from parley.config.experiment import Experiment
    from parley.runs.start import play_new_run
    from parley.store import open_store

    async def main():
        async with Server(answering(total=1)) as server:
            models = {"a": model(server, max_tokens=40), "b": {"model": "bot/random"}}
            asked = Experiment(
                "public_goods", models=models, given=from_keywords(budget_usd=0.1, repeats=1)
            )
            return await play_attended(
                partial(play_new_run, asked.prepare(), open_store(here / "runs")),
                True,
            )

    asyncio.run(main())
    assert "the endpoint of a reported no token counts for" in (said := capsys.readouterr().err)
    assert "as spent" in said


def test_where_a_price_is_unknown_the_question_names_another_bound(
    here,  # noqa: F811
    at_a_terminal,  # noqa: F811
    monkeypatch,
):
    monkeypatch.setattr("parley.cli.run.click.confirm", lambda text, **options: False)
    done = command(
        "run",
        "public_goods",
        "-m",
        "g=openai/nobody-knows-it",
        "-m",
        "bot/random",
        cwd=here,
        code=130,
    )
    assert "--max-calls to set a limit" in done.err
    assert "the run was not started" in done.err
    dear = ("-m", "g=openai/gpt-4.1", "-m", "bot/random", "--repeats", 900)
    assert (
        "--budget-usd to set a limit"
        in command("run", "public_goods", *dear, cwd=here, code=130).err
    )


def test_only_aliases_that_somebody_defined_are_hinted_at(here):  # noqa: F811
    (here / "models.yaml").write_text("strong: {model: openai/gpt-4.1}\n")
    done = command("models", "openai/gpt-4.1-mini", "nope", cwd=here, code=2)
    assert "available: strong;" in done.err
    assert "gpt-4.1-mini" not in done.err
    assert "a provider, but the name of the model is missing: write openai/NAME" in command(
        "run", "public_goods", "-m", "openai", cwd=here, code=2
    ).err  # fmt: skip
    assert "write bot/NAME" in command("models", "bot", cwd=here, code=2).err
    both = parley.run("public_goods", ["a=bot/random", "b=a"], repeats=1, store="runs")
    assert {row["alias"] for row in both.data["results"]} == {"a", "b"}
