"""How a run ends for the person: why it stopped, once; what was not finished; what to do, and only
what can help."""

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest

from parley.config.prepare import prepare_resume
from parley.config.prices import prices_for
from parley.errors import Filtered, Halted, ParticipantError, Refused
from parley.match.protocol import UNLIMITED
from parley.options import CONCURRENCY
from parley.participants._guard import ErrorsAsParticipant
from parley.participants._registry import ModelLimits
from parley.providers._transport import Transport
from parley.rules.pool import Seat, View
from parley.rules.readers import Text
from parley.runs import run_outcome
from parley.runs.budget import Budget, Reservation
from parley.runs.progress import Progress, StopSignal
from parley.runs.progress_display import describe_wait
from parley.runs.seats import LimitedParticipant
from parley.runs.start import check_concurrency
from parley.store import find_run, read_run
from parley.store.config import Config
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
        f"unfinished: a {failed} of {failed} matches, x" in parley("show", "last", cwd=tmp_path).out
    )


def test_a_run_that_is_done_has_nothing_unfinished(tmp_path):
    done = parley("run", EXAMPLE, *BOTS, "--repeats", 1, "--json", cwd=tmp_path).json
    assert done["run"]["unfinished"] == []
    assert {row["missing"] for row in done["results"]} == {0}


def test_why_a_run_stopped_is_said_once_and_not_at_length(tmp_path):
    done = with_a("http://127.0.0.1:9/v1", tmp_path, "--repeats", 1, "-M", "a.deadline=2")
    assert "127.0.0.1:9" not in done.out
    assert done.err.count("stopped (a: http://127.0.0.1:9/v1/chat/completions") == 1
    assert "resume once the endpoint answers: parley resume runs/" in done.err
    assert f".parley --task {EXAMPLE}" in done.err  # which lies outside the folder of the run
    long = run_outcome.format_reasons(Counter({"x" * 5000: 1, "y": 2}))
    assert len(long) < 450
    assert "(1 match)" in long
    assert "y (2 matches)" in long


def test_resuming_is_not_offered_where_it_cannot_help(tmp_path):
    with endpoint(0) as served:
        done = with_a(served.url, tmp_path, "--repeats", 1)  # its paths begin with /v1
    assert (
        "start a new run with the right name (did you leave out /v1 at the end of base_url?), "
        "because a run keeps its model names; if its base_url is wrong, resume with: parley resume "
        "runs/"
    ) in done.err
    assert f".parley --task {EXAMPLE} -M ALIAS.base_url=URL" in done.err


def test_a_run_goes_on_where_its_server_has_moved(tmp_path):
    with endpoint(0) as served:
        stopped = with_a(served.url, tmp_path, "--repeats", 1)
        assert stopped.code == 3
        moved = ("resume", "last", "--task", EXAMPLE, "-M", f"a.base_url={served.url}/v1")
        done = parley(*moved, cwd=tmp_path)
    assert "done" in done.err
    for option, said in {
        "a.temperature=1": "cannot change in a resumed run",
        "b.base_url=x": "unknown model of this run: 'b'",
    }.items():
        words = ("resume", "last", "--task", EXAMPLE, "-M", option)
        assert said in parley(*words, cwd=tmp_path, code=2).err


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ([], ""),
        ([ParticipantError("w")], ""),
        ([ParticipantError("w", kind="unreachable")], "resume once the endpoint answers"),
        ([ParticipantError("w", kind="unreachable"), ParticipantError("v")], ""),
        ([Refused("w", kind="key")], "fix the cause first, then resume with: {resume}"),
        ([Refused("w"), ParticipantError("v", kind="unreachable")], "fix the cause first"),
        ([Refused("w", kind="address")], "start a new run with the right name"),
        ([Refused("w", kind="address", hint="so?")], "start a new run with the right name (so?)"),
        ([Refused("w", kind="key"), Refused("v", kind="address")], "start a new run with"),
    ],
)
def test_advice_depends_on_the_fields_of_a_fault_and_not_on_its_words(faults, said):
    found = run_outcome.find_advice(faults)
    assert said in found if said else not found


class Failing:
    """A participant that fails with one error."""

    sees_item = False

    def __init__(self, fault):
        self.fault = fault

    async def reply(self, view, call):
        raise self.fault


@pytest.mark.parametrize(
    "fault",
    [
        Refused("in other words", kind="address", hint="look again"),
        ParticipantError("in other words", kind="unreachable", hint="look again"),
        Filtered("in other words", kind="key", hint="look again"),
    ],
)
def test_a_fault_keeps_its_fields_on_the_way_to_the_person(fault):
    """Through the guard around what others wrote and under the name of its model, also once the
    model is not asked any more."""

    async def fail():
        with pytest.raises(ParticipantError) as guarded, ErrorsAsParticipant("the provider"):
            raise fault
        placed = LimitedParticipant("a", Failing(guarded.value), ModelLimits(), Progress())
        for _ in range(4):
            with pytest.raises(ParticipantError) as found:
                await placed.reply(View(Seat("player"), 1, 0, [], b"", Text(), None), UNLIMITED)
            assert (found.value.kind, found.value.hint) == (fault.kind, fault.hint)
            assert str(found.value) == "a: in other words"

    asyncio.run(fail())


@pytest.mark.parametrize(
    ("status", "path", "kind", "hint"),
    [
        (401, "/v1/chat/completions", "key", ""),
        (402, "/v1/chat/completions", "credit", ""),
        (404, "/v1/chat/completions", "address", ""),
        (404, "/chat/completions", "address", "did you leave out /v1 at the end of base_url?"),
        (307, "/v1/chat/completions", "address", ""),
    ],
)
def test_the_transport_says_what_is_wrong_in_fields(status, path, kind, hint):
    moved = "http://elsewhere/" if status == 307 else ""
    fault = Transport(f"http://h{path}")._error_for(status, "whatever it says", location=moved)
    assert isinstance(fault, Refused)
    assert (fault.kind, fault.hint) == (kind, hint)


@pytest.mark.parametrize("deadline", [0.3, 30])
def test_an_endpoint_that_cannot_be_reached_is_known_as_such(deadline, monkeypatch):
    monkeypatch.setattr("parley.providers._endpoint_health.FIRST_PAUSE", 0.01)

    async def ask():
        transport = Transport("http://127.0.0.1:9/v1/chat/completions", deadline=deadline)
        with pytest.raises(ParticipantError, match="connection refused") as found:
            await transport.post(b"{}", UNLIMITED)
        await transport.close()
        assert found.value.kind == "unreachable"

    asyncio.run(ask())


def test_a_run_keeps_how_many_matches_are_in_flight_until_another_number_is_given(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(Path(EXAMPLE).parent)
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
    assert check_concurrency(prepare_resume(find_run(path))) == 3
    parley("resume", "last", "--task", EXAMPLE, "--concurrency", 5, cwd=tmp_path, code=4)
    with read_run(find_run(path)) as reader:
        assert reader.info.config.concurrency == 5
    assert Config("t", {}, {}, []).concurrency is None
    assert CONCURRENCY == 32


def test_the_smallest_bound_that_is_of_use_is_named(tmp_path):
    done = parley("run", EXAMPLE, *BOTS, "--repeats", 2, "--max-calls", 2, cwd=tmp_path, code=4)
    assert "--max-calls N (N must be at least 3)" in done.err
    words = ("resume", "last", "--task", EXAMPLE, "--max-calls", 1000)
    assert "done" in parley(*words, cwd=tmp_path).err


def test_the_smallest_bound_in_usd_is_what_was_spent_and_what_the_next_request_takes():
    brake = StopSignal()
    budget = Budget(0.5, None, prices_for({}), brake, None, calls=3, usd=0.4)
    halted = budget._too_expensive(Reservation(budget, "a", True, usd=0.25))
    assert (halted.limit, halted.needed) == (brake.limit, brake.needed) == ("--budget-usd", 0.25)
    assert run_outcome.find_minimum_to_resume(
        brake.limit, brake.needed, budget
    ) == run_outcome.round_up(0.65)
    assert run_outcome.find_minimum_to_resume("--max-calls", 1, budget) == "4"
    assert (
        run_outcome.find_minimum_to_resume("--max-blocks", 0.0, budget)
        == run_outcome.find_minimum_to_resume("", 0.0, budget)
        == ""
    )
    brake.stop("interrupted")  # what stopped the run first stays
    with pytest.raises(Halted) as found:
        brake.check()
    assert (found.value.limit, found.value.needed) == ("--budget-usd", 0.25)


def test_who_is_waited_for_is_named_with_how_long():
    tally = Progress()
    tally.waiting["x"] = {1: time.monotonic() - 12.2}
    assert describe_wait(tally) == "waiting 12 s for x"


def test_usd_are_rounded_so_that_they_are_enough():
    assert float(run_outcome.round_up(0.12341)) > 0.12341
    assert float(run_outcome.round_up(12.341)) > 12.341
    assert run_outcome.round_up(12.341) == "12.36"


def test_plurals():
    assert [plural(1, "match", "matches"), plural(2, "match", "matches"), plural(1, "call"),
            plural(0, "call")] == [
        "1 match", "2 matches", "1 call", "0 calls",
    ]  # fmt: skip
