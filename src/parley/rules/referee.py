"""What a rule can do: tell, ask, look things up, run code, note, quote and draw random numbers.
Nothing here performs I/O."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, Generic, TypeVar, overload

import orjson

from parley.errors import TaskError, describe_type
from parley.rules.notes import Note, WrittenNote, facts_of
from parley.rules.pool import Example, Pool, Seat, text_of, to_plain_data
from parley.rules.prompts import Prompt, round_numbers
from parley.rules.quotations import draw_mark, mark_quotation
from parley.rules.readers import Reader, ReplyText, Text
from parley.rules.task import Task

T = TypeVar("T")
D = TypeVar("D")
NOTHING: Any = object()
ATTEMPTS = 3


@dataclass(slots=True, eq=False)
class Ask(Generic[T]):
    """One synchronous round. Awaiting it hands the round to the match that runs the script."""

    seats: tuple[Seat, ...]
    text: str
    expect: Reader[Any]
    default: Any
    examples: tuple[Example, ...]
    attempts: int
    single: bool

    def __await__(self) -> Generator[Effect, Any, T]:
        values = yield self
        return self.select_values(values)

    def select_values(self, values: Mapping[Seat, Any]) -> T:
        """Pick the values of this question's seats from all values of a round."""
        answer: Any = (
            values[self.seats[0]] if self.single else {seat: values[seat] for seat in self.seats}
        )
        return answer  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, eq=False)
class AskTogether:
    """Different questions in one synchronous round."""

    asks: tuple[Ask[Any], ...]

    def __await__(self) -> Generator[Effect, Any, tuple[Any, ...]]:
        values = yield self
        return tuple(ask.select_values(values) for ask in self.asks)


@dataclass(frozen=True, slots=True, eq=False)
class RunProgram:
    """A program to run in isolation; its result is data, recorded like a reply."""

    program: Mapping[str, Any]

    def __await__(self) -> Generator[Effect, Any, Any]:
        result = yield self
        return result


@dataclass(frozen=True, slots=True, eq=False)
class LookUp:
    """A question to a work of reference. Its answer is data and recorded like a reply, so a replay
    does not need the work."""

    work: str
    question: str
    given: tuple[Any, ...]

    def __await__(self) -> Generator[Effect, Any, Any]:
        answer = yield self
        return answer


Effect = Ask[Any] | AskTogether | RunProgram | LookUp


@dataclass(frozen=True, slots=True)
class Violation:
    """A reply that breaks the format or the rule, and what followed."""

    round: int
    seat: Seat
    attempt: int
    kind: str
    detail: str
    outcome: str


class Referee:
    """Acts for the rule: it knows seats, never the participants in them."""

    def __init__(
        self,
        task: Task,
        pool: Pool,
        seed: int,
        item: Any = None,
        prompts: Mapping[str, Prompt] | None = None,
        *,
        quotation_key: bytes,
    ) -> None:
        self.item = item
        self.round = 0
        self.notes: list[WrittenNote] = []
        self.violations: list[Violation] = []
        self.unawaited: dict[int, Ask[Any] | RunProgram | LookUp] = {}
        self._pool, self._prompts, self._params = pool, prompts or {}, task.params
        self._seed, self._quotation_key, self._quoted = seed, quotation_key, 0

    @cached_property
    def rng(self) -> Random:
        """The only source of random numbers in a rule; seeded per match."""
        return Random(self._seed)

    def tell(self, to: Seat | Sequence[Seat], text: str) -> None:
        """Show a message to these seats only, together with their next question."""
        self._pool.tell(self.round, self._seats(to), self._words(text))

    @overload
    def ask(
        self, to: Seat, text: str, *, examples: Iterable[Example] = ..., attempts: int = ...
    ) -> Ask[ReplyText]: ...
    @overload
    def ask(
        self,
        to: Seat,
        text: str,
        *,
        expect: Reader[T],
        examples: Iterable[Example] = ...,
        attempts: int = ...,
    ) -> Ask[T]: ...
    @overload
    def ask(
        self,
        to: Seat,
        text: str,
        *,
        expect: Reader[T],
        default: D,
        examples: Iterable[Example] = ...,
        attempts: int = ...,
    ) -> Ask[T | D]: ...
    @overload
    def ask(
        self,
        to: Sequence[Seat],
        text: str,
        *,
        examples: Iterable[Example] = ...,
        attempts: int = ...,
    ) -> Ask[dict[Seat, ReplyText]]: ...
    @overload
    def ask(
        self,
        to: Sequence[Seat],
        text: str,
        *,
        expect: Reader[T],
        examples: Iterable[Example] = ...,
        attempts: int = ...,
    ) -> Ask[dict[Seat, T]]: ...
    @overload
    def ask(
        self,
        to: Sequence[Seat],
        text: str,
        *,
        expect: Reader[T],
        default: D,
        examples: Iterable[Example] = ...,
        attempts: int = ...,
    ) -> Ask[dict[Seat, T | D]]: ...

    def ask(
        self,
        to: Seat | Sequence[Seat],
        text: str,
        *,
        expect: Reader[Any] | None = None,
        default: Any = NOTHING,
        examples: Iterable[Example] = (),
        attempts: int = ATTEMPTS,
    ) -> Ask[Any]:
        """Ask these seats at once; nobody sees a reply before all have replied.

        After an unreadable reply the seat is asked again, up to `attempts` times in all. Then
        `default` is the seat's value. Without a default the match is aborted, unless the script
        catches `Forfeit`.
        """
        if attempts < 1:
            raise TaskError(f"attempts must be at least 1, not {attempts}")
        ask: Ask[Any] = Ask(
            self._seats(to),
            self._words(text),
            expect or Text(),
            default,
            tuple(examples),
            attempts,
            isinstance(to, Seat),
        )
        self.unawaited[id(ask)] = ask
        return ask

    def together(self, *asks: Ask[Any]) -> AskTogether:
        """Ask different questions in one round."""
        seats = [seat for ask in asks for seat in ask.seats]
        if len(set(seats)) != len(seats):
            raise TaskError(
                "`together` was given two questions for the same seat, but a seat can be asked "
                "only once per round: use two rounds"
            )
        return AskTogether(asks)

    def run(self, program: Mapping[str, Any]) -> RunProgram:
        """Run a program in the sandbox; the result is data."""
        run = RunProgram(program)
        self.unawaited[id(run)] = run
        return run

    def consult(self, work: str, question: str, *given: Any) -> LookUp:
        """Look something up in a work that the task names in `works()`; the answer is data."""
        consult = LookUp(work, question, given)
        self.unawaited[id(consult)] = consult
        return consult

    def note(self, note: Note | None = None, /, **facts: Any) -> None:
        """Write into the record: a declared `Note`, which analyses read, or free facts for people.

        Participants never see it.
        """
        if note is not None:
            if facts or not isinstance(note, Note):
                raise TaskError(
                    "referee.note takes either one `Note` or facts by name, "
                    "like referee.note(coins=3)"
                )
            facts = facts_of(note)
        if "round" in facts:
            raise TaskError(
                "a note cannot have a fact named `round`, because every note records its "
                "round: give the fact another name"
            )
        try:
            # the same data as a reader of the record gets
            found = orjson.loads(orjson.dumps(to_plain_data(facts)))
            if note is not None:
                type(note).from_facts(found)
        except TypeError as wrong:
            raise TaskError(
                f"a note can contain only plain data (text, numbers, lists and mappings): {wrong}"
            ) from None
        except ValueError as wrong:
            raise TaskError(f"a note does not match the types of its class: {wrong}") from None
        self.notes.append(WrittenNote(self.round, found, None if note is None else note.kind))

    def fault(self, seat: Seat, kind: str, detail: str = "") -> None:
        """Record that a seat broke a rule of the game; the script decides what follows."""
        if not isinstance(kind, str) or not kind or not isinstance(detail, str):
            raise TaskError(
                "referee.fault needs two texts, a kind (not empty) and a detail, "
                f"not {kind!r} and {detail!r}"
            )
        (seat,) = self._seats(seat)
        self.violations.append(
            Violation(self.round, seat, 0, self._words(kind), self._words(detail), "ruled")
        )

    def render(self, prompt: Prompt, /, **values: Any) -> str:
        """A prompt's text, as configured, with the task's parameters and these values filled in.

        Parameters are not rounded. Numbers among the values are rounded to two decimals, those
        between -1 and 1 to three significant digits.
        """
        values = {name: round_numbers(value) for name, value in values.items()}
        return self._prompts.get(prompt.name, prompt).render({**self._params, **values})

    def quote(self, text: str | None, seat: Seat | str | None = None) -> str:
        """Quote what a seat, or somebody by name, said: between marks that nobody can predict,
        because they come from a secret of the run.

        Anything inside that looks like such a mark, forged or quoted earlier, is changed. None
        becomes a sentence that says nothing readable was given. A text that the length limit has
        cut is labelled as such.
        """
        if text is None:
            return f"({seat or 'Somebody'} gave nothing that could be read.)"
        cut = "\n(It was cut off by the limit of length.)" if getattr(text, "cut", False) else ""
        self._quoted += 1
        mark = draw_mark(self._quotation_key, self._quoted)
        who = f"{seat} said" if seat is not None else "somebody said"
        return mark_quotation(mark, who, text) + cut

    def quote_conversation(self, seat: Seat) -> str:
        """Quote everything a seat has been shown and has replied so far."""
        (seat,) = self._seats(seat)
        return "\n\n".join(
            self.quote(text_of(turn.content), seat if turn.role == "assistant" else "The referee")
            for turn in self._pool.conversations[seat].turns
        )

    def _seats(self, to: Seat | Sequence[Seat]) -> tuple[Seat, ...]:
        known = self._pool.conversations
        if isinstance(to, Seat) and to in known:
            return (to,)
        seats = (to,) if isinstance(to, Seat) else to
        if isinstance(seats, set | frozenset):
            raise TaskError("the seats were given as a set, which has no stable order: use a list")
        seats = tuple(seats)
        for seat in seats:
            if seat not in known:
                raise TaskError(
                    f"this match has no seat {str(seat)!r}; its seats are "
                    f"{', '.join(map(str, known))}"
                )
        if len(set(seats)) != len(seats) or not seats:
            raise TaskError(
                "expected one or more different seats, found "
                f"{', '.join(map(str, seats)) or 'none'}"
            )
        return seats

    def _words(self, text: Any) -> str:
        if not isinstance(text, str):
            raise TaskError(f"the referee can send only text, not {describe_type(text)}")
        # no record holds lone surrogates
        return text if text.isascii() else text.encode("utf-8", "replace").decode()
