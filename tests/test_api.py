"""`parley.run` from a script: what it raises, and how it names what was misspelt."""

import asyncio
import dataclasses
import inspect
import sys
import traceback

import pytest

import parley
from parley import ParleyError, TaskError, UsageError
from parley.api import Result, result_of, watch
from parley.errors import ParticipantError, ProviderBroken, Refused, UnknownName
from parley.options import OPTIONS
from parley.runs.event_loop import run_sync
from parley.runs.player import Player
from parley.runs.run_context import Summary
from parley.runs.run_outcome import RunOutcome
from parley.store import find_run, read_run
from parley.store.types import RunRef, StoredPart
from tests import games

PAIR = {"a": "bot/random", "b": "bot/null"}


def breaks(view):
    return {}["coins"]


def test_a_function_that_raises_is_an_exception_with_its_traceback(tmp_path):
    with pytest.raises(
        ParticipantError,
        match=r"a: the function failed: KeyError: 'coins' \(test_"
        r"api.py, line \d+\); the matches played so far are stored in .*\.parley",
    ) as found:
        parley.run("public_goods", {"a": breaks, "b": "bot/null"}, repeats=1, store=tmp_path)
    assert "in breaks" in "".join(traceback.format_exception(found.value))
    (path,) = tmp_path.glob("*.parley")
    assert parley.Result(path).state == "stopped"
    healed = parley.resume(path, functions={"a": lambda view: "5"})
    assert healed.state == "done"


@pytest.mark.parametrize("given", [None, 5])
def test_a_function_that_returns_no_reply_is_an_exception_with_its_name(given, tmp_path):
    def forgets(view):
        return given

    with pytest.raises(
        ParticipantError,
        match=r"must return a text, a dict with the fields of the reply, or a parley.match."
        rf"protocol.Reply, not {type(given).__name__} \(.*forgets in test_api.py, line \d+\)",
    ):
        parley.run("public_goods", {"a": forgets, "b": "bot/null"}, repeats=1, store=tmp_path)


def test_a_function_may_say_that_its_service_is_down(tmp_path):
    def down(view):
        raise ParticipantError("no answer")

    result = parley.run("public_goods", {"a": down, "b": "bot/null"}, repeats=1, store=tmp_path)
    assert result.state == "stopped"


def test_a_bug_in_a_task_is_raised_with_the_line_and_its_cause(tmp_path):
    with pytest.raises(TaskError, match=r"ValueError: .*\(games.py, line \d+\)") as found:
        parley.run(games.Fragile(), ["bot/null"], repeats=1, store=tmp_path)
    assert isinstance(found.value.__cause__, ValueError)


def test_what_a_referee_refuses_names_the_line(tmp_path):
    with pytest.raises(TaskError, match=r"as a set.*\(games.py, line \d+\)"):
        parley.run(games.AsksSet(), ["bot/null"], repeats=1, store=tmp_path)


def test_misspelt_options_get_the_nearest_name():
    with pytest.raises(UsageError, match=r"'repeat'; did you mean 'repeats'\?"):
        parley.run("public_goods", PAIR, repeat=2)
    with pytest.raises(UsageError, match=r"'ronds'; did you mean 'rounds'\?"):
        parley.run("public_goods", PAIR, ronds=2)
    with pytest.raises(UsageError, match=r"'repeat'; did you mean 'repeats'\?"):
        parley.run(games.Echo(), PAIR, repeat=2)
    with pytest.raises(UsageError, match="`rounds` cannot be combined with a task instance"):
        parley.run(games.Echo(), PAIR, rounds=2)


@pytest.mark.parametrize("method", ["cautions", "reject_reason", "score_basis", "works"])
def test_methods_of_a_task_that_fail_are_named_with_their_line(method, monkeypatch):
    monkeypatch.setattr(games.Spelling, method, lambda *given: 1 / 0)
    with pytest.raises(
        ParleyError, match=rf"spelling: {method}\(\) failed: ZeroDivisionError.*line"
    ):
        parley.run(games.Spelling(), ["bot/null"], items=[{"id": "1", "text": "cat"}])


def test_a_callback_gets_typed_events(tmp_path):
    events = []
    result = parley.run("public_goods", PAIR, repeats=2, store=tmp_path, progress=events.append)
    assert all(isinstance(event, parley.ProgressEvent) for event in events)
    kinds = [event.kind for event in events]
    assert (kinds[0], kinds[-1]) == ("started", "ended")
    done = [event for event in events if event.kind == "match_done"]
    assert sorted(event.match for event in done) == [1, 2]
    assert [event.done for event in done] == [1, 2]
    assert {event.path for event in events} == {str(result.path)}


def test_a_callback_gets_every_notice_once(tmp_path, monkeypatch):
    monkeypatch.setattr("parley.runs.player.Player._play", notify_and(Player._play))
    monkeypatch.setattr("parley.api.summarise", summarised(()))
    events = []
    models = {"a": "bot/altruist", "b": "bot/free-rider"}
    parley.run("public_goods", models, repeats=4, store=tmp_path, progress=events.append)
    notices = [event.text for event in events if event.kind == "notice"]
    assert {"of a provider", "of the summary"} < set(notices)
    assert any("more repeats add nothing" in text for text in notices)
    assert len(notices) == len(set(notices))
    assert (events[0].kind, events[-1].kind) == ("started", "ended")


def summarised(parts):
    return lambda ref, task: Summary(Result(ref, task=task), parts, ["of the summary"])


def notify_and(play):
    """Play a match after its provider had something to say."""

    async def noisy(self, spec, slot):
        slot.notice("of a provider")
        return await play(self, spec, slot)

    return noisy


@pytest.mark.parametrize(
    ("at", "state"),
    [
        ("started", "stopped"),
        ("of a provider", "stopped"),
        ("match_done", "stopped"),
        ("of the summary", "done"),
        ("ended", "done"),
    ],
)
def test_what_a_callback_raises_reaches_the_caller_once_the_run_is_kept(
    tmp_path, monkeypatch, at, state
):
    monkeypatch.setattr("parley.runs.player.Player._play", notify_and(Player._play))
    kept = [StoredPart("x", "1", "{}", "{}", "[]")]
    monkeypatch.setattr("parley.api.summarise", summarised(kept))
    seen = []

    def failing(event):
        seen.append(event.kind)
        if at in (event.kind, event.text):
            raise KeyError(at)

    with pytest.raises(KeyError, match=at) as raised:
        parley.run("public_goods", PAIR, repeats=2, store=tmp_path, progress=failing)
    assert raised.traceback[-1].name == "failing"
    (path,) = tmp_path.glob("*.parley")
    (note,) = raised.value.__notes__
    assert f"the run is {state}" in note
    assert str(path) in note
    assert (seen[0], seen.count("ended")) == ("started", at == "ended")  # not called again
    with read_run(find_run(path)) as reader:
        assert reader.info.state == state
        assert reader.info.digest  # it was sealed
        assert [part.name for part in reader.run.part_results()] == ["x"]
    monkeypatch.undo()
    assert parley.resume(path).state == "done"


def test_a_fault_with_several_arguments_is_raised_as_it_is(tmp_path):
    fault = ProviderBroken("acme", "no module")
    fault.__cause__ = OSError("gone")
    ending = RunOutcome(RunRef("", "x", "x"), "failed", None, "no module", fault=fault)
    with pytest.raises(ProviderBroken) as raised:
        result_of(ending)
    assert raised.value is fault
    assert isinstance(raised.value.__cause__, OSError)
    fault = Refused("wrong key", kind="key", hint="set KEY")
    with pytest.raises(Refused) as raised:
        result_of(dataclasses.replace(ending, fault=fault))
    assert (raised.value.kind, raised.value.hint) == ("key", "set KEY")


def test_misspelt_keywords_of_resume_and_rejudge_get_the_nearest_name():
    with pytest.raises(UnknownName, match=r"option of parley.resume: 'max_cals'.*'max_calls'"):
        parley.resume("last", max_cals=3)
    with pytest.raises(UnknownName, match=r"option of parley.rejudge: 'sede'.*'seed'"):
        parley.rejudge("last", {}, sede=3)


def test_progress_on_stderr_estimates_calls_and_steers_no_terminal(capsys):
    shown = []

    async def play(context):
        shown.append(context.progress.estimates_calls)
        context.progress.notify("a\x1b[2J")

    asyncio.run(watch(True, play))
    assert shown == [True]
    assert capsys.readouterr().err.splitlines() == ["a\u241b[2J"]


def test_progress_is_a_truth_value_or_a_function(tmp_path):
    with pytest.raises(UsageError, match="True, False or a function, not 'yes'"):
        parley.run("public_goods", PAIR, store=tmp_path, progress="yes")


def test_progress_is_shown_on_stderr_only_where_it_is_asked_for(tmp_path, capsys, monkeypatch):
    models = {"a": "bot/random", "b": lambda view: "5"}
    parley.run("public_goods", models, repeats=1, store=tmp_path)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setitem(sys.modules, "ipykernel", sys)  # as in a notebook
    parley.run("public_goods", models, repeats=1, store=tmp_path, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.split("\r")[-1].startswith("1 of 1 match")


def test_a_result_is_not_drawn_where_its_event_loop_ends():
    drawn = []

    class Found:
        def __repr__(self):
            drawn.append(self)
            return "found"

    async def find():
        return Found()

    assert isinstance(run_sync(find()), Found)
    assert drawn == []


def test_run_takes_every_option_and_says_so():
    options = inspect.signature(parley.run_async).parameters
    assert set(OPTIONS) <= set(options)
    assert inspect.signature(parley.run).parameters == options
    assert parley.run.__name__ == "run"
    assert not inspect.iscoroutinefunction(parley.run)


def test_every_option_of_run_arrives(monkeypatch):
    """Values are what the user gave, before they are checked."""
    arrived = {}

    def prepare(self, need_keys=True):
        arrived.update({name: each.value for name, each in self.given.items()})
        raise ParleyError("enough")

    monkeypatch.setattr("parley.config.experiment.Experiment.prepare", prepare)
    wanted = {name: name for name in OPTIONS} | {"adversary": "bot/random", "items": 3}
    wanted["sandbox"] = "docker"
    with pytest.raises(ParleyError, match="enough"):
        parley.run("public_goods", ["bot/altruist"], **wanted)
    assert arrived == wanted | {"adversary": "random"}
