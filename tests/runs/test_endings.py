"""How a run ends for the person: why it stopped, once; what was not finished; what to do, and only
what can help."""

import time
from collections import Counter

import pytest

from parley.cli.progress_line import waited_for
from parley.config.prepare import prepare_again
from parley.config.prices import prices_for
from parley.runs import endings
from parley.runs.budget import Budget, Call
from parley.runs.player import CONCURRENCY, at_once
from parley.runs.progress import Brake, Tally
from parley.store.config import Config
from parley.store.sqlite.reader import Archive
from parley.tables import plural
from tests.cli.test_cli import EXAMPLE, parley, parley_result
from tests.endpoint import endpoint

BOTS = ("-m", "x=bot/tit-for-tat", "-m", "z=bot/random")


def with_a(address, folder, *more, code=3):
    return parley(
        "run",
        EXAMPLE,
        "-m",
        "a=vllm/m",
        "-M",
        f"a.base_url={address}",
        *BOTS,
        *more,
        cwd=folder,
        code=code,
    )


def test_matches_that_failed_are_missing_by_model_and_a_model_without_any_has_a_row(tmp_path):
    done = with_a(
        "http://127.0.0.1:9/v1", tmp_path, "--repeats", 2, "-M", "a.deadline=0.3", "--json"
    ).json
    rows = {row["alias"]: row for row in done["results"]}
    assert (rows["a"]["mean"], rows["a"]["matches"], rows["a"]["blocks"]) == (None, 0, 0)
    failed = done["run"]["matches"]["failed"]
    assert rows["a"]["missing"] == failed > 0
    assert rows["x"]["missing"] + rows["z"]["missing"] == failed
    assert rows["x"]["matches"] > 0
    (left,) = (each for each in done["run"]["unfinished"] if each["alias"] == "a")
    assert left["matches"] == left["planned"] == failed
    assert (
        f"not finished: a {failed} of {failed} matches, x"
        in parley("show", "last", cwd=tmp_path).out
    )


def test_a_run_that_is_done_has_nothing_unfinished(tmp_path):
    done = parley("run", EXAMPLE, *BOTS, "--repeats", 1, "--json", cwd=tmp_path).json
    assert done["run"]["unfinished"] == []
    assert {row["missing"] for row in done["results"]} == {0}


def test_why_a_run_stopped_is_said_once_and_not_at_length(tmp_path):
    done = with_a("http://127.0.0.1:9/v1", tmp_path, "--repeats", 1, "-M", "a.deadline=0.3")
    assert "127.0.0.1:9" not in done.out
    assert done.err.count("stopped (a: http://127.0.0.1:9/v1/chat/completions") == 1
    assert "go on with: parley resume runs/" in done.err
    long = endings.reasons(Counter({"x" * 5000: 1, "y": 2}))
    assert len(long) < 450
    assert "(1 match)" in long
    assert "y (2 matches)" in long


def test_resuming_is_not_offered_where_it_cannot_help(tmp_path):
    with endpoint(0) as served:
        done = with_a(served.url, tmp_path, "--repeats", 1)  # its paths begin with /v1
    assert "parley resume" not in done.err
    assert (
        "start a new run with the right ones (did you leave out /v1 at the end of base_url?)"
        in done.err
    )


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            "a: http://h/v1/chat/completions: HTTP 401: no (check the key)",
            "before that is mended; then go on with: {resume}",
        ),
        (
            "a: http://h/v1/chat/completions: HTTP 404: no (check the model's name and base_url)",
            "the right ones",
        ),
        (
            "a: http://h/chat/completions: HTTP 404: no (check the model's name and base_url)",
            "did you leave out /v1",
        ),
    ],
)
def test_what_to_do_depends_on_what_was_refused(fault, said):
    assert endings.remedy([fault]).endswith(said) or said in endings.remedy([fault])
    assert endings.remedy([]) == endings.remedy([], ["a: broke off"]) == ""
    assert "once somebody answers there" in endings.remedy(
        [], ["a: http://h/v1: Cannot connect to host h:80 (5 tries)"]
    )


def test_a_run_keeps_how_many_matches_are_in_flight_until_another_number_is_given(tmp_path):
    parley(
        "run",
        EXAMPLE,
        *BOTS,
        "--concurrency",
        3,
        "--repeats",
        2,
        "--max-calls",
        2,
        cwd=tmp_path,
        code=4,
    )
    path = parley_result(tmp_path).path
    assert at_once(prepare_again(path), None) == 3
    parley("resume", "last", "--concurrency", 5, cwd=tmp_path, code=4)
    with Archive(path) as archive:
        assert archive.config.concurrency == 5
    assert Config("t", {}, {}, []).concurrency is None
    assert CONCURRENCY == 32


def test_the_smallest_bound_that_is_of_use_is_named(tmp_path):
    done = parley("run", EXAMPLE, *BOTS, "--repeats", 2, "--max-calls", 2, cwd=tmp_path, code=4)
    assert "--max-calls N (N: 3 or more)" in done.err
    assert "done" in parley("resume", "last", "--max-calls", 1000, cwd=tmp_path).err


def test_the_smallest_bound_in_usd_is_read_from_what_the_budget_says():
    budget = Budget(0.5, None, prices_for({}), Brake(), None, calls=3, usd=0.4)
    reason = budget._why(Call(budget, "a", True, usd=0.25))
    assert endings.least("--budget-usd", reason, budget) == endings.upwards(0.65)
    assert (
        endings.least("--max-blocks", "", budget)
        == endings.least("--budget-usd", "for another reason", budget)
        == ""
    )


def test_who_is_waited_for_is_named_with_how_long():
    tally = Tally()
    tally.waiting["x"] = {1: time.monotonic() - 12.2}
    assert waited_for(tally) == "waiting for x for 12 s"


def test_usd_are_rounded_so_that_they_are_enough():
    assert float(endings.upwards(0.12341)) > 0.12341
    assert float(endings.upwards(12.341)) > 12.341
    assert endings.upwards(12.341) == "12.36"


def test_plurals():
    assert [plural(1, "match", "matches"), plural(2, "match", "matches"), plural(1, "call"),
            plural(0, "call")] == [
        "1 match", "2 matches", "1 call", "0 calls",
    ]  # fmt: skip
