"""What annotators see. The task defines how its items and the conversations of a pair are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, NamedTuple

from parley.config.task_catalogue import installed_tasks, task_of_run
from parley.errors import ParleyError, StoreError, TaskError, UsageError, describe_exception
from parley.masking.mask import MatchMask
from parley.match.record import RecordedCall
from parley.results.part import module_beside_rule
from parley.rules.pool import Example, Seat, text_of
from parley.rules.task import Task
from parley.statistics.preferences import ConversationPair
from parley.store import read_run
from parley.store.reader import RunReader
from parley.store.types import RunRef


class ItemText(NamedTuple):
    """An item as an annotator reads it. Empty parts are left out."""

    question: str
    choices: str = ""
    right: str = ""  # the right answer
    right_name: str = "correct answer"  # what it is called


@dataclass(frozen=True)
class Exchange:
    """A question and the reply to it. The first reply of a conversation answers the item."""

    asked: str
    said: str
    cut: bool  # whether a length limit ended the reply


@dataclass(frozen=True)
class SheetFormat:
    """How people compare the conversations of a task, or what came out of them.

    A task that is one file declares it as `sheet`, a task that is a folder as `SHEET` in its module
    `annotation`.
    """

    metric: str  # the two conversations of a pair differ in this metric
    criteria: Mapping[str, str]  # what to look at, each with the question to ask
    write_item: Callable[[Mapping[str, Any]], ItemText]  # from the item on record
    write_exchanges: Callable[[Sequence[RecordedCall]], Sequence[Exchange]]  # of one match
    role: str = ""  # the role whose work is compared; empty: the task has one such role
    noun: str = "conversation"  # what is compared
    is_code: bool = False  # whether replies are shown as code


@dataclass(frozen=True)
class Sheet:
    """What an annotator sees of a pair: the item and two conversations, without names and
    scores."""

    number: int
    item: ItemText
    a: Sequence[Exchange]
    b: Sequence[Exchange]
    noun: str
    criteria: Mapping[str, str]
    is_code: bool

    @property
    def question(self) -> str:
        """What people are asked."""
        return f"Which {self.noun} is better?"


@dataclass(frozen=True)
class JudgedConversation:
    """What a person sees of one seat's conversation: no names, no scores, no right answer."""

    match: int
    seat: Seat
    opening: str  # what the seat was told before the first question
    turns: tuple[Example, ...]

    question = "Did the participant succeed?"
    criterion = (
        "The participant succeeded if its final answer is what the task asked for. Solve the task "
        "yourself as far as you can. Ignore how confident or polite it sounds."
    )


def format_of_task(task: type[Task] | None) -> SheetFormat | None:
    """The sheet that a task, or a class that it inherits from, declares."""
    for kind in task.__mro__ if task else ():
        try:
            name, found = declared_sheet(kind)
        except Exception as wrong:  # foreign code
            raise TaskError(
                f"the annotation sheet of the task {kind.__name__} cannot be loaded: "
                f"{describe_exception(wrong)}"
            ) from wrong
        if name:
            if not isinstance(found, SheetFormat):
                raise TaskError(f"{name} must be a SheetFormat, not {type(found).__name__}")
            return found
    return None


def declared_sheet(kind: type) -> tuple[str, Any]:
    """The sheet that a class declares, after the name of its place: in itself, or in the module
    `annotation` of its package. The name is empty if there is none."""
    given = vars(kind).get("sheet")
    if isinstance(given, str):  # "package.module:NAME", loaded when it is needed
        module, _, name = given.partition(":")
        return given, getattr(import_module(module), name, None)
    if given is not None:
        return f"{kind.__name__}.sheet", given
    beside = module_beside_rule(kind, "annotation")
    if beside is None:
        return "", None
    return f"{beside.__name__}.SHEET", getattr(beside, "SHEET", None)


def last_reply(calls: Sequence[RecordedCall], role: str) -> tuple[Exchange, ...]:
    """The last reply of a role as the whole of what people see."""
    found = [call for call in calls if call.seat.role == role]
    if not found:
        return ()
    last = max(found, key=lambda call: (call.round, call.attempt)).reply
    return (Exchange("", text_of(last.content).strip(), last.finish == "length"),)


@contextmanager
def errors_of_sheet(reader: RunReader, match: int) -> Iterator[None]:
    """Turn exceptions of a task's sheet into errors that name the run, the match and the line."""
    try:
        yield
    except ParleyError:
        raise
    except Exception as wrong:
        raise TaskError(
            f"the annotation sheet of the task {reader.info.identity['task']} cannot show match "
            f"{match} of {reader.info.id}: {describe_exception(wrong)}"
        ) from wrong


def format_of_runs(runs: Sequence[RunReader]) -> SheetFormat:
    """The sheet for comparing these runs, which must all be of one task with a sheet."""
    found: dict[str, SheetFormat] = {}
    for run in runs:
        name = run.info.identity["task"]
        sheet = format_of_task(task_of_run(run.info))
        if sheet is None:
            known, _ = installed_tasks()
            able = [each for each, task in known.items() if format_of_task(task)]
            raise UsageError(
                f"{run.info.id} is a run of the task {name}, which has no annotation sheet: "
                f"choose a run of {', '.join(able)}"
            )
        found[name] = sheet
    if len(found) > 1:
        raise UsageError(f"runs of {' and '.join(found)} cannot be compared: give runs of one task")
    return next(iter(found.values()))


def mask_calls(calls: Sequence[RecordedCall]) -> list[RecordedCall]:
    """The calls of a match without the names that its seats did not read: annotators must not know
    who plays either."""
    mask = make_annotator_mask(calls)
    shown = []
    for call in calls:
        said = text_of(call.reply.content)
        hidden = mask.hide(said)
        changed = hidden != said
        shown.append(call._replace(reply=replace(call.reply, content=hidden)) if changed else call)
    return shown


def make_annotator_mask(calls: Iterable[RecordedCall]) -> MatchMask:
    """Hides the names that are on record in a match."""
    mask = MatchMask()
    for call in calls:
        mask.add(text_of(call.reply.content), call.masked)
    return mask


def make_sheet(number: int, pair: ConversationPair, refs: Mapping[str, RunRef]) -> Sheet:
    """The sheet of a pair. `refs` has each run by its id."""
    sides, item = [], ItemText("")
    with ExitStack() as stack:
        runs = {id: stack.enter_context(read_run(refs[id])) for id in {pair.a.run, pair.b.run}}
        sheet = format_of_runs([runs[side.run] for side in (pair.a, pair.b)])
        for side in (pair.a, pair.b):
            reader = runs[side.run]
            items = {str(item["id"]): item for item in reader.run.items()}
            match = reader.matches.find(side.match)
            if pair.item not in items or match is None:
                raise StoreError(
                    f"{reader.info.ref.location} no longer has the conversations that were "
                    "drawn for annotation: restore the file"
                )
            with errors_of_sheet(reader, side.match):
                item = sheet.write_item(items[pair.item])
            # When rejudged, a match may end earlier: people see only what was judged.
            last = match.rounds or 0
            calls = [call for call in reader.calls.of(side.match) if call.round <= last]
            masked = mask_calls(calls)
            with errors_of_sheet(reader, side.match):
                sides.append(sheet.write_exchanges(masked))
    a, b = sides
    return Sheet(number, item, a, b, sheet.noun, sheet.criteria, sheet.is_code)
