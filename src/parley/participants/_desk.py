"""The desk between a run and the people who play it in a browser: which question waits for whom,
and what they answered.

The run asks, the server of the pages answers. Both run in one event loop, so nothing is locked.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from parley.participants._form import AnswerForm, ShownTurn, describe_reply, make_form, show_turns
from parley.rules.pool import Seat, View

SECRET_BYTES = 24
Fate: TypeAlias = Literal["open", "saving", "recorded", "expired", "withdrawn"]
Ending: TypeAlias = Literal["", "done", "stopped"]
CallKey: TypeAlias = tuple[Seat, int, int]  # seat, round, attempt


@dataclass(eq=False)
class OpenQuestion:
    """A question to a person. Its answer counts once it is recorded."""

    number: int  # of this person in this process
    view: View
    form: AnswerForm
    deadline: float | None  # seconds
    asked: float = field(default_factory=time.monotonic)
    fate: Fate = "open"
    answer: asyncio.Future[str] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    settled: asyncio.Event = field(default_factory=asyncio.Event)  # recorded, or never will be

    @property
    def key(self) -> CallKey:
        return self.view.seat, self.view.round, self.view.attempt

    def seconds_left(self) -> float | None:
        """The time left for an answer; None without a limit."""
        if self.deadline is None:
            return None
        return self.deadline - (time.monotonic() - self.asked)

    async def give(self, reply: str) -> bool:
        """Answer the question, and wait until the answer is on record; false if it is not used."""
        if self.fate != "open":
            return False
        self.fate = "saving"
        self.answer.set_result(reply)
        await self.settled.wait()
        return self.is_recorded

    @property
    def is_recorded(self) -> bool:
        return self.fate == "recorded"

    def expire(self) -> None:
        """End the question without an answer: the rule sees an empty reply."""
        self.fate = "expired"
        self.answer.set_result("")


class Chair:
    """Where one person sits: a secret link, what the person sees, and the question to answer."""

    def __init__(self, alias: str) -> None:
        self.alias, self.secret = alias, secrets.token_urlsafe(SECRET_BYTES)
        self.question: OpenQuestion | None = None
        self.past: dict[int, Fate] = {}  # what became of earlier questions
        self.turns: list[ShownTurn] = []  # the conversation of this match so far
        self.seat: Seat | None = None
        self.scores: list[tuple[int, str]] = []  # the person's own, by match; shown at the end
        self.notice = ""  # what has just happened
        self.match = self.matches = 0  # the current one, and how many are planned
        self.plays = False  # whether the person has a seat in the current match
        self.ending: Ending = ""
        self.version = 0  # of what is shown
        self.seen: float | None = None  # when the page was last asked for
        self.farewell = asyncio.Event()  # the last page was sent
        self.streams = 0  # open connections for updates
        self._changed = asyncio.Event()
        self._saving: dict[CallKey, OpenQuestion] = {}
        self._asked = 0

    def ask(self, view: View, deadline: float | None) -> OpenQuestion:
        """Put a question to the person."""
        self._asked += 1
        question = OpenQuestion(self._asked, view, make_form(view.expect, view.free), deadline)
        self.question, self._saving[question.key] = question, question
        self.seat = view.seat
        self.turns = show_turns(view, question.form)
        if view.attempt and not view.free and self.notice == RECORDED:
            self.notice = AGAIN
        self.change()
        return question

    def withdraw(self, question: OpenQuestion) -> None:
        """Take a question back because the run stops."""
        question.fate = "withdrawn"
        self._settle(question)

    def confirm(self, key: CallKey) -> None:
        """Take note that the answer to a question is on record."""
        question = self._saving.get(key)
        if question is None:
            return
        if question.fate == "expired":
            self.notice = EXPIRED
        else:
            question.fate = "recorded"
            self.notice = RECORDED
            self.turns.append(ShownTurn(True, describe_reply(question.answer.result())))
        self._settle(question)

    def lose_answers(self) -> None:
        """Give up questions whose answers will not be recorded any more."""
        for question in list(self._saving.values()):
            self.withdraw(question)

    def _settle(self, question: OpenQuestion) -> None:
        self._saving.pop(question.key, None)
        self.past[question.number] = question.fate
        if self.question is question:
            self.question = None
        question.settled.set()
        self.change()

    def begin_match(self, number: int, planned: int, plays: bool) -> None:
        """Show that a match begins, with or without this person."""
        if plays:
            self.turns, self.seat = [], None
            self.notice = f"{self.notice} {BEGINS.format(number=number)}".strip()
        self.match, self.matches, self.plays = number, planned, plays
        self.change()

    def end_match(self, last_words: str) -> None:
        """Show what was said to the seat after its last answer."""
        if self.plays:
            if last_words:
                self.turns.append(ShownTurn(False, last_words))
            self.notice = ENDED.format(number=self.match)
        self.plays = False
        self.change()

    def end(self, ending: Ending) -> None:
        """Show that the run has ended."""
        self.lose_answers()
        self.ending = ending
        self.change()

    def change(self) -> None:
        """Let open pages know that there is something new."""
        self.version += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def wait_for_change(self, seconds: float) -> bool:
        """Wait until something changes; false if nothing changes for this long."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        return True


RECORDED = "Your answer is recorded."
EXPIRED = (
    "The time for your answer ran out, and an empty answer was recorded. The match goes on as it "
    "does when a model gives no usable answer."
)
AGAIN = "Your answer could not be used. The last message says why. Please answer again."
ENDED = "Match {number} has ended."
BEGINS = "Match {number} begins."


class Desk:
    """The chairs of all people in a run. Create it inside the event loop of the run."""

    def __init__(self, aliases: Iterable[str]) -> None:
        self.chairs = {alias: Chair(alias) for alias in aliases}

    def find(self, secret: str) -> Chair | None:
        """The chair with this secret. Takes the same time for every wrong one."""
        given, found = secret.encode("utf-8", "replace"), None
        for chair in self.chairs.values():
            if hmac.compare_digest(given, chair.secret.encode()):
                found = chair
        return found

    def seat(self, alias: str, participant: Any) -> None:
        """Give a participant its chair, if it is a person at this desk."""
        if alias in self.chairs:
            participant.chair = self.chairs[alias]

    def begin_match(self, number: int, planned: int, seats: Mapping[Seat, str]) -> None:
        for alias, chair in self.chairs.items():
            chair.begin_match(number, planned, alias in seats.values())

    def end_match(self, last_words: Mapping[str, str]) -> None:
        """`last_words`: by alias, what was said to the seat after its last answer."""
        for alias, chair in self.chairs.items():
            chair.end_match(last_words.get(alias, ""))

    def add_scores(self, scores: Mapping[str, str]) -> None:
        """`scores`: by alias, the scores of the person in the match that has ended."""
        for alias, words in scores.items():
            if alias in self.chairs:
                self.chairs[alias].scores.append((self.chairs[alias].match, words))

    def confirm(self, alias: str, key: CallKey) -> None:
        if alias in self.chairs:
            self.chairs[alias].confirm(key)

    def end(self, ending: Ending) -> None:
        for chair in self.chairs.values():
            chair.end(ending)
