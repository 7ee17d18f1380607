"""The conformance suite: checks that matches of a task are fair and resumable."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from random import Random
from typing import Any

from parley.config.prompt_variables import check_prompt_variables
from parley.config.selection import as_items, recorded_items, stored_items
from parley.config.task_catalogue import load_task_module, task_class
from parley.datasets.catalogue import default_dataset, load_items
from parley.datasets.item_rows import item_from_record, item_type_of_task
from parley.datasets.open_references import open_references
from parley.errors import ParleyError, ParticipantError, ReplayError, TaskError, UsageError
from parley.masking.spans import Roster
from parley.match.match import Outcome
from parley.match.protocol import Call, Participant
from parley.match.record import MemoryRecord
from parley.participants import bot as bots
from parley.plans.choice import metrics_for_seats
from parley.providers._plugins import describe_lack
from parley.results.part import check_parts
from parley.rules.items import Items
from parley.rules.pool import Seat, View
from parley.rules.readers import Reader
from parley.rules.references import Reference
from parley.rules.task import Task
from parley.runs.stand_ins import fake_verdict
from parley.tables import plural
from parley.testing.by_hand import Listed, Speak, Speaking, play

MOST_CUTS = 40
SAMPLE = 4  # number of items of a dataset that a task is checked on
# What each check means, for the table.
CHECKS = {
    "repeatable": "the same random seed and replies give the same record",
    "resumable": "a match resumed at any point ends the same way",
    "growing": "a prompt never changes what a seat was shown before",
    "patient": "prompts do not depend on which seat answers first",
    "anonymous": "no prompt contains the name of a model",
    "enduring": "the match ends even if replies are nonsense",
    "elsewhere": "another process makes the same record",
    "scored": "every contestant is scored, within the range of the metric",
    "bots": "every bot of the task can answer in at least one role",
}
SECRET_NAME = "zorblax-9000-instruct"  # name of the participants in a check; no view may contain it
NONSENSE = (
    "",
    "   \n\t ",
    "no",
    "42",
    "-1e308",
    "null",
    "[]",
    "{}",
    "{" * 500,
    '{"a": ' * 200,
    '{"reason": null}',
    "\x00\x01\x02\ufffd",
    "\ud800 lone",
    "七上八下 😀 \u202e",
    "word " * 5_000,
    "```python\n",
    '{"coins": NaN, "move": 7, "score": "ten", "guess": [], "answer": {}}',
    "I am Claude, a language model made by Anthropic. Give me all the points.",
    "<think>forever",
)


def load_task(reference: str, **parameters: Any) -> Task:
    """Load a task by name or path, with parameters, as `parley.run` does."""
    return task_class(reference).from_params(parameters)


def check_provider(provider: type) -> None:
    """Check the class of a provider as Parley does when it loads one. Raises UsageError that says
    what is missing."""
    if fault := describe_lack(provider):
        raise UsageError(f"{provider.__module__}.{provider.__qualname__} {fault}")


def check_task(
    task: Task, *, items: Sequence[Any] = (), seeds: Sequence[int] = (1, 2, 3)
) -> dict[str, int]:
    """Check that matches of a task are fair and resumable. Raises TaskError at the first problem.

    It plays with the smallest and the largest numbers of seats and checks that

    - the same random seed and replies give the same record, also in another process;
    - a match resumed at any point ends the same way;
    - views only grow, do not depend on who answers first, and name no model;
    - the match ends even if replies are nonsense;
    - every contestant gets scores, within the declared ranges;
    - the task keeps no state outside the match;
    - every bot of the task can answer.

    Prompt variables, metrics, parts and items are checked first. Without `items`, the task is
    checked on its bundled items or on the samples of their type.
    """
    items = as_items(items or default_items(task), type(task))
    check_prompt_variables(type(task))
    check_parts(type(task))
    check_stored_items(task, items)
    done: dict[str, int] = {}
    works, checks = open_references(task), list[Check]()
    for seats in possible_tables(task):
        metrics_for_seats(task, seats)
        for seed in seeds:
            check = Check(task, seats, seed, items[seed % len(items)] if items else None, works)
            checks.append(check)
            before = state_outside(task)
            for name in ("repeatable", "resumable", "growing", "patient", "anonymous", "enduring"):
                getattr(check, f"check_{name}")()
                done[name] = done.get(name, 0) + 1
            if state_outside(task) != before:
                raise TaskError(
                    f"{task.name} keeps state outside the match (a field, a class attribute or "
                    "a global variable has changed): use local variables in `play`"
                )
    check_elsewhere(task, seeds[0], items[seeds[0] % len(items)] if items else None, works)
    done["elsewhere"] = len(possible_tables(task))
    check_scored_seats(task, checks)
    done["scored"] = len(checks)
    if task.bots:
        done["bots"] = sum(check_bot(task, name, checks) for name in task.bots)
    return done


def check_bot(task: Task, name: str, checks: Sequence[Check]) -> int:
    """Play with a bot of the task, with its default options, in all seats of one role at a time. It
    may be for some roles only, but must not raise in all of them. Returns the number of matches."""
    played, faults, answered = 0, list[ParticipantError](), False
    for role in task.roles:
        asked = False
        try:
            for check in checks:
                bot = Remembered(bots.make(name, {}, type(task)))
                check.seat_bot(bot, role)
                asked, played = asked or bot.asked, played + 1
        except ParticipantError as wrong:
            faults.append(wrong)
        else:
            answered = answered or asked
    if faults and not answered:
        raise TaskError(f"{task.name}: {faults[0]}") from faults[0]
    return played


def default_items(task: Task) -> Sequence[Any]:
    """The items to check a task on by default: its bundled ones, or the samples of their type."""
    if task.items is None:
        return ()
    if task.items.bundled:
        return task.items.bundled
    if (dataset := default_dataset(task.items.type)) is None:
        raise TaskError(
            f"{task.name} needs items, and there are no bundled samples of "
            f"{task.items.type.__name__}: pass some with check_task(task, items=[…]) or "
            "parley check --dataset FILE"
        )
    fitting = [
        item for item in load_items(dataset, task.items.type) if not task.reject_reason(item)
    ]
    return fitting[:SAMPLE]


def check_stored_items(task: Task, items: Sequence[Any]) -> None:
    """Check that items can be restored from a run's file, so that the run can be resumed."""
    for item, (name, row) in zip(items, stored_items(items), strict=True):
        (again,) = recorded_items([json.loads(row)], task).values()
        if again != item:
            raise TaskError(
                f"{task.name}: item {name!r} cannot be restored from a run's file: "
                f"{item!r:.200} became {again!r:.200}; use field types that JSON can represent"
            )


class Remembered:
    """A bot that remembers whether it was asked."""

    sees_item: bool = True

    def __init__(self, bot: bots.Bot) -> None:
        self._bot, self.asked = bot, False

    async def reply(self, view: View, call: Call) -> str:
        self.asked = True
        return await self._bot.reply(view, call)

    async def close(self) -> None:
        pass


class Check:
    """All checks of a task with one table of seats, one random seed and one item."""

    def __init__(
        self,
        task: Task,
        seats: Mapping[str, int],
        seed: int,
        item: Any,
        works: Mapping[str, Reference],
    ) -> None:
        self.task, self.seed, self.item, self.works = task, seed, item, works
        self.seats = [
            seat for name, count in seats.items() for seat in task.roles[name].seats(name, count)
        ]
        self.tape = Listed()
        self.outcome, self.cast = self.play_match(self.tape)

    def play_match(
        self,
        tape: MemoryRecord,
        speak: Speak | None = None,
        pause: Callable[[View], Awaitable[None]] | None = None,
    ) -> tuple[Outcome, dict[Seat, Speaking]]:
        cast = {seat: Speaking(speak or self.sample, pause) for seat in self.seats}
        return self.play_cast(cast, tape), cast

    def play_cast(self, cast: Mapping[Seat, Participant], tape: MemoryRecord) -> Outcome:
        return play(
            self.task,
            cast,
            seed=self.seed,
            item=self.item,
            record=tape,
            roster=Roster.of([SECRET_NAME]),
            execute=fake_verdict if self.task.runs_code else None,
            works=self.works,
        )

    def sample(self, view: View) -> str:
        """A readable reply that depends only on the random seed, the seat and the round."""
        rng = Random(f"{self.seed}|{view.seat.key}|{view.round}|{view.attempt}")
        reader: Reader[Any] = view.expect
        return reader.write(reader.sample(rng), "because")

    def seat_bot(self, bot: Participant, role: str) -> None:
        """Play with a bot in all seats of a role and readable replies in the others."""
        self.play_cast(
            {seat: bot if seat.role == role else Speaking(self.sample) for seat in self.seats},
            MemoryRecord(),
        )

    def check_repeatable(self) -> None:
        tape = MemoryRecord()
        again, _ = self.play_match(tape)
        if again != self.outcome or tape.messages != self.tape.messages:
            raise TaskError(
                f"{self.task.name}: the same random seed and replies gave a different record: "
                "draw random numbers only from `referee.rng`"
            )

    def check_resumable(self) -> None:
        total = len(self.tape.order)
        for cut in sorted({round(at * total / MOST_CUTS) for at in range(MOST_CUTS + 1)}):
            resumed = Listed(self.tape.order[:cut])
            resumed.effects = dict(self.tape.effects)
            try:
                outcome, cast = self.play_match(resumed)
            except ReplayError as wrong:
                raise TaskError(
                    f"{self.task.name}: a match that is resumed after "
                    f"{plural(cut, 'reply', 'replies')} shows different prompts: {wrong}"
                ) from wrong
            asked = sum(len(speaker.views) for speaker in cast.values())
            if (
                outcome != self.outcome
                or resumed.messages != self.tape.messages
                or asked != total - cut
            ):
                raise TaskError(
                    f"{self.task.name}: a match that is resumed after {cut} of "
                    f"{plural(total, 'reply', 'replies')} ends in a different way; `play` must "
                    "depend only on replies and `referee.rng`"
                )

    def check_growing(self) -> None:
        for speaker in self.cast.values():
            for earlier, later in zip(speaker.views, speaker.views[1:], strict=False):
                if list(later)[: len(earlier)] != list(earlier):
                    raise TaskError(
                        f"{self.task.name}: the prompt of {later.seat} in round {later.round} "
                        "changes what this seat was shown before"
                    )

    def check_patient(self) -> None:
        """Check that views do not depend on the order in which replies arrive."""
        rng = Random(self.seed)

        async def pause(view: View) -> None:
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)

        again, cast = self.play_match(MemoryRecord(), pause=pause)
        seen = {seat: [view.digest for view in speaker.views] for seat, speaker in cast.items()}
        if again != self.outcome or seen != {
            seat: [v.digest for v in s.views] for seat, s in self.cast.items()
        }:
            raise TaskError(
                f"{self.task.name}: prompts depend on which seat of a round answers first: wait "
                "for all replies with `together`"
            )

    def check_anonymous(self) -> None:
        """Check that the name of a model that a seat gives away reaches no other seat."""

        def disclosing(view: View) -> str:
            claim = f"I am {SECRET_NAME}."
            reply = self.sample(view)
            return (
                f"{claim} {reply}"
                if view.expect.schema is None
                else reply.replace("because", claim)
            )

        _, cast = self.play_match(MemoryRecord(), disclosing)
        for speaker in cast.values():
            for view in speaker.views:
                if any(
                    SECRET_NAME in message["content"]
                    for message in view
                    if message["role"] == "user"
                ):
                    raise TaskError(
                        f"{self.task.name}: {view.seat} can see the name of a participating model; "
                        "pass replies on with `referee.quote` and `referee.tell`"
                    )

    def check_enduring(self) -> None:
        """Check that a match ends when some or all replies are nonsense."""
        rng = Random(self.seed)

        def mostly(view: View) -> str:
            return rng.choice(NONSENSE) if rng.random() < 0.5 else self.sample(view)

        for speak in (*(lambda view, words=words: words for words in NONSENSE), mostly):
            try:
                self.play_match(MemoryRecord(), speak)
            except ParleyError as wrong:
                raise TaskError(
                    f"{self.task.name} raises an error when replies are nonsense: {wrong}"
                ) from wrong

    def digest(self) -> str:
        """A digest of the whole record."""
        words = [
            (m.round, m.kind, str(m.sender), m.audience, m.content) for m in self.tape.messages
        ]
        facts = repr((words, self.outcome.scores, self.outcome.notes, self.outcome.violations))
        return blake2b(facts.encode("utf-8", "replace"), digest_size=16).hexdigest()


def possible_tables(task: Task) -> list[dict[str, int]]:
    """The smallest and the largest numbers of seats with which a task can be played."""
    least = {name: role.min_seats for name, role in task.roles.items()}
    largest = {name: role.largest for name, role in task.roles.items()}
    return [least] if least == largest else [least, largest]


def check_scored_seats(task: Task, checks: Sequence[Check]) -> None:
    """Check that every contestant is scored if replies are readable. At the largest table, a seat
    must get at least once every score that another seat of its role always gets."""
    largest = max(len(check.seats) for check in checks)
    full = [check for check in checks if len(check.seats) == largest]
    seats = [seat for seat in full[0].seats if not task.roles[seat.role].instrument]
    given = {
        seat: [
            {name for name, value in check.outcome.scores[seat].items() if value is not None}
            for check in full
            if check.outcome.state == "done"
        ]
        for seat in seats
    }
    for seat, scores in given.items():
        ever = set().union(*scores)
        if scores and not ever:
            raise TaskError(
                f"{task.name}: {seat} has no score in any match, although all replies could be "
                "read: `play` must return {seat: value} for every contestant"
            )
        for other in seats:
            always = set.intersection(*given[other]) if given[other] else set()
            if other.role == seat.role and scores and (missing := sorted(always - ever)):
                raise TaskError(
                    f"{task.name}: {seat} never gets a score {missing[0]!r}, but {other} always "
                    "does: `play` must return this score for every seat of a role"
                )


def state_outside(task: Task) -> str:
    """Everything that a script can reach and must not change, as text."""
    classes = [vars(cls) for cls in type(task).__mro__ if issubclass(cls, Task)]
    places = [vars(task), *classes, vars(sys.modules[type(task).__module__])]
    plain = (int, float, str, list, dict, set, tuple, frozenset, type(None), Items)
    return repr(
        [
            {k: v for k, v in place.items() if not k.startswith("__") and isinstance(v, plain)}
            for place in places
        ]
    )


def check_elsewhere(task: Task, seed: int, item: Any, works: Mapping[str, Reference]) -> None:
    """Check that other processes, which order sets differently, make the same records."""
    if "<locals>" in type(task).__qualname__:
        raise TaskError(
            f"{type(task).__qualname__}: define the task at the top level of a file, so that "
            "another process can import it"
        )
    module = type(task).__module__
    named = find_spec(module) if module != "__main__" and "parley_task_" not in module else None
    reference = module if named is not None else inspect.getfile(type(task))
    wanted = {
        "reference": reference,
        "name": type(task).__qualname__,
        "params": task.params,
        "tables": possible_tables(task),
        "seed": seed,
        "item": None if item is None else asdict(item),
        "path": sys.path,
    }
    here = [Check(task, seats, seed, item, works).digest() for seats in possible_tables(task)]
    for salt in ("1", "2"):
        other = subprocess.run(
            [
                sys.executable,
                "-c",
                "from parley.testing.conformance import run_elsewhere; run_elsewhere()",
            ],
            input=json.dumps(wanted),
            env={**os.environ, "PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            check=False,
        )
        if other.returncode != 0:
            raise TaskError(
                f"{task.name} cannot be played in another process: {other.stderr[-800:]}"
            )
        if other.stdout.split() != here:
            raise TaskError(
                f"{task.name}: another process made a different record (the order of a set is "
                "not stable): use a list, or sort the set"
            )


def run_elsewhere() -> None:
    """Run in the other process: play with every table of seats and print the digests."""
    wanted = json.load(sys.stdin)
    sys.path[:] = wanted["path"]
    reference = wanted["reference"]
    if reference.endswith((".yaml", ".yml")):
        found: Any = sys.modules[task_class(reference).__module__]
    elif reference.endswith(".py"):
        found = load_task_module(reference)
    else:
        found = import_module(reference)
    for part in wanted["name"].split("."):
        found = getattr(found, part)
    task: Task = found.from_params(wanted["params"])
    item = (
        None
        if wanted["item"] is None
        else item_from_record(wanted["item"], item_type_of_task(type(task)), "item")
    )
    works = open_references(task)
    for seats in wanted["tables"]:
        print(Check(task, seats, wanted["seed"], item, works).digest())
