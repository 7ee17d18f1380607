"""The message pool: the only channel between seats, and the record of a match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, overload

import orjson

if TYPE_CHECKING:
    from parley.rules.readers import Reader

Speaker: TypeAlias = Literal["system", "user", "assistant"]


class Seat(NamedTuple):
    """An anonymous place in a match. The only seat of a role has the number 0."""

    role: str
    number: int = 0

    def __str__(self) -> str:
        name = self.role.replace("_", " ")
        return (
            f"{name.removesuffix('s')} {self.number}".capitalize()
            if self.number
            else name.capitalize()
        )

    @property
    def key(self) -> str:
        """The name of this seat in records."""
        return f"{self.role}.{self.number}" if self.number else self.role

    @classmethod
    def of(cls, key: str) -> Seat:
        """The seat with this name in records."""
        role, dot, number = key.rpartition(".")
        return cls(role, int(number)) if dot else cls(number)


def to_plain_data(value: Any) -> Any:
    """Convert a value to plain data for a record: seats to their keys, tuples to lists."""
    if isinstance(value, Seat):
        return value.key
    if isinstance(value, dict):
        return {
            key.key if isinstance(key, Seat) else str(key): to_plain_data(inner)
            for key, inner in value.items()
        }
    return [to_plain_data(inner) for inner in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class ContentPart:
    """One piece of a message that is more than plain text."""

    type: str
    text: str


Content: TypeAlias = str | tuple[ContentPart, ...]


def text_of(content: Content) -> str:
    """The text of a message without its other content."""
    return content if isinstance(content, str) else "".join(part.text for part in content)


@dataclass(slots=True, eq=False)
class Turn:
    """One turn of a conversation."""

    role: Speaker
    content: Content
    provider_state: Any = field(default=None, repr=False)

    def canonical(self) -> bytes:
        """The form that digests are made of."""
        return orjson.dumps({"role": self.role, "content": self.content})


class Example(NamedTuple):
    """One turn of a demonstration: a question and a good answer.

    `hint` describes the form of the answer. The seat sees it below the question, unless the first
    reply is free. A demonstration of several turns is several of these; all but the first have
    `continues` set.
    """

    question: str
    answer: str
    hint: str = ""
    continues: bool = False


def split_demonstrations(examples: Sequence[Example]) -> list[tuple[Example, ...]]:
    """Group examples into demonstrations, each from its first turn to its last."""
    found: list[list[Example]] = []
    for example in examples:
        if example.continues and found:
            found[-1].append(example)
        else:
            found.append([example])
    return list(map(tuple, found))


class BotKnowledge(NamedTuple):
    """What a bot knows beyond its view, so that a test can plant abilities."""

    task: Any
    item: Any
    seed: int
    works: Mapping[str, Any] = {}


class View(Sequence[dict[str, str]]):
    """Everything a seat can see when it is asked: its own conversation, frozen.

    It reads as a list of {"role", "content"} messages; `text` is the last thing said to the seat.
    """

    __slots__ = (
        "_length",
        "_turns",
        "attempt",
        "bot_knowledge",
        "digest",
        "examples",
        "expect",
        "free",
        "round",
        "sampling_seed",
        "seat",
        "told",
    )

    def __init__(
        self,
        seat: Seat,
        round: int,
        attempt: int,
        turns: list[Turn],
        digest: bytes,
        expect: Reader[Any],
        examples: tuple[int, tuple[Example, ...]] | None,
        bot_knowledge: BotKnowledge | None = None,
        sampling_seed: bytes = b"",
        free: bool = False,
        told: str = "",
    ) -> None:
        self.seat, self.round, self.attempt, self.expect = seat, round, attempt, expect
        # Turns are only ever added at the end, so a length freezes them without a copy.
        self._turns, self._length, self.digest = turns, len(turns), digest
        # The random seed sent to a model: the same whenever the match is played, and it reveals
        # nothing.
        self.examples, self.bot_knowledge, self.sampling_seed = (
            examples,
            bot_knowledge,
            sampling_seed,
        )
        # The reply may take any form; `expect` is asked for afterwards, in a second request.
        self.free = free
        # What the seat was told before its first question; its first turn begins with it.
        self.told = told

    def with_examples(self, examples: Sequence[Example], lessons: str = "") -> View:
        """The same view with other demonstrations. What the seat was told before the question
        appears once, before the first demonstration; `lessons` appear before the question."""
        at = 0 if self.examples is None else self.examples[0]
        turns, shown = self.turns, tuple(examples)
        words = asked = text_of(turns[at].content)
        if shown and at == 0 and self.told and words.startswith(self.told):
            words = words[len(self.told) :].lstrip("\n")
            first = shown[0]
            shown = (first._replace(question=f"{self.told}\n\n{first.question}"), *shown[1:])
        if lessons:
            words = f"{lessons}\n\n{words}"
        if words != asked:
            turns[at] = Turn("user", words)
        return View(
            self.seat,
            self.round,
            self.attempt,
            turns,
            self.digest,
            self.expect,
            (at, shown) if shown else None,
            self.bot_knowledge,
            self.sampling_seed,
            self.free,
        )

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The schema of the reply, if this request asks for one."""
        return None if self.free else self.expect.schema

    @property
    def turns(self) -> list[Turn]:
        """The conversation as the seat sees it, oldest first."""
        return self._turns[: self._length]

    @property
    def text(self) -> str:
        """The last thing said to the seat."""
        return text_of(self._turns[self._length - 1].content)

    @property
    def reply_count(self) -> int:
        """The number of replies that the seat has given so far."""
        return sum(turn.role == "assistant" for turn in self.turns)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> dict[str, str]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, str]]: ...

    def __getitem__(self, index: int | slice) -> dict[str, str] | list[dict[str, str]]:
        if isinstance(index, slice):
            return [as_message(turn) for turn in self.turns[index]]
        return as_message(self.turns[index])

    def __iter__(self) -> Iterator[dict[str, str]]:
        return (as_message(turn) for turn in self.turns)


def as_message(turn: Turn) -> dict[str, str]:
    """A turn in the format of chat APIs."""
    return {"role": turn.role, "content": text_of(turn.content)}


Kind: TypeAlias = Literal["tell", "ask", "again", "reply"]


class Message(NamedTuple):
    """One entry of the record. The text of a reply is stored with its call, not here."""

    round: int
    kind: Kind
    sender: Seat | None  # None is the referee
    audience: tuple[Seat, ...]
    content: Content | None
    attempt: int = 0


class SeatHistory:
    """One seat's conversation as it grows: turns, messages not yet shown, and a running digest."""

    __slots__ = ("digest", "examples", "told", "turns", "waiting")

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.waiting: list[str] = []
        self.told = ""  # before the first question
        self.digest = b""
        self.examples: tuple[int, tuple[Example, ...]] | None = None

    def add(self, turn: Turn) -> None:
        self.turns.append(turn)
        self.digest = blake2b(self.digest + turn.canonical(), digest_size=16).digest()

    def put(self, question: str) -> None:
        """Put waiting messages and this question into one user turn, so that roles alternate."""
        if not self.turns and self.waiting:
            self.told = "\n\n".join(filter(None, self.waiting))
        self.waiting.append(question)
        self.add(Turn("user", "\n\n".join(filter(None, self.waiting))))
        self.waiting.clear()

    def answer(self, content: Content, provider_state: Any = None) -> None:
        self.add(Turn("assistant", content, provider_state))


# Which seats read which text of the referee; all read the same unless something is masked.
Delivery: TypeAlias = Callable[[tuple[Seat, ...], str], list[tuple[tuple[Seat, ...], str]]]


def deliver_unchanged(seats: tuple[Seat, ...], text: str) -> list[tuple[tuple[Seat, ...], str]]:
    """All seats read the same text."""
    return [(seats, text)]


class Pool:
    """Everything said in a match, in order, and who may read it."""

    __slots__ = ("conversations", "deliver", "messages")

    def __init__(self, seats: Iterable[Seat], deliver: Delivery = deliver_unchanged) -> None:
        self.messages: list[Message] = []
        self.conversations = {seat: SeatHistory() for seat in seats}
        self.deliver = deliver

    def tell(self, round: int, seats: tuple[Seat, ...], text: str) -> None:
        """Show a text of the referee to these seats only."""
        for group, words in self.deliver(seats, text):
            self.messages.append(Message(round, "tell", None, group, words))
            for seat in group:
                self.conversations[seat].waiting.append(words)
