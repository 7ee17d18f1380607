"""What is kept of a run, and how it is read back: the protocols, and the rows as Python types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from parley.match.record import Record, RecordedCall
from parley.memory.experiences import Experience, Recalled
from parley.memory.interactions import RecordedMatch
from parley.plans import Marks, MatchSpec
from parley.rules.pool import Seat
from parley.store.config import Config, Identity

if TYPE_CHECKING:
    from parley.match.match import Outcome
    from parley.statistics.preferences import ConversationPair, Preference

FOLDER = "folder:"  # how the place of a store that is a folder may begin
ENDED = ("done", "aborted")  # states of matches whose scores count


@dataclass(frozen=True)
class RunRef:
    """A run in its store. Only the store knows how to find it by this."""

    store: str  # what `open_store` takes: "folder:runs"
    id: str
    location: str  # what a user types to name it again: runs/ID.parley


@dataclass(frozen=True)
class RunInfo:
    """What is known of a run without reading any of its matches."""

    ref: RunRef
    id: str
    created: float  # seconds since 1970
    config: Config
    identity: Identity
    state: str  # running, done, stopped or failed
    status: str | None  # why it stopped, in one word
    reason: str | None  # the same in a sentence
    planned: int  # matches known so far
    notes_without_kinds: bool = False  # recorded before notes had a kind
    keeps_digests: bool = False  # it began with digests; older files have none
    digest: str = ""  # of everything on record when it last stopped; empty while it is played


@dataclass(frozen=True)
class UnreadableRun:
    """A run that is in the store and cannot be read."""

    ref: RunRef
    reason: str


@dataclass(frozen=True, slots=True)
class MatchRow:
    """One match: as it was planned, and how it stands."""

    number: int
    block: str
    item: str | None
    repeat: int
    seed: int
    seats: Mapping[Seat, str]  # alias by seat
    idle: frozenset[Seat]  # seats that only fill the table: their scores do not count
    state: str
    reason: str | None
    rounds: int | None
    began: float | None
    ended: float | None
    stage: int = 0  # the round of a run that evolves; 0: the standard one
    arm: str = ""  # the arm that it belongs to

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
            self.idle,
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
            "idle": sorted(seat.key for seat in self.idle),
            "state": self.state,
            "reason": self.reason,
            "rounds": self.rounds,
            "began": self.began,
            "ended": self.ended,
            "stage": self.stage,
            "arm": self.arm,
        }


class Score(NamedTuple):
    """One seat's value of one metric in one match."""

    match: int
    block: str
    seat: Seat
    alias: str
    metric: str
    value: float | None
    idle: bool = False  # the seat only filled the table: its score does not count


class ScoreCell(NamedTuple):
    """Whose scores a sum is of."""

    role: str
    alias: str
    metric: str


class ScoreSum(NamedTuple):
    """The scores of one cell in one block, added up."""

    n: int
    total: float
    missing: int  # scores without a value


@dataclass(frozen=True)
class BlockScores:
    """The sums of a block of which every match has ended; idle seats do not count."""

    block: str
    cells: Mapping[ScoreCell, ScoreSum]


@dataclass(frozen=True, slots=True)
class NoteRow:
    """What a rule wrote down in one match."""

    match: int
    round: int
    kind: str | None  # None: free facts, or a note of an older file
    facts: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The form that `Result.matches` and `show --json` have."""
        return {"round": self.round, **self.facts}


@dataclass(frozen=True, slots=True)
class ViolationRow:
    """A reply that broke a rule or its form, and what came of it."""

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
    """Calls and tokens of one alias in one seat under one served name; what endpoints did not
    count is None."""

    alias: str
    seat: Seat
    model: str | None  # the name it was served under
    calls: int
    counted: int  # calls whose input and output tokens are both known
    partly_counted: int  # calls of which at least one of the two is known
    smallest: int | None  # input tokens of the smallest call
    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    tokens_written: int | None


class StageUsage(NamedTuple):
    """Calls and tokens in one stage and arm of a run that evolves."""

    stage: int
    arm: str
    usage: UsageRow


class DigestFault(NamedTuple):
    """A place where what a run holds is not what its digests were taken of."""

    match: int | None  # None: the run as a whole
    detail: str


@dataclass(frozen=True)
class StoredPart:
    """What an analysis computed when the run ended: derived data, which may be replaced."""

    name: str
    version: str
    schema: str  # JSON schema of `data`
    data: str  # JSON
    figures: str  # JSON


class RunReader(Protocol):
    """One run at one moment, however long it is read. Use it as a context manager.

    What cannot be read, or is not what a run holds, raises `StoreError`.
    """

    @property
    def info(self) -> RunInfo: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        wrong: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def items(self) -> list[dict[str, Any]]:
        """The items that the run is played on, as they were when it began."""

    def counts(self) -> dict[str, int]:
        """Matches by state."""

    def match(self, number: int) -> MatchRow | None: ...

    def matches(self) -> Iterator[MatchRow]:
        """All matches known so far, by number."""

    def scores(self, judge: str = "") -> Iterator[Score]:
        """Every score of every match that has ended, by match, seat and metric. `judge`: those that
        another run gave."""

    def scores_of(self, number: int) -> dict[Seat, dict[str, float | None]]:
        """The scores of one match, by seat and metric, also if it has not ended."""

    def scores_by_match(self) -> dict[int, Marks]:
        """The scores of every match that has ended, by match."""

    def blocks(self) -> Iterator[BlockScores]:
        """Sums by cell, one finished block at a time."""

    def orphan_scores(self) -> list[int]:
        """Matches that have scores but are not among the run's."""

    def notes(self, kind: str | None = None) -> Iterator[NoteRow]:
        """Notes of one kind, or all, by match."""

    def notes_of(self, number: int) -> list[NoteRow]: ...

    def violations(self, number: int | None = None) -> Iterator[ViolationRow]:
        """Violations of one match, or of all."""

    def calls(self, number: int) -> list[RecordedCall]:
        """A match's calls by round, seat and attempt."""

    def replies(self) -> Iterator[tuple[int, Seat, str]]:
        """(match, seat, text) for every reply in matches that have ended, by match."""

    def calls_since(self, cursor: int) -> Iterator[tuple[int, int, RecordedCall]]:
        """(cursor, match, call) for every call recorded after a cursor: how a page follows a
        run."""

    def effects(self, number: int) -> dict[tuple[int, int], tuple[bytes, Any]]:
        """Results of a match's effects (programs run, references asked), by round and number."""

    def messages(self, number: int) -> list[dict[str, Any]]:
        """A match's messages in order; replies carry the words of their call."""

    def recorded_matches(self, after: int = 0, last: int | None = None) -> Iterator[RecordedMatch]:
        """What was said in every match above a number that was played to its end, by match; none
        after the `last`."""

    def recalled(self, number: int | None = None) -> Iterator[Recalled]:
        """What seats were shown of earlier matches, in one match or in all, by match."""

    def brought(self) -> list[Experience]:
        """The experiences that the run took over from another."""

    def reply_lengths(self) -> dict[tuple[int, Seat], int]:
        """How many characters each seat has said in each match."""

    def verdict_kinds(self) -> Counter[str]:
        """What the verdicts on programs rest on, in matches that have ended, and how often."""

    def usage_by_model(self, price_steps: Sequence[int] = ()) -> list[UsageRow]:
        """Calls and tokens by alias, seat and model served. Calls whose input exceeds a price step
        are counted apart from smaller ones."""

    def usage_by_stage(self, price_steps: Sequence[int] = ()) -> list[StageUsage]:
        """The same by stage and arm of a run that evolves."""

    def names_served(self) -> dict[str, list[str]]:
        """The names that endpoints gave their models, by alias, also in copied calls."""

    def served_models(self, copied: bool = False) -> list[tuple[str, str | None]]:
        """Every alias with every name that its model was served under; None where an endpoint did
        not say. `copied`: also in calls that were copied from another run."""

    def unsupported_options(self) -> list[dict[str, Any]]:
        """Options that were set and that endpoints did not take, by alias, with the number of
        calls."""

    def prices(self) -> list[dict[str, Any]]:
        """What models cost when the run was played, by alias and the name it was served under."""

    def count_replies(self) -> int:
        """How many replies are on record that were asked for in this run."""

    def spent_at_most(self) -> tuple[int, float | None]:
        """How many calls have left at the most, and what they cost at the most where that was
        kept."""

    def unanswered(self) -> dict[str, dict[str, int]]:
        """Requests that broke off after they had left, by alias and role: they may have been paid
        without a reply on record."""

    def part_results(self) -> list[StoredPart]:
        """What analyses computed when the run ended."""

    def find_changes(self) -> Iterator[DigestFault]:
        """Where the run is not what its digests were taken of; they are all computed again. A
        run that began without digests has none anywhere."""


class Journal(Protocol):
    """Keeps a run: a reply is durable before anybody uses it."""

    ref: RunRef
    notice: str  # what the person should know about the store

    async def reconfigure(self, config: Config) -> None:
        """Keep a configuration in which a bound was raised."""

    async def set_spending(self, calls: int, usd: float | None) -> None:
        """Keep how many calls have left at the most, and what they may have cost."""

    async def set_unanswered(self, requests: Mapping[str, Mapping[str, int]]) -> None:
        """Keep how many requests may have been paid without a reply, by alias and role."""

    async def set_prices(self, prices: Sequence[Mapping[str, Any]]) -> None:
        """Keep the prices that the run was played at."""

    async def add_matches(self, specs: Sequence[MatchSpec]) -> None:
        """Make matches known; those already known stay as they are."""

    async def add_recalled(self, rows: Sequence[Recalled]) -> None:
        """Keep what seats will be shown of earlier matches."""

    def claim(self, number: int) -> Record:
        """Take a match to play it; what is already on record for it comes along."""

    async def restart(self, number: int) -> tuple[Record, Counter[Seat]]:
        """Begin a match anew that was claimed: what is on record for it is deleted. Returns an
        empty record, and how many replies of each seat are gone."""

    async def heartbeat(self) -> None:
        """Say that this process still plays; raises if another has taken over."""

    async def finish(self, number: int, outcome: Outcome) -> None:
        """End a match, once."""

    async def fail(self, number: int, reason: str) -> None:
        """Leave a match unfinished, saying why."""

    async def set_state(self, state: str, status: str | None, reason: str) -> None:
        """Say how the run stands; one that stops gets a digest of everything on record."""

    async def keep_parts(self, parts: Sequence[StoredPart]) -> None:
        """Keep what analyses computed, in place of what was kept before."""

    async def close(self) -> None: ...


StoredItem = tuple[str, bytes]  # an item's id, and the item as JSON


@dataclass(frozen=True)
class CopiedMatch:
    """A match of another run that is judged again: what is taken over from its record."""

    spec: MatchSpec
    calls: Sequence[RecordedCall]
    effects: Mapping[tuple[int, int], tuple[bytes, Any]]  # by round and number
    scores: Marks
    judge: str  # the run that gave these scores


@dataclass(frozen=True)
class NewRun:
    """A run before its first match. It must hold no secret."""

    id: str
    config: Config
    identity: Mapping[str, Any]
    items: Sequence[StoredItem] = ()
    copied: Iterable[CopiedMatch] = ()
    brought: Sequence[Experience] = ()  # experiences of another run, to begin with


@dataclass(frozen=True)
class StoreFacts:
    """What `parley doctor` says of a store."""

    location: str
    filesystem: str
    state: str  # ready, or what is wrong
    sqlite: str  # the version of SQLite


class Study(NamedTuple):
    """The pairs of conversations that were drawn from a set of runs."""

    id: int
    runs: tuple[str, ...]
    seed: int
    ties: bool  # whether people may say that both are equally good


class Annotator(NamedTuple):
    """A person who votes in a study."""

    id: int
    study: int
    name: str


class VoteStore(Protocol):
    """The votes of people on pairs of conversations. Many people vote at the same time, and no
    vote is ever deleted. Use it as a context manager."""

    location: str  # where the votes are, for a user to read

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        wrong: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def transaction(self) -> AbstractContextManager[object]:
        """All changes inside it are made together. Nobody else writes meanwhile, and they are
        durable when it is over."""

    def find_study(self, runs: Sequence[str]) -> Study | None:
        """The study of a set of runs, if there is one."""

    def create_study(self, runs: Sequence[str], seed: int, ties: bool) -> Study:
        """The study of a set of runs; one that is there already stays as it is."""

    def add_pairs(self, study: Study, pairs: Sequence[ConversationPair], after: int) -> None:
        """Add pairs that were drawn when the study had `after` of them. If somebody else has added
        pairs meanwhile, those stay, and these are dropped."""

    def pairs(self, study: Study) -> dict[int, ConversationPair]:
        """All pairs of a study by their numbers."""

    def add_annotator(self, study: Study, name: str) -> Annotator:
        """A person by name, added if new. Names that differ only in case are one person."""

    def annotators(self, study: Study) -> list[Annotator]:
        """Everybody who was invited or has voted."""

    def set_token(self, who: Annotator, digest: bytes) -> None:
        """Keep the digest of a person's secret, in place of an earlier one."""

    def find_token(self, digest: bytes) -> tuple[Study, Annotator] | None:
        """The person with this digest of a secret, and the study."""

    def votes(self, study: Study) -> dict[int, dict[int, Preference]]:
        """All pairs by number, each with the votes that stand, by the annotator's id, in the order
        of their first votes."""

    def record_vote(self, study: Study, number: int, who: Annotator, choice: Preference) -> None:
        """Record a vote. An earlier vote of this person on this pair stays on record as
        replaced."""

    def count_replaced(self, study: Study) -> dict[int, int]:
        """How many votes each person has changed, by the annotator's id."""

    def held_pairs(self, study: Study) -> dict[int, set[int]]:
        """The pairs that people look at just now, each with the ids of these people."""

    def hold_pair(self, study: Study, who: Annotator, number: int, seconds: float) -> None:
        """Keep a pair for somebody for a while, in place of the one that they held."""

    def release_pair(self, study: Study, who: Annotator, number: int | None = None) -> None:
        """Free the pair that somebody holds, or only if it is this one."""


class Store(Protocol):
    """Where runs are kept, and the votes of people on them."""

    def find(self, text: str) -> RunRef:
        """A run by its path, its id, an unmistakable beginning or end of that, its name, or
        `last`."""

    def runs(self) -> Iterator[RunInfo | UnreadableRun]:
        """All runs, newest first."""

    def read(self, ref: RunRef) -> RunReader: ...

    async def create(self, run: NewRun) -> Journal:
        """Begin a run, and take it to play it."""

    async def open(self, ref: RunRef, notify: Callable[[str], None] = lambda said: None) -> Journal:
        """Take a run to play it; `StoreError` if somebody else plays it. From another machine, a
        run is taken over once its holder has given no sign of life for a minute of the time that
        this process measures; `notify` is called before such a wait."""

    def delete(self, ref: RunRef) -> None:
        """Delete a run; `UsageError` if somebody plays it, `StoreError` if it cannot be deleted."""

    def open_votes(self, refs: Sequence[RunRef], read_only: bool = False) -> VoteStore:
        """The votes on these runs of this store."""

    def check(self) -> StoreFacts:
        """Whether runs can be written here."""


def open_store(given: str | Path | None = None) -> Store:
    """The store at a place: as given, else `PARLEY_STORE`, else the folder `runs/` here."""
    from parley.store.sqlite.folder import FolderStore  # late: it loads SQLite

    return FolderStore.at(None if given is None else str(given))


def find_run(text: str | Path, store: str | Path | None = None) -> RunRef:
    """A run in a store, by anything that `Store.find` takes."""
    return open_store(store).find(str(text))


def read_run(ref: RunRef) -> RunReader:
    """A run, opened for reading."""
    return open_store(ref.store).read(ref)


def open_votes(refs: Sequence[RunRef], read_only: bool = False) -> VoteStore:
    """The votes on these runs, in the store that keeps the runs."""
    return open_store(refs[0].store).open_votes(refs, read_only)
