"""The conformance suite: what a fair, resumable match needs of its task."""

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
from parley.match.masking import Masking
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
from parley.testing.by_hand import Listed, Speak, Speaking, play

MOST_CUTS = 40
SAMPLE = 4  # items of a dataset that a task is checked on
# What is checked, in words.
CHECKS = {
    "repeatable": "same seed and replies, same record",
    "resumable": "every cut of the record resumes to the same end",
    "growing": "views only grow",
    "patient": "views do not depend on who answers first",
    "anonymous": "no view names a model",
    "enduring": "it ends under nonsense",
    "elsewhere": "another process makes the same record",
    "scored": "every contestant is scored, within the range",
    "bots": "each bot of the task can answer in one of its roles",
}
SECRET_NAME = "zorblax-9000-instruct"  # borne by the cast of a check; no view may hold it
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
    """The task that a name or path stands for, with parameters, as `parley.run` finds it."""
    return task_class(reference).from_params(parameters)


def check_provider(provider: type) -> None:
    """Check the class of a provider as Parley does when it loads one; raises UsageError with what
    the class lacks."""
    if fault := describe_lack(provider):
        raise UsageError(f"{provider.__module__}.{provider.__qualname__} {fault}")


def check_task(
    task: Task, *, items: Sequence[Any] = (), seeds: Sequence[int] = (1, 2, 3)
) -> dict[str, int]:
    """Hold a task to what a fair, resumable match needs; raises TaskError at the first thing that
    is wrong.

    It plays with every number of seats at both ends of what the roles allow: same seed same record,
    in another process too; every cut of the record resumes to the same end; views only grow, do not
    depend on who answers first, and name no model; it ends under nonsense; scores stay in their
    declared range, and no seat is left without one; nothing is kept outside the match; each bot of
    the task can answer. Variables of prompts, metrics, parts and items are looked at first.

    Without `items`, it is checked on those that the task brings along, or on the samples of their
    type.
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
                    f"{task.name} keeps state outside the match: a field, class attribute or "
                    f"global has changed"
                )
    check_elsewhere(task, seeds[0], items[seeds[0] % len(items)] if items else None, works)
    done["elsewhere"] = len(possible_tables(task))
    check_scored_seats(task, checks)
    done["scored"] = len(checks)
    if task.bots:
        done["bots"] = sum(check_bot(task, name, checks) for name in task.bots)
    return done


def check_bot(task: Task, name: str, checks: Sequence[Check]) -> int:
    """A bot of the task's own plays with its usual options, in all seats of one role at a time. It
    may be for some of the roles only, and must not raise in all of them. Returns the matches."""
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
    """The items to check a task on where none are given: its own, or the samples of their type."""
    if task.items is None:
        return ()
    if task.items.bundled:
        return task.items.bundled
    if (dataset := default_dataset(task.items.type)) is None:
        raise TaskError(
            f"{task.name} is played on items, and there are no samples of "
            f"{task.items.type.__name__}: give some, check_task(task, items=[…]) or parley check "
            "--dataset FILE"
        )
    fitting = [
        item for item in load_items(dataset, task.items.type) if not task.reject_reason(item)
    ]
    return fitting[:SAMPLE]


def check_stored_items(task: Task, items: Sequence[Any]) -> None:
    """Items come back from a run's file as they were, so that the run can be resumed."""
    for item, (name, row) in zip(items, stored_items(items), strict=True):
        (again,) = recorded_items([json.loads(row)], task).values()
        if again != item:
            raise TaskError(
                f"{task.name}: item {name!r} does not come back from a run's file as it was: "
                f"{item!r:.200} became {again!r:.200}; give its fields types that JSON has"
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
    """One task with so many seats, one seed and one item, looked at from all sides."""

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
            masking=Masking(frozenset({SECRET_NAME})),
            execute=fake_verdict if self.task.runs_code else None,
            works=self.works,
        )

    def sample(self, view: View) -> str:
        """A readable reply that depends on the seed, the seat and the round only."""
        rng = Random(f"{self.seed}|{view.seat.key}|{view.round}|{view.attempt}")
        reader: Reader[Any] = view.expect
        return reader.write(reader.sample(rng), "because")

    def seat_bot(self, bot: Participant, role: str) -> None:
        """Play with a bot in all seats of a role, and readable replies in the others."""
        self.play_cast(
            {seat: bot if seat.role == role else Speaking(self.sample) for seat in self.seats},
            MemoryRecord(),
        )

    def check_repeatable(self) -> None:
        tape = MemoryRecord()
        again, _ = self.play_match(tape)
        if again != self.outcome or tape.messages != self.tape.messages:
            raise TaskError(
                f"{self.task.name}: the same seed and replies gave another record; "
                f"is chance drawn elsewhere?"
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
                    f"{self.task.name}: resumed after {cut} replies it shows other words: {wrong}"
                ) from wrong
            asked = sum(len(speaker.views) for speaker in cast.values())
            if (
                outcome != self.outcome
                or resumed.messages != self.tape.messages
                or asked != total - cut
            ):
                raise TaskError(
                    f"{self.task.name}: resumed after {cut} of {total} replies it "
                    f"came to another end"
                )

    def check_growing(self) -> None:
        for speaker in self.cast.values():
            for earlier, later in zip(speaker.views, speaker.views[1:], strict=False):
                if list(later)[: len(earlier)] != list(earlier):
                    raise TaskError(
                        f"{self.task.name}: the view of {later.seat} in round {later.round} "
                        f"rewrites an earlier one"
                    )

    def check_patient(self) -> None:
        """Whatever order replies arrive in, everybody sees the same."""
        rng = Random(self.seed)

        async def pause(view: View) -> None:
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)

        again, cast = self.play_match(MemoryRecord(), pause=pause)
        seen = {seat: [view.digest for view in speaker.views] for seat, speaker in cast.items()}
        if again != self.outcome or seen != {
            seat: [v.digest for v in s.views] for seat, s in self.cast.items()
        }:
            raise TaskError(f"{self.task.name}: what seats see depends on who answers first")

    def check_anonymous(self) -> None:
        """Seats that say which model they are do not reach each other with it."""

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
                        f"{self.task.name}: {view.seat} is told the name of a model of the cast"
                    )

    def check_enduring(self) -> None:
        """It ends when some or all seats talk nonsense."""
        rng = Random(self.seed)

        def mostly(view: View) -> str:
            return rng.choice(NONSENSE) if rng.random() < 0.5 else self.sample(view)

        for speak in (*(lambda view, words=words: words for words in NONSENSE), mostly):
            try:
                self.play_match(MemoryRecord(), speak)
            except ParleyError as wrong:
                raise TaskError(f"{self.task.name} does not stand nonsense: {wrong}") from wrong

    def digest(self) -> str:
        """The whole record in a few letters."""
        words = [
            (m.round, m.kind, str(m.sender), m.audience, m.content) for m in self.tape.messages
        ]
        facts = repr((words, self.outcome.scores, self.outcome.notes, self.outcome.violations))
        return blake2b(facts.encode("utf-8", "replace"), digest_size=16).hexdigest()


def possible_tables(task: Task) -> list[dict[str, int]]:
    """The smallest and the largest table at which a task can be played."""
    least = {name: role.min_seats for name, role in task.roles.items()}
    largest = {name: role.largest for name, role in task.roles.items()}
    return [least] if least == largest else [least, largest]


def check_scored_seats(task: Task, checks: Sequence[Check]) -> None:
    """With readable replies every seat of a contestant is scored. At the largest table, a seat is
    compared with the others of its role: what they always get, it must get at least once."""
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
                f"read: play returns {{seat: value}} for every contestant"
            )
        for other in seats:
            always = set.intersection(*given[other]) if given[other] else set()
            if other.role == seat.role and scores and (missing := sorted(always - ever)):
                raise TaskError(
                    f"{task.name}: {seat} never gets a score {missing[0]!r}, and {other} always "
                    f"does: play returns it for every seat of a role"
                )


def state_outside(task: Task) -> str:
    """Everything in reach of a script that should not change, as text."""
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
    """The same records come out of other processes, whose sets and hashes are ordered otherwise."""
    if "<locals>" in type(task).__qualname__:
        raise TaskError(
            f"{type(task).__qualname__}: define the task at the top of a file, so that another "
            f"process can play it"
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
                f"{task.name}: another process made another record; "
                f"does the script iterate over a set?"
            )


def run_elsewhere() -> None:
    """What the other process does: play at every table, print the digests of the records."""
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
