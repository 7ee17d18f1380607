"""The rows of a run, and of votes, as Python types."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from parley.match.protocol import DeviceSetup
from parley.match.record import RecordedCall
from parley.memory.experiences import Experience
from parley.plans import Marks, MatchSpec
from parley.rules.pool import Seat
from parley.store.address_forms import is_address
from parley.store.config import Config, Identity

if TYPE_CHECKING:
    from parley.memory.feedback import PeopleVerdict, VerdictChoice

ENDED = ("done", "aborted")  # states of matches whose scores count
NOBODY = "no worker plays this run"  # why a shared run is interrupted
WAITING = "waiting_for_votes"  # the status of a run that stopped until people have voted


@dataclass(frozen=True)
class RunRef:
    """A reference to a run, which only its store can resolve."""

    store: str  # what `open_store` takes: "folder:runs"
    id: str
    location: str  # what a user types to name it again: runs/ID.parley

    @property
    def path(self) -> Path | None:
        """The file of the run; None if it is in a database."""
        return None if is_address(self.location) else Path(self.location)


@dataclass(frozen=True)
class RunInfo:
    """The facts of a run that do not need its matches."""

    ref: RunRef
    id: str
    created: float  # seconds since 1970
    config: Config
    identity: Identity
    state: str  # running, done, stopped or failed
    status: str | None  # why it stopped, in one word
    reason: str | None  # the same in a sentence
    planned: int  # matches known so far
    digest: str = ""  # of the whole record when it last stopped; empty while it is running


HistoryKind: TypeAlias = Literal["began", "opened", "settings", "prices", "sealed"]


class HistoryEntry(NamedTuple):
    """Something that happened to a run as a whole. Entries form a chain and are never removed."""

    number: int
    at: float  # seconds since 1970
    kind: HistoryKind
    facts: Mapping[str, Any]
    digest: str  # of this entry and all before it


class WorkerRow(NamedTuple):
    """A process that plays, or has played, matches of a shared run."""

    number: int
    host: str
    pid: int
    state: str  # alive, left or dead
    calls: int
    ended: int  # matches that it played to their end
    playing: int  # matches that it plays now


@dataclass(frozen=True)
class UnreadableRun:
    """A run in the store that cannot be read."""

    ref: RunRef
    reason: str


@dataclass(frozen=True, slots=True)
class MatchRow:
    """One match: its plan and its state."""

    number: int
    block: str
    item: str | None
    repeat: int
    seed: int
    seats: Mapping[Seat, str]  # alias by seat
    unscored: frozenset[Seat]  # seats that only complete the match: their scores do not count
    state: str
    reason: str | None
    rounds: int | None
    began: float | None
    ended: float | None
    stage: int = 0  # of the plan `evolve`; 0: the standard stage
    arm: str = ""  # the arm of the plan `evolve`

    @property
    def has_ended(self) -> bool:
        """Whether it was played to its end, so that its scores count."""
        return self.state in ENDED

    @property
    def spec(self) -> MatchSpec:
        """The match as it was planned."""
        return MatchSpec(
            self.number,
            self.block,
            self.item,
            self.repeat,
            self.seed,
            self.seats,
            self.unscored,
            self.stage,
            self.arm,
        )

    def to_dict(self) -> dict[str, Any]:
        """The form that `Result.matches` has: seats by their keys."""
        return {
            "number": self.number,
            "block": self.block,
            "item": self.item,
            "repeat": self.repeat,
            "seed": self.seed,
            "seats": {seat.key: alias for seat, alias in self.seats.items()},
            "unscored": sorted(seat.key for seat in self.unscored),
            "state": self.state,
            "reason": self.reason,
            "rounds": self.rounds,
            "began": self.began,
            "ended": self.ended,
            "stage": self.stage,
            "arm": self.arm,
        }


class SeatingCount(NamedTuple):
    """How many matches of one stage and arm on one item, or in one block without an item, had the
    same models in the same seats."""

    stage: int
    arm: str
    place: str  # "item NAME" or "block NAME"
    seats: Mapping[Seat, str]
    matches: int


@dataclass(frozen=True, slots=True)
class WholeMatch:
    """Everything that is on record for one match."""

    match: MatchRow
    calls: Sequence[RecordedCall]  # by round, seat and attempt
    messages: Sequence[Mapping[str, Any]]  # in order; replies have the text of their call
    effects: Mapping[tuple[int, int], tuple[bytes, Any]]  # by round and number
    scores: Mapping[Seat, Mapping[str, float | None]]  # by metric
    violations: Sequence[ViolationRow]
    notes: Sequence[NoteRow]


class Score(NamedTuple):
    """One seat's value of one metric in one match."""

    match: int
    block: str
    seat: Seat
    alias: str
    metric: str
    value: float | None
    unscored: bool = False  # the seat only completes the match: its score does not count


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A note that a rule wrote in one match."""

    match: int
    round: int
    kind: str | None  # None: free facts
    facts: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The form that `Result.matches` and `show --json` have."""
        return {"round": self.round, **self.facts}


@dataclass(frozen=True, slots=True)
class ViolationRow:
    """A reply that broke the required format or a rule, and the outcome."""

    match: int
    alias: str
    round: int
    seat: Seat
    attempt: int
    kind: str
    detail: str
    outcome: str

    def to_dict(self) -> dict[str, Any]:
        """The form that `Result.matches` and `show --json` have."""
        return {
            "match": self.match,
            "alias": self.alias,
            "round": self.round,
            "seat": self.seat.key,
            "attempt": self.attempt,
            "kind": self.kind,
            "detail": self.detail,
            "outcome": self.outcome,
        }


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Calls and tokens of one alias in one seat under one served model name; None if the endpoint
    did not count them."""

    alias: str
    seat: Seat
    model_served: str | None
    calls: int
    counted: int  # calls whose input and output tokens are both known
    partly_counted: int  # calls of which at least one of the two is known
    smallest: int | None  # input tokens of the smallest call
    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    tokens_written: int | None


class RecentCall(NamedTuple):
    """A call without its text, to follow a run."""

    match: int
    seat: Seat
    alias: str
    round: int
    latency: float | None  # seconds; None if it was not measured
    at: float  # when the reply was recorded, in seconds since 1970
    match_ended: float | None  # when its match ended; None if it has not


class EndpointRecord(NamedTuple):
    """How the endpoint of a model answers, as last recorded."""

    refused: int = 0  # requests that it rejected, for example by HTTP 429
    waiting: int = 0  # calls that wait because it is down


class MedianLatency(NamedTuple):
    """The median latency of some calls in seconds, and how many calls have a known latency."""

    seconds: float
    calls: int


class DeviceTime(NamedTuple):
    """The time that a device worked for a model that Parley itself runs."""

    alias: str
    setup: DeviceSetup
    calls: int
    seconds: float
    tokens_in: int | None
    tokens_out: int | None
    untimed: int  # calls of the model whose device and time are unknown


class StageUsage(NamedTuple):
    """Calls and tokens in one stage and arm of the plan `evolve`."""

    stage: int
    arm: str
    usage: UsageRow


class DigestFault(NamedTuple):
    """A place where the record of a run does not match its digests."""

    match: int | None  # None: the run as a whole
    detail: str


@dataclass(frozen=True)
class StoredPart:
    """The stored result of an analysis: derived data, which may be replaced."""

    name: str
    version: str
    schema: str  # JSON schema of `data`
    data: str  # JSON
    figures: str  # JSON


StoredItem = tuple[str, bytes]  # an item's id, and the item as JSON


@dataclass(frozen=True)
class CopiedMatch:
    """A match that is rejudged: what is copied from the record of its run."""

    spec: MatchSpec
    calls: Sequence[RecordedCall]
    effects: Mapping[tuple[int, int], tuple[bytes, Any]]  # by round and number
    scores: Marks
    judge: str  # the run that these scores come from
    people: Sequence[PeopleVerdict] = ()  # the votes of people on its seats


@dataclass(frozen=True)
class NewRun:
    """A run before its first match. It must not contain secrets but that of its quotations."""

    id: str
    config: Config
    identity: Mapping[str, Any]
    items: Sequence[StoredItem] = ()
    copied: Iterable[CopiedMatch] = ()
    transferred: Sequence[Experience] = ()  # experiences of another run to start with
    # from which the marks of quotations come; no model and no output shows it. The function is
    # looked up for each run, so that tests can replace it.
    quotation_secret: str = field(default_factory=lambda: draw_quotation_secret(), repr=False)


def draw_quotation_secret() -> str:
    """A new secret from which the marks of a run's quotations come, in hexadecimal."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class StoreFacts:
    """The facts of a store that `parley doctor` shows."""

    location: str
    filesystem: str
    state: str  # ready, or what is wrong


class Study(NamedTuple):
    """The pairs of conversations that were sampled from a set of runs."""

    id: int
    runs: tuple[str, ...]
    seed: int
    ties: bool  # whether people may say that both are equally good


class Annotator(NamedTuple):
    """A person who votes in a study."""

    id: int
    study: int
    name: str


class Invitation(NamedTuple):
    """A personal link: the study that it is for, the person, and whether it has ended."""

    study: Study
    who: Annotator
    ended: bool


# votes that stand, by match and seat, each by the name of the person
VerdictVotes: TypeAlias = "dict[tuple[int, Seat], dict[str, VerdictChoice]]"


class VerdictInvitation(NamedTuple):
    """A personal link for votes on single conversations of a run."""

    run: str
    annotator: str
    ended: bool
