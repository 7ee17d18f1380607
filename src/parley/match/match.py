"""One match: a task's script driven by hand through synchronous rounds, every reply recorded before
it is used."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from random import Random
from typing import Any, Literal, NamedTuple, TypeAlias

from parley.errors import (
    Forfeit,
    ReplayError,
    TaskError,
    Unreadable,
    describe_exception,
    locate_exception,
)
from parley.masking.mask import MatchMask, NameFinder, describe_spans
from parley.masking.spans import Roster, Span
from parley.match.effects import Effects, Execute
from parley.match.observers import MatchObserver
from parley.match.protocol import UNLIMITED, Call, Participant, Reply, split_thinking
from parley.match.record import MemoryRecord, Record, RecordedCall
from parley.match.seating import check_scores, seats_by_role
from parley.match.task_errors import file_of_task
from parley.rules.notes import WrittenNote
from parley.rules.parsing import repair_object
from parley.rules.pool import BotKnowledge, Content, Example, Message, Pool, Seat, View, text_of
from parley.rules.prompts import AGAIN, FORM, SHORTER, Prompt
from parley.rules.readers import LONGEST, ReplyText
from parley.rules.referee import (
    NOTHING,
    Ask,
    AskTogether,
    Effect,
    LookUp,
    Referee,
    RunProgram,
    Violation,
)
from parley.rules.references import DrawOrder
from parley.rules.task import Task
from parley.tables import show_invisible

Standardise = Literal["on_error", "always"]
NOBODY = Roster()
LONG = 5_000  # characters of a reply whose names are searched in another thread


@dataclass(frozen=True)
class Outcome:
    """How a match ended. An aborted one has no scores: missing is not zero."""

    state: Literal["done", "aborted"]
    reason: str
    scores: dict[Seat, dict[str, float | None]]
    rounds: int
    violations: list[Violation]
    notes: list[WrittenNote]


class Answer(NamedTuple):
    """What one seat contributes to a round."""

    value: Any
    messages: list[Message]
    violations: list[Violation]
    disclosing: list[Disclosure]


Disclosure: TypeAlias = tuple[str, tuple[Span, ...]]  # a reply, and the names in it


class MaskedDelivery:
    """Delivers the referee's texts: names on record are masked, and hidden characters are made
    visible for judges.

    It does not know its match: objects that know each other are freed only by the garbage
    collector.
    """

    __slots__ = ("_mask", "_task")

    def __init__(self, mask: MatchMask, task: Task) -> None:
        self._mask, self._task = mask, task

    def __call__(self, seats: tuple[Seat, ...], text: str) -> list[tuple[tuple[Seat, ...], str]]:
        """The text for each group of seats that reads the same."""
        found: dict[str, list[Seat]] = {}
        by_role: dict[str, str] = {}
        for seat in seats:
            if seat.role not in by_role:
                words = self._mask.hide(text, seat.role)
                judges = self._task.roles[seat.role].instrument
                by_role[seat.role] = show_invisible(words) if judges else words
            found.setdefault(by_role[seat.role], []).append(seat)
        return [(tuple(group), shown) for shown, group in found.items()]


class Match:
    """Plays one match to its end; with a partly filled record, from where that stops."""

    def __init__(
        self,
        task: Task,
        cast: Mapping[Seat, Participant],
        *,
        quotation_key: bytes,
        seed: int = 0,
        item: Any = None,
        prompts: Mapping[str, Prompt] | None = None,
        record: Record | None = None,
        roster: Roster = NOBODY,
        standardise: Standardise = "on_error",
        call: Call = UNLIMITED,
        execute: Execute | None = None,
        works: Mapping[str, Any] | None = None,
        draws: str = "",
        seating: str = "",
        draw_order: DrawOrder | None = None,
        observers: Sequence[MatchObserver] = (),
    ) -> None:
        self.task, self.cast, self._observers = task, cast, observers
        self.record: Record = MemoryRecord() if record is None else record
        self._mask = MatchMask()
        self._names = NameFinder(roster, lambda: collect_task_words(task, item, prompts or {}))
        self.pool = Pool(cast, MaskedDelivery(self._mask, task))
        self.referee = Referee(task, self.pool, seed, item, prompts, quotation_key=quotation_key)
        self._effects = Effects(
            task, self.record, execute, works or {}, draw_order or DrawOrder(seed)
        )
        # `draws` changes the random draws of participants; those of the rule stay as they are
        chance = seed if not draws else Random(f"{seed}|{draws}").getrandbits(48)
        self._bot_knowledge = BotKnowledge(task, item, chance, works or {})
        # Matches of one block share their seed, so that bots are equally able in all of them. Who
        # sits where (`seating`) tells their samples apart.
        self._sampling = f"{seed}|{draws}|{seating}"
        self._prompts, self._always = prompts or {}, standardise == "always"
        self._call, self._circulated = call, 0

    async def play(self) -> Outcome:
        """Play the match to its end, and let observers follow it."""
        outcome = None
        for observer in self._observers:
            observer.begin()
        try:
            outcome = await self._drive_script()
        finally:
            for observer in self._observers:
                observer.end(self.pool, outcome)
        return outcome

    async def _drive_script(self) -> Outcome:
        """Drive the script from effect to effect: it may await the referee and nothing else."""
        script = self.task.play(self.referee, **seats_by_role(self.task, self.cast))
        step: Callable[[], Any] = partial(script.send, None)
        try:
            while True:
                try:
                    effect = step()
                except StopIteration as end:
                    self._check_awaited()
                    return self._outcome("done", "", check_scores(self.task, end.value, self.cast))
                except Forfeit as forfeit:
                    return self._outcome(
                        "aborted", clean_text(str(forfeit)), check_scores(self.task, {}, self.cast)
                    )
                except KeyboardInterrupt:
                    raise
                except TaskError as wrong:
                    line = locate_exception(wrong, file_of_task(self.task))
                    raise TaskError(f"{wrong} ({line})" if line else str(wrong)) from wrong
                # any other exception of a script is a mistake in the task
                except BaseException as wrong:
                    where = f"{self.task.name}, after round {self.referee.round}"
                    fault = describe_exception(wrong, file_of_task(self.task))
                    raise TaskError(f"{where}: `play` failed: {fault}") from wrong
                try:
                    step = partial(script.send, await self._perform(effect))
                except Forfeit as forfeit:
                    step = partial(script.throw, forfeit)
        finally:
            script.close()

    def _perform(self, effect: Effect) -> Awaitable[Any]:
        if isinstance(effect, Ask):
            self._check_awaited(effect)
            return self.conduct((effect,))
        if isinstance(effect, AskTogether):
            self._check_awaited(*effect.asks)
            return self.conduct(effect.asks)
        if isinstance(effect, RunProgram | LookUp):
            self._check_awaited(effect)
            return self._effects.perform(effect, self.referee.round)
        found = type(effect).__name__
        raise TaskError(
            f"{self.task.name}: `play` awaited {found}, but it may only await methods of its "
            "referee"
        )

    async def conduct(self, asks: tuple[Ask[Any], ...]) -> dict[Seat, Any]:
        """One synchronous round in DynaEval's four steps (Definition 1, Algorithm 1)."""
        pool, referee = self.pool, self.referee
        referee.round += 1
        # Selection: everybody's view is frozen before anybody speaks.
        selected = []
        for ask in asks:
            question = self._add_hint(ask.text, ask.expect.hint)
            for seats, words in pool.deliver(ask.seats, question):
                pool.messages.append(Message(referee.round, "ask", None, seats, words))
                for seat in seats:
                    conversation = pool.conversations[seat]
                    conversation.put(words)
                    if ask.examples and conversation.examples is None:
                        examples = tuple(self._with_hint(example) for example in ask.examples)
                        conversation.examples = len(conversation.turns) - 1, examples
            selected += [(seat, ask) for seat in ask.seats]
        # Interaction: all selected seats answer concurrently; none of them can see another's words.
        if len(selected) == 1:
            answers = [await self._answer(*selected[0])]
        else:
            found = await asyncio.gather(
                *(self._answer(seat, ask) for seat, ask in selected), return_exceptions=True
            )
            answers = [answer for answer in found if isinstance(answer, Answer)]
            if faults := [fault for fault in found if isinstance(fault, BaseException)]:
                raise faults[0]
        # Recording: the round closes, and the words enter the pool in the order of the seats.
        for _, messages, violations, disclosing in answers:
            pool.messages += messages
            referee.violations += violations
            for said, spans in disclosing:
                self._mask.add(said, spans)
        self._circulate()
        # Circulation: back to the rule, which decides who sees what, and whether to continue.
        values = {seat: answer.value for (seat, _), answer in zip(selected, answers, strict=True)}
        if silent := [str(seat) for seat, value in values.items() if value is NOTHING]:
            raise Forfeit(f"{' and '.join(silent)} gave no readable reply in round {referee.round}")
        return values

    async def _answer(self, seat: Seat, ask: Ask[Any]) -> Answer:
        """One seat's reply in readable form, after a limited number of attempts."""
        self._call.seat_asked(seat)
        try:
            round, hint, conversation = (
                self.referee.round,
                ask.expect.hint,
                self.pool.conversations[seat],
            )
            messages: list[Message] = []
            violations: list[Violation] = []
            disclosing: list[Disclosure] = []
            # a reader may have its own prompt for this, in another language say
            own: Prompt | None = getattr(ask.expect, "again", None)
            free = self._always and bool(hint)  # the first reply is free, the second takes the form
            first_said = ""
            for attempt in range(ask.attempts + free):
                call = await self._reply(seat, ask, attempt, free and attempt == 0)
                for observer in self._observers:
                    observer.reply(call)
                reply, spans = call.reply, call.masked
                conversation.answer(reply.content, reply.provider_state)
                messages.append(Message(round, "reply", seat, (), None, attempt))
                said = text_of(reply.content)
                if spans:
                    disclosing.append((said, spans))
                if names := describe_spans(said, spans):
                    violations.append(Violation(round, seat, attempt, "identity", names, "masked"))
                last = attempt == ask.attempts + free - 1
                if free and attempt == 0:
                    first_said = said
                    again = self._words(own or FORM, hint=hint, fault="")
                else:
                    reading = read_reply(ask, said, reply.finish == "length", last)
                    if reading.kind:
                        violations.append(
                            Violation(
                                round, seat, attempt, reading.kind, reading.fault, reading.outcome
                            )
                        )
                    if reading.settled:
                        value = with_reply(reading.value, first_said if free else said)
                        return Answer(value, messages, violations, disclosing)
                    again = self._words(
                        own or (SHORTER if reading.kind == "cut" else AGAIN),
                        fault=reading.fault,
                        hint=hint,
                    )
                if not last:
                    again = self._mask.hide_own(again, said, spans)
                    conversation.put(again)
                    messages.append(Message(round, "again", None, (seat,), again, attempt + 1))
            return Answer(ask.default, messages, violations, disclosing)
        finally:
            self._call.seat_answered(seat)

    async def _reply(self, seat: Seat, ask: Ask[Any], attempt: int, free: bool) -> RecordedCall:
        """The reply from the record, otherwise from the participant. It is recorded when this
        returns."""
        conversation, round = self.pool.conversations[seat], self.referee.round
        kept = self.record.call(round, seat, attempt)
        if kept is not None:
            if kept.view_digest != conversation.digest:
                raise ReplayError(
                    f"round {round}, {seat}: the prompt differs from the recorded prompt, "
                    "because the task's rule, a prompt or the random seed has changed"
                )
            return kept
        self._call.check_running()
        if self._effects.is_behind:
            await self._effects.catch_up()
        participant = self.cast[seat]
        bot_knowledge = self._bot_knowledge if participant.sees_item else None
        sampling_seed = blake2b(
            f"{self._sampling}|{seat.key}|{round}|{attempt}".encode(), digest_size=16
        ).digest()
        view = View(
            seat,
            round,
            attempt,
            conversation.turns,
            conversation.digest,
            ask.expect,
            conversation.examples,
            bot_knowledge,
            sampling_seed,
            free,
            conversation.told,
        )
        given = await participant.reply(view, self._call)
        reply = normalise_reply(Reply(given) if isinstance(given, str) else given)
        spans = await self._find_names(text_of(reply.content))
        recorded = RecordedCall(round, seat, attempt, view.digest, reply, time.time(), spans)
        await self.record.append(recorded)
        return recorded

    async def _find_names(self, said: str) -> tuple[Span, ...]:
        """The names in a reply that others do not read. A reply that cannot be searched is hidden
        as a whole: it has been paid for, and is never lost."""
        try:
            if len(said) > LONG:  # a search of many names must not stop other matches
                return tuple(await asyncio.to_thread(self._names.find, said))
            return tuple(self._names.find(said))
        except Exception:
            return (Span(0, len(said), "unknown"),) if said else ()

    def _add_hint(self, text: str, hint: str) -> str:
        """A question with the hint on its form, unless the first reply is free."""
        return f"{text}\n\n{hint}" if hint and not self._always else text

    def _with_hint(self, example: Example) -> Example:
        question = self._add_hint(example.question, example.hint)
        return Example(question, example.answer, continues=example.continues)

    def _words(self, prompt: Prompt, **values: str) -> str:
        return self._prompts.get(prompt.name, prompt).render(values).strip()

    def _check_awaited(self, *awaited: Ask[Any] | RunProgram | LookUp) -> None:
        """Refuse questions that a script created but did not await: they would never be asked."""
        unawaited = self.referee.unawaited
        for effect in awaited:
            unawaited.pop(id(effect), None)
        if unawaited:
            raise TaskError(
                f"{self.task.name}: a call of the referee was not awaited: write `await "
                "referee.ask(…)` (the same for `run` and `consult`)"
            )

    def _outcome(
        self,
        state: Literal["done", "aborted"],
        reason: str,
        scores: dict[Seat, dict[str, float | None]],
    ) -> Outcome:
        self._circulate()
        return Outcome(
            state, reason, scores, self.referee.round, self.referee.violations, self.referee.notes
        )

    def _circulate(self) -> None:
        """Hand the messages of a closed round to the record."""
        messages, self.pool.messages = self.pool.messages, []
        self.record.circulate(messages, self._circulated)
        self._circulated += len(messages)


def collect_task_words(task: Task, item: Any, prompts: Mapping[str, Prompt]) -> str:
    """All text that comes from the task: its parameters, prompts and item."""
    texts = [prompt.text for prompt in {**type(task).prompts(), **prompts}.values()]
    return str((task.params, item, texts))


class ReadResult(NamedTuple):
    """The result of reading one reply: a value that counts, or a fault and its consequence."""

    value: Any
    settled: bool
    kind: str = ""
    fault: str = ""
    outcome: str = ""


def read_reply(ask: Ask[Any], said: str, cut: bool, last: bool) -> ReadResult:
    """Read a reply. If the token limit cut a text, the seat is asked again; other values that can
    still be read are kept."""
    try:
        value = ask.expect.read(said)
    except Unreadable as unreadable:
        kind, fault = unreadable.kind, str(unreadable)
        if (
            kind == Unreadable.kind
            and ask.expect.schema is not None
            and not cut
            and (meant := repair_object(said)) is not None
        ):
            # if the repaired object is wrong too, the first fault counts
            with suppress(Exception):
                return ReadResult(ask.expect.read(meant), True, "repaired", fault, "kept")
    except Exception as wrong:  # a reader that raises has not read the reply
        kind, fault = Unreadable.kind, f"it cannot be read ({type(wrong).__name__})"
    else:
        if not cut:
            return ReadResult(value, True)
        kind, fault = "cut", "the token limit ended the reply"
        if last or not isinstance(value, ReplyText):
            if isinstance(value, ReplyText):
                value.cut = True
            return ReadResult(value, True, kind, fault, "kept")
    outcome = "asked again" if not last else "forfeit" if ask.default is NOTHING else "default"
    return ReadResult(ask.default, False, "cut" if cut else kind, fault, outcome)


def with_reply(value: Any, said: str) -> Any:
    """A value that was read, with the whole reply where it is a part of one."""
    if type(value) is str and value != said:
        value = ReplyText(value)
    if isinstance(value, ReplyText) and value != said.strip():
        value.said = said.strip()
    return value


def normalise_reply(reply: Reply) -> Reply:
    """Make a reply fit for the record: separate thinking from it, limit its length, replace what
    cannot be encoded."""
    content: Content = reply.content
    if isinstance(content, str):
        if len(content) > LONGEST:
            content, reply.finish = content[:LONGEST], "length"
        content, thought = split_thinking(content)
        if thought:
            reply.reasoning = f"{reply.reasoning}\n{thought}".strip()
        reply.content = clean_text(content)
    else:
        reply.content = tuple(replace(part, text=clean_text(part.text)) for part in content)
    reply.reasoning = clean_text(reply.reasoning)
    reply.model_served = clean_text(reply.model_served) if reply.model_served else None
    return reply


def clean_text(text: str) -> str:
    """Replace what neither JSON nor a database can hold: lone surrogates and NULs."""
    if text.isascii():
        return text.replace("\0", "\ufffd") if "\0" in text else text
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
