"""Playing from the command line: progress, Ctrl-C, the result, the exit code."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from parley.cli import print_traceback
from parley.cli.interruption import call_when_interrupted
from parley.cli.invocation import command_name, words_to_repeat
from parley.cli.progress_line import say
from parley.config.prices import PriceList
from parley.errors import ParleyError, StoreError
from parley.providers._secrets import redact
from parley.results.parts_to_store import compute_parts_to_store
from parley.results.remarks import REMARKS
from parley.results.result import RunResult
from parley.rules.task import Task
from parley.runs.event_loop import run_sync
from parley.runs.progress import Progress, StopSignal
from parley.runs.progress_display import show_progress
from parley.runs.run_context import Play, RunContext, Summary
from parley.runs.run_outcome import RunOutcome, raised_by_code
from parley.store import Store, find_run, read_run
from parley.store.types import WAITING, RunRef
from parley.tables import terminal_width

if TYPE_CHECKING:
    from parley.config.prepare import Prepared

CODES = {"done": 0, "stopped": 3, "failed": 1}
BUDGET, DRIFT = 4, 5


class PlayedRun(NamedTuple):
    """How a run ended, and the exit code for it."""

    code: int
    outcome: RunOutcome


def play_and_print(
    play: Play, prepared: Prepared, store: Store, *, as_json: bool, form: str
) -> PlayedRun:
    """Play and print the result; print why a run stopped once, at the end."""
    if prepared.people_in_browser:
        from parley.web.play_server import with_people

        play = with_people(play, prepared, store, say)
    shown = None if as_json else REMARKS
    ending = run_sync(play_attended(play, quiet=prepared.terminal_taken, shown=shown))
    code = {"budget": BUDGET, "drift": DRIFT}.get(ending.status or "", CODES[ending.state])
    if ending.during_screening:
        say(
            f"stopped while screening items ({ending.reason}); to continue, run the same "
            f"command again (the screening is stored in {ending.ref.location})"
        )
        return PlayedRun(code, ending)
    digest = ""
    try:
        result = ending.result or open_result(ending.ref, ending.task)
        print_result(result, as_json, form)
        digest = result.digest
    except StoreError:
        if not isinstance(ending.fault, StoreError):
            raise
        # the store failed during the run, and cannot be read either
    print_fault(ending)
    print_ending(ending, prepared.config.task)
    print_digest(ending.ref.location, digest)
    return PlayedRun(code, ending)


def open_result(ref: RunRef, task: type[Task] | None) -> RunResult:
    """The result of a run; its table does not say why the run stopped."""
    return RunResult(ref, reasoned=False, look_up=PriceList().find, task=task)


async def play_attended(
    play: Play, quiet: bool, shown: Iterable[str] | None = REMARKS
) -> RunOutcome:
    """Play with progress shown: the first Ctrl-C waits for open calls, the second stops at once."""
    progress, stop_signal = Progress(estimates_calls=not quiet), StopSignal()
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def summarise(ref: RunRef, task: type[Task]) -> Summary:
        result = open_result(ref, task)
        return Summary(result, *compute_parts_to_store(result, shown))

    def interrupt() -> None:
        if stop_signal.reason:
            if task is not None:
                task.cancel()
            return
        stop_signal.stop("interrupted")
        what = "waiting for the calls in flight, so that their replies are kept"
        if progress.waits_only_for_batches:
            what = "Parley does not wait for the replies of batches that it has sent"
        say(f"stopping: {what}; press Ctrl-C again (or send TERM) to stop at once")

    call_when_interrupted(loop, interrupt, lambda: bool(stop_signal.reason))
    try:
        async with show_progress(progress, say, quiet):
            return await play(RunContext(progress, stop_signal, summarise))
    except asyncio.CancelledError:
        print_interruption(progress.location)
        os._exit(130)  # does not wait for a function or person that still holds a thread


def print_interruption(place: str) -> None:
    """Print how to go on with a run that was stopped at once. It may have no record yet."""
    task = digest = ""
    if place:
        with suppress(ParleyError), read_run(find_run(place)) as reader:
            task, digest = reader.info.config.task, reader.info.digest
    how = f"; resume with: {resume_command(place, task)}" if place else ""
    say(f"stopped without waiting for the calls in flight{how}")
    print_digest(place, digest)


def print_digest(place: str, digest: str) -> None:
    """Print the digest of a run that has stopped; nothing if it has none."""
    if digest:
        check = f"{command_name()} audit {shlex.quote(place)}"
        say(
            f"digest {digest}; keep this digest to check later that the record is "
            f"unchanged: {check} --digest {digest}"
        )


def print_masked(text: str) -> None:
    """Print a text on stdout without secrets: a model may repeat a key of the environment."""
    click.echo(redact(text))


def print_result(
    result: RunResult, as_json: bool, form: str, part: str = "results", metrics: str = ""
) -> None:
    """Print the result on stdout, which carries only data."""
    if as_json:
        import orjson

        print_masked(orjson.dumps(result.data, option=orjson.OPT_INDENT_2).decode())
        return
    print_masked(result.render(form, part, metrics=metrics, width=terminal_width()))


def print_fault(ending: RunOutcome) -> None:
    """Print the traceback of code that failed with --traceback, or else mention that option."""
    if ending.fault is None or ending.fault.__cause__ is None:
        return
    if (click.get_current_context().obj or {}).get("traceback"):
        print_traceback(ending.fault)
    elif ending.state == "failed" or raised_by_code(ending.fault):
        say("run the command with --traceback to see the full traceback")


def print_ending(ending: RunOutcome, task: str) -> None:
    """Print the state of the run and where it is stored, on stderr."""
    place = ending.ref.location
    go_on = resume_command(place, task)
    match ending.state:
        case "done":
            say(f"done{describe_reason(ending)}; written to {place}")
        case "stopped" if ending.status == "budget":
            least = (
                f" (N must be at least {ending.minimum_to_resume})"
                if ending.minimum_to_resume
                else ""
            )
            say(f"stopped ({ending.reason}); resume with: {go_on} {ending.flag} N{least}")
        case "stopped":
            vote = f"{command_name()} annotate vote {shlex.quote(place)}"
            how = ending.advice.replace("{resume}", go_on).replace("{vote}", vote)
            stopped = "waiting for votes" if ending.status == WAITING else "stopped"
            say(f"{stopped} ({ending.reason}); {how or f'resume with: {go_on}'}")
        case "failed":
            say(f"failed: {ending.reason}; the matches played so far are stored in {place}")


def resume_command(place: str, task: str) -> str:
    """The command that resumes a run, with the flags of this command that it needs again."""
    words = [command_name(), "resume", shlex.quote(place), *words_to_repeat()]
    return " ".join([*words, *name_task_file(place, task)])


def name_task_file(place: str, task: str) -> list[str]:
    """The `--task` flag, if the task's file is outside the folders that a run's record may name."""
    from parley.config.recorded_task import path_of_task  # late: `parley show` needs neither
    from parley.config.task_catalogue import is_task_path

    path = path_of_task(task).resolve()
    folders = Path.cwd().resolve(), Path(place).resolve().parent
    if not is_task_path(task) or any(path.is_relative_to(folder) for folder in folders):
        return []
    return ["--task", shlex.quote(task)]


def describe_reason(ending: RunOutcome) -> str:
    """Why a run with a stopping rule is done."""
    return (
        f", {ending.status.replace('_', ' ')} ({ending.reason})"
        if ending.status and ending.reason
        else ""
    )
