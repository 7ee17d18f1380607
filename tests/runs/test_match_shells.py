"""A match with a shell of its own: it is closed with the match, and a resumed match repeats what
it did."""

import asyncio

import pytest

from parley import Seat, resume, run
from parley.config.task_catalogue import task_class
from parley.errors import SandboxError, ShellDiffers
from parley.match.match import Match
from parley.match.record import MemoryRecord
from parley.sandbox.executor import Sandbox
from parley.store import read_run
from parley.testing.by_hand import QUOTATION_KEY, Speaking
from tests.isolation import isolated

TASK = """
from dataclasses import dataclass
from parley import Metric, Referee, Role, Seat, Task

@dataclass(frozen=True)
class Typing(Task):
    roles = {"typist": Role()}
    runs_code = True
    uses_shell = True

    async def play(self, referee: Referee, typist: Seat):
        output = "Type."
        for _ in range(3):
            command = await referee.ask(typist, output)
            found = await referee.run({"kind": "shell", "do": "run", "command": command})
            output = found["output"] or "(nothing)"
        return {typist: len(output)}

    def metrics(self, seats):
        return [Metric("length", 0, 100, epsilon=1)]
"""


@pytest.fixture
def task(tmp_path):
    file = tmp_path / "typing_task.py"
    file.write_text(TASK)
    return str(file)


def play_with(task, commands, record, outputs):
    """A match in a shell that gives these outputs; what was asked of the shell and of the seat."""
    asked = []

    async def execute(program):
        asked.append(program["command"])
        return {"output": outputs[len(asked) - 1], "status": 0, "timed_out": False}

    seat = Speaking(lambda view: commands[view.reply_count])
    match = Match(
        task_class(task)(),
        {Seat("typist"): seat},
        quotation_key=QUOTATION_KEY,
        record=record,
        execute=execute,
    )
    try:
        return asyncio.run(match.play()), asked, len(seat.views)
    except ShellDiffers as fault:
        return fault, asked, len(seat.views)


def test_a_resumed_match_repeats_its_commands_before_anybody_is_asked(task):
    whole = MemoryRecord()
    play_with(task, ["a", "b", "c"], whole, ["1", "2", "3"])

    def half():
        record = MemoryRecord()
        record.calls = {key: call for key, call in whole.calls.items() if key[0] < 3}
        record.effects = {key: effect for key, effect in whole.effects.items() if key[0] < 3}
        return record

    outcome, asked, replies = play_with(task, ["a", "b", "c"], half(), ["1", "2", "3"])
    assert (outcome.state, asked, replies) == ("done", ["a", "b", "c"], 1)
    fault, asked, replies = play_with(task, ["a", "b", "c"], half(), ["1", "other", "3"])
    assert "shell command 2 of 2" in str(fault)
    assert (asked, replies) == (["a", "b"], 0)


def test_a_finished_record_needs_no_shell(task):
    whole = MemoryRecord()
    first = play_with(task, ["a", "b", "c"], whole, ["1", "2", "3"])
    again, asked, _ = play_with(task, [], whole, [])
    assert (again, asked) == (first[0], [])


@isolated
def test_a_resumed_run_goes_on_in_the_same_state(task, tmp_path):
    commands = ["cd /tmp; echo here > file; X=5", "echo $X", "echo $PWD $X $(cat file)"]
    models = {"me": lambda view: commands[view.reply_count]}
    begun = run(task, models, store=tmp_path, repeats=2, max_calls=3)
    done = resume(begun.path, functions=models, max_calls=20)
    assert done.data["run"]["state"] == "done"
    with read_run(done.ref) as reader:
        for number in (1, 2):
            assert reader.effects.of(number)[3, 2][1]["output"] == "/tmp 5 here\n"
        assert reader.calls.count() == 6


@isolated
def test_a_match_begins_anew_where_its_commands_give_something_else(task, tmp_path):
    notices = []
    commands = ["cat /proc/uptime; date +%N", "true", "echo end"]
    models = {"me": lambda view: commands[view.reply_count]}
    begun = run(task, models, store=tmp_path, repeats=1, max_calls=2)
    done = resume(
        begun.path,
        functions=models,
        max_calls=20,
        progress=lambda event: notices.append(event.text),
    )
    assert done.data["run"]["state"] == "done"
    assert any("match 1 starts again" in text and "2 recorded replies" in text for text in notices)
    with read_run(done.ref) as reader:
        assert reader.calls.count() == 3
        assert reader.run.unanswered() == {"me": {"typist": 2}}
        assert reader.run.spent_at_most()[0] == 5
        assert not list(reader.snapshot.find_changes())


def test_shells_want_bubblewrap():
    sandbox = Sandbox("docker")
    try:
        with pytest.raises(SandboxError, match="needs `--sandbox bubblewrap`"):
            asyncio.run(sandbox.execute({"kind": "shell", "shell": "x", "do": "close"}))
    finally:
        sandbox.close()


@isolated
def test_a_shell_that_does_not_start_ends_a_run_before_anything_is_asked(
    task, tmp_path, monkeypatch
):
    monkeypatch.setattr("parley.sandbox.shell.python", lambda: "/nonexistent/python")
    asked = []
    with pytest.raises(SandboxError, match="the shell did not start"):
        run(task, {"me": lambda view: asked.append(1) or "true"}, store=tmp_path)
    assert not asked
    assert not list(tmp_path.glob("*.parley"))
