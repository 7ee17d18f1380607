"""Tools for tests: a rule driven by hand, participants made of functions, and transcripts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from parley.errors import Forfeit, TaskError
from parley.match.match import Match, Outcome
from parley.match.protocol import Call, Participant
from parley.match.record import MemoryRecord, RecordedCall
from parley.match.seating import check_scores, seats_by_role
from parley.rules.pool import Pool, Seat, View, text_of
from parley.rules.quotations import derive_match_key
from parley.rules.referee import Ask, AskTogether, Effect, LookUp, Referee
from parley.rules.references import DrawOrder, look_up
from parley.rules.task import Task
from parley.store import types

MOST_REPLIES = 10_000  # a match with more replies of a seat is taken to be endless
# Known to everybody, so that tests can expect its marks. Runs draw a secret of their own.
QUOTATION_SECRET = "00" * 16
QUOTATION_KEY = derive_match_key(QUOTATION_SECRET, 1)
Speak = Callable[[View], str]


class ByHand:
    """Drives a rule without an event loop: inspect what is asked, feed values, read the scores.
    Works of reference answer on their own."""

    def __init__(
        self,
        task: Task,
        *,
        seed: int = 0,
        item: Any = None,
        works: Mapping[str, Any] | None = None,
        **seats: int,
    ) -> None:
        counts = {name: seats.get(name, role.min_seats) for name, role in task.roles.items()}
        self.seats = [
            seat for name, role in task.roles.items() for seat in role.seats(name, counts[name])
        ]
        self.pool = Pool(self.seats)
        self.referee = Referee(task, self.pool, seed, item, quotation_key=QUOTATION_KEY)
        self.scores: dict[Seat, dict[str, float | None]] | None = None
        self.asked: Effect | None = None
        self._task, self._works, self._draw_order = task, works or {}, DrawOrder(seed)
        self._script = task.play(self.referee, **seats_by_role(task, dict.fromkeys(self.seats)))
        self._advance(lambda: self._script.send(None))

    def answer(self, values: Any) -> None:
        """Close the round with these values by seat (or one value for all), or supply a program's
        result."""
        asks = (
            (self.asked,)
            if isinstance(self.asked, Ask)
            else self.asked.asks
            if isinstance(self.asked, AskTogether)
            else ()
        )
        if asks and not isinstance(values, Mapping):
            values = {seat: values for ask in asks for seat in ask.seats}
        self.referee.round += bool(asks)
        self._advance(lambda: self._script.send(values))

    def forfeit(self) -> None:
        """Close the round as if a seat had given no readable reply."""
        self.referee.round += 1
        self._advance(lambda: self._script.throw(Forfeit("no readable reply")))

    def told(self, seat: Seat) -> list[str]:
        """The referee's messages to a seat since its last question."""
        return list(self.pool.conversations[seat].waiting)

    def _advance(self, step: Callable[[], Effect]) -> None:
        try:
            self.asked = step()
            while isinstance(self.asked, LookUp) and self.asked.work in self._works:
                asked = self.asked
                answer = look_up(
                    self._works,
                    asked.work,
                    asked.question,
                    asked.given,
                    self._task.name,
                    self._draw_order,
                )
                self.asked = self._script.send(answer)
        except StopIteration as end:
            self.asked, self.scores = (
                None,
                check_scores(self._task, end.value, dict.fromkeys(self.seats)),
            )


class Speaking:
    """A participant that replies with the result of a function of its view, and remembers all
    views."""

    sees_item: bool = False

    def __init__(
        self, speak: Speak, pause: Callable[[View], Awaitable[None]] | None = None
    ) -> None:
        self.views: list[View] = []
        self._speak, self._pause = speak, pause

    async def reply(self, view: View, call: Call) -> str:
        self.views.append(view)
        if len(self.views) > MOST_REPLIES:
            raise TaskError(
                f"the match does not end ({view.seat} was asked more than {MOST_REPLIES} "
                "times): limit the number of rounds in `play`"
            )
        if self._pause is not None:
            await self._pause(view)
        return self._speak(view)

    async def close(self) -> None:
        pass


class Listed(MemoryRecord):
    """A record that remembers the order of its calls, so that it can be cut at any point."""

    def __init__(self, calls: Sequence[RecordedCall] = ()) -> None:
        super().__init__()
        self.order: list[RecordedCall] = list(calls)
        self.calls = {(call.round, call.seat, call.attempt): call for call in calls}

    async def append(self, call: RecordedCall) -> None:
        await super().append(call)
        self.order.append(call)


def play(task: Task, cast: Mapping[Seat, Participant], **options: Any) -> Outcome:
    """Play one match from a test without an event loop. Unlike in a run, marks of quotations are
    the same each time, unless there is another `quotation_key`."""
    options = {"quotation_key": QUOTATION_KEY, **options}
    return asyncio.run(Match(task, cast, **options).play())


@contextmanager
def fix_quotation_secret() -> Iterator[None]:
    """Runs that begin inside have the same marks of quotations each time, for golden files of
    whole runs. Never evaluate a model like this: it could know the marks."""
    with patch.object(types, "draw_quotation_secret", lambda: QUOTATION_SECRET):
        yield


def transcript(outcome: Outcome, tape: MemoryRecord) -> str:
    """A match as text, for golden files that are reviewed as a diff."""
    lines = []
    for message in tape.messages:
        if message.sender is None:
            to = ", ".join(str(seat) for seat in message.audience)
            lines.append(
                f"[{message.round}] referee, {message.kind} → {to}:\n"
                f"{text_of(message.content or '')}"
            )
        else:
            reply = tape.calls[message.round, message.sender, message.attempt].reply
            lines.append(f"[{message.round}] {message.sender}:\n{text_of(reply.content)}")
    lines += [
        f"violation: {v.round} {v.seat} {v.kind}: {v.detail} ({v.outcome})"
        for v in outcome.violations
    ]
    lines.append(f"{outcome.state} after {outcome.rounds} rounds {outcome.reason}".rstrip())
    lines += [
        f"{seat}: " + ", ".join(f"{name} {value}" for name, value in by.items())
        for seat, by in outcome.scores.items()
    ]
    return "\n\n".join(lines) + "\n"
