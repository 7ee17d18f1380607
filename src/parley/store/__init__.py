"""Where runs are kept: what a store offers, and the rows of a run as Python types."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from parley.errors import UsageError
from parley.match.protocol import DeviceSetup
from parley.match.record import RecordedCall
from parley.memory.experiences import Experience
from parley.plans import Marks, MatchSpec
from parley.rules.pool import Seat
from parley.store.config import Config, Identity

if TYPE_CHECKING:
    from parley.memory.feedback import PeopleVerdict, VerdictChoice
    from parley.store.journal import Journal
    from parley.store.pair_votes import VoteStore
    from parley.store.reader import RunReader
    from parley.store.verdict_votes import VerdictVoteStore

FOLDER = "folder:"  # optional prefix of a folder store
# a text that looks like an address of a database: another scheme, a scheme with a typo, parameters
# like `host=…`, or a login like `me:password@`
MISSPELLED = re.compile(
    r".*://|\s*postgres(ql)?\s*([:;]|//)|[^/.][^/]*:.*@"
    r"|(.*\s)?(host|hostaddr|port|dbname|user|password|passfile|service|ssl\w+)\s*=",
    re.IGNORECASE | re.DOTALL,
)
STORE_FORMS = "a store must be a folder or postgresql://USER@HOST/DATABASE"
RUN_FORMS = "a run must be an id, a name, a file or postgresql://USER@HOST/DATABASE#ID"
LONGEST_NAME = 4000  # bytes
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


class RunWatch(Protocol):
    """Notices that a run has changed, without reading it. Use it in one thread at a time."""

    def close(self) -> None: ...

    def has_changed(self) -> bool:
        """Whether the run has changed since this was last asked; `StoreError` if it has
        vanished."""


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


class Store(Protocol):
    """Where runs are kept, and the votes of people on them."""

    @property
    def name(self) -> str:
        """The folder or the address, as it may be shown and typed again: without a password."""

    def find(self, text: str) -> RunRef:
        """A run by its path, its id, a unique beginning or end of its id, its name, or `last`."""

    def find_exact(self, id: str) -> RunRef | None:
        """The run of this store with exactly this id; None if there is none."""

    def refs(self) -> list[RunRef]:
        """All runs, newest first, without reading them."""

    def runs(self) -> Iterator[RunInfo | UnreadableRun]:
        """All runs, newest first."""

    def read(self, ref: RunRef) -> RunReader: ...

    def stamp(self, ref: RunRef) -> str:
        """A text that differs after every change of the run, to cache what was read; empty if the
        run has vanished. It is cheap: the run is not opened."""

    def watch(self, ref: RunRef) -> RunWatch:
        """Follow the changes of a run; `StoreError` if it cannot be opened."""

    async def create(self, run: NewRun) -> Journal:
        """Create a run and take it."""

    async def open(self, ref: RunRef, notify: Callable[[str], None] = lambda said: None) -> Journal:
        """Take a run to play it; `StoreError` if another process plays it. A run of another
        machine is taken over after a minute without a heartbeat; `notify` is called before such a
        wait."""

    def delete(self, ref: RunRef) -> None:
        """Delete a run; `UsageError` if it is running, `StoreError` if it cannot be deleted."""

    def export_run(
        self, ref: RunRef, path: Path, replace: bool, tell: Callable[[str], None]
    ) -> None:
        """Write a run, as it is now, and the votes on its conversations into a new run file,
        completely or not at all. The copy of a run that is being played is an interrupted run.
        `replace`: an existing file may be replaced. `tell` is called with the progress."""

    def import_run(self, path: Path, tell: Callable[[str], None]) -> RunRef:
        """Add the run in a run file to this store, with the votes that the file carries,
        completely or not at all. Refuses a run that the store has, and a changed record."""

    def open_votes(self, refs: Sequence[RunRef] = (), read_only: bool = False) -> VoteStore:
        """The votes on these runs of this store, or on all its runs."""

    def open_verdict_votes(
        self, ref: RunRef | None = None, read_only: bool = False
    ) -> VerdictVoteStore:
        """The votes on single conversations of a run of this store, or of all its runs."""

    def read_verdict_votes(self, ref: RunRef, run: str) -> VerdictVotes:
        """The votes on single conversations of the run with this id; none where nobody has
        voted."""

    def check(self) -> StoreFacts:
        """Whether runs can be written here."""


def is_address(text: str) -> bool:
    """Whether a text is the address of a PostgreSQL store."""
    scheme, separator, _ = text.partition("://")
    return bool(separator) and scheme.lower() in ("postgresql", "postgres")


def passwords_in(text: str) -> list[str]:
    """The secrets in the addresses of databases in a text; `UsageError` if one of the addresses
    cannot be read."""
    from parley.store.postgres.addresses import secrets_in  # late: few need it

    return list(secrets_in(text))


def refuse_misspelled(text: str, wanted: str = STORE_FORMS) -> None:
    """Refuse a text that was probably meant as an address. It may contain a password, so the error
    does not repeat it."""
    if MISSPELLED.match(text):
        raise UsageError(
            f"{wanted}: correct the address (for a path with such a name, write ./ before it)"
        )


def open_store(given: str | Path | None = None) -> Store:
    """The store at a place: as given, else `PARLEY_STORE`, else the folder `runs/` here."""
    place = (str(given) if given is not None else "") or os.environ.get("PARLEY_STORE") or "runs"
    if is_address(place):
        from parley.store.postgres.database import PostgresStore  # late: it loads the driver

        return PostgresStore.at(place)
    from parley.store.sqlite.folder import FolderStore  # late: it loads SQLite

    return FolderStore.at(place)


def name_store(given: str | Path | None = None) -> str:
    """The store at a place as it may be shown: without a password."""
    return open_store(given).name


def find_sqlite_version() -> str:
    """The version of SQLite, which writes run files."""
    from parley.store.sqlite.schema import SQLITE_VERSION  # late: it loads SQLite

    return SQLITE_VERSION


def refuse_long_name(text: str) -> None:
    """Refuse a text that cannot name a run."""
    if len(os.fsencode(text)) > LONGEST_NAME:
        refuse_misspelled(text, RUN_FORMS)
        raise UsageError(f"{text[:40]}… is too long for the name of a run")


def find_run(text: str | Path, store: str | Path | None = None) -> RunRef:
    """A run in a store, by anything that `Store.find` takes."""
    return open_store(store).find(str(text))


def read_run(ref: RunRef) -> RunReader:
    """A run, opened for reading."""
    return open_store(ref.store).read(ref)


def open_votes(refs: Sequence[RunRef], read_only: bool = False) -> VoteStore:
    """The votes on these runs, in the store of the runs."""
    return open_store(refs[0].store).open_votes(refs, read_only)


def open_verdict_votes(ref: RunRef) -> VerdictVoteStore:
    """The votes on single conversations of a run, in the store of the run, to add votes."""
    return open_store(ref.store).open_verdict_votes(ref)


def read_verdict_votes(reader: RunReader) -> VerdictVotes:
    """The votes on single conversations of a run; none where nobody has voted."""
    ref = reader.info.ref
    return open_store(ref.store).read_verdict_votes(ref, reader.info.id)
