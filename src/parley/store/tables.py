"""The tables of a store. Both databases have them, and what is said here is said nowhere else:
their columns, in the order in which rows are written, digested and moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import NoneType
from typing import NamedTuple


class ColumnType(NamedTuple):
    """The values of a column, in both databases and as they are read."""

    sqlite: str
    postgres: str
    python: tuple[type, ...]


TEXT = ColumnType("TEXT", "TEXT", (str,))
WHOLE = ColumnType("INTEGER", "int", (int,))
LARGE = ColumnType("INTEGER", "bigint", (int,))
NUMBER = ColumnType("REAL", "double precision", (int, float))
BYTES = ColumnType("BLOB", "bytea", (bytes,))
PLAIN = (TEXT, WHOLE, LARGE)  # a digest takes their values as they are


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    kind: ColumnType
    null: bool = False
    default: str | int | None = None
    later: bool = False  # it is set after its row is written
    stays: bool = False  # it does not move with a run to another store
    of: str = ""  # the attribute of a recorded call that it holds

    @property
    def types(self) -> tuple[type, ...]:
        """The types of its values as they are read."""
        return (*self.kind.python, NoneType) if self.null else self.kind.python

    @property
    def rules(self) -> str:
        """What its values must be, as both databases write it."""
        default = "" if self.default is None else f" DEFAULT {self.default!r}"
        return f"{'' if self.null else ' NOT NULL'}{default}"


@dataclass(frozen=True)
class TableSpec:
    """A table: its columns, and which of them tell its rows apart."""

    name: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    unique: tuple[tuple[str, ...], ...] = ()  # further columns that tell rows apart
    numbered: bool = False  # each store numbers the rows itself, in a column `id`
    long: bool = False  # rows are long: SQLite keeps them apart from their key
    once: bool = False  # a row that is known is left as it is when it is written again

    @cached_property
    def written(self) -> tuple[Column, ...]:
        """The columns that are written with a row."""
        return tuple(column for column in self.columns if not column.later)

    @cached_property
    def row(self) -> str:
        """The columns that are written with a row, for a query."""
        return list_names(self.written)

    @cached_property
    def moved(self) -> tuple[Column, ...]:
        """The columns that move with a run to another store."""
        return tuple(column for column in self.columns if not column.stays)

    @property
    def order(self) -> str:
        """The order of its rows in a run."""
        return "id" if self.numbered else ", ".join(self.key)

    def types(self, *names: str) -> list[tuple[type, ...]]:
        """The types of some columns; without names, of those that are written with a row."""
        by_name = {column.name: column.types for column in self.columns}
        return [by_name[name] for name in names or (column.name for column in self.written)]


def list_names(columns: Sequence[Column]) -> str:
    """Columns for a query."""
    return ", ".join(column.name for column in columns)


RUNS = TableSpec(
    "runs",
    ("id",),
    (
        Column("id", TEXT),
        Column("created", NUMBER),
        Column("config", TEXT),
        Column("identity", TEXT),
        Column("quotation_secret", TEXT),  # the marks of quotations come from it; never shown
        Column("state", TEXT),
        Column("status", TEXT, null=True),
        Column("reason", TEXT, null=True),
        Column("planned", WHOLE, default=0),
        # The process that plays the run, and its heartbeats. A process on another machine that
        # wants to take over watches whether their number changes: clocks need not be compared.
        Column("owner", TEXT, null=True, stays=True),
        Column("token", TEXT, null=True, stays=True),
        Column("heartbeat", NUMBER, null=True, stays=True),
        Column("heartbeats", LARGE, default=0, stays=True),
        # upper bounds of the calls sent and their cost, also of calls whose replies are not on
        # record
        Column("spent", TEXT, null=True),
        Column("prices", TEXT, null=True),  # by served model
        # requests that broke off after they were sent, by alias and role: they may have been billed
        # although no reply is on record
        Column("unanswered", TEXT, null=True),
        Column("health", TEXT, null=True),  # how endpoints answer, by alias, to follow the run
        Column("origin", TEXT, null=True),  # the digest of the beginning
        Column("digest", TEXT, null=True),  # and of the end
    ),
)
# what happened to the run as a whole: a chain of digests that begins with `origin`
HISTORY = TableSpec(
    "history",
    ("number",),
    (
        Column("number", WHOLE),
        Column("at", NUMBER),
        Column("kind", TEXT),
        Column("facts", TEXT),
        Column("digest", TEXT),
    ),
)
ITEMS = TableSpec(
    "items",
    ("number",),
    (Column("id", TEXT), Column("number", WHOLE), Column("data", TEXT)),
)
# A match is written as it was planned. Its seal has all but the sums, in this order.
MATCHES = TableSpec(
    "matches",
    ("number",),
    (
        Column("number", WHOLE),
        Column("block", TEXT),
        Column("item", TEXT, null=True),
        Column("repeat", WHOLE),
        Column("seed", LARGE),
        Column("seats", TEXT),
        Column("unscored", TEXT, null=True),  # seats that only complete it: no score counts
        Column("state", TEXT, default="planned", later=True),
        Column("reason", TEXT, null=True, later=True),
        Column("rounds", WHOLE, null=True, later=True),
        Column("began", NUMBER, null=True, later=True),
        Column("ended", NUMBER, null=True, later=True),
        Column("violations", WHOLE, null=True, later=True),
        Column("apart", NUMBER, null=True, later=True),
        Column("tokens", LARGE, null=True, later=True),
        Column("digest", TEXT, null=True, later=True),
        Column("stage", WHOLE),  # of the plan `evolve`, like its arm
        Column("arm", TEXT),
    ),
    once=True,
)
# what the record of a match adds up to, for lists of matches; written when it ends
SUMS = ("violations", "apart", "tokens")
CALLS = TableSpec(
    "calls",
    ("match", "round", "seat", "attempt"),
    (
        Column("match", WHOLE),
        Column("round", WHOLE, of="round"),
        Column("seat", TEXT, of="seat"),
        Column("attempt", WHOLE, of="attempt"),
        Column("view_digest", BYTES, of="view_digest"),
        Column("content", TEXT, of="reply.content"),
        Column("parts", TEXT, null=True, of="reply.content"),  # of content that is not only text
        Column("reasoning", TEXT, null=True, of="reply.reasoning"),
        Column("finish", TEXT, of="reply.finish"),
        Column("model_served", TEXT, null=True, of="reply.model_served"),
        Column("response_id", TEXT, null=True, of="reply.response_id"),
        Column("request_id", TEXT, null=True, of="reply.request_id"),
        Column("system_fingerprint", TEXT, null=True, of="reply.system_fingerprint"),
        Column("tokens_in", LARGE, null=True, of="reply.usage.tokens_in"),
        Column("tokens_cached", LARGE, null=True, of="reply.usage.tokens_cached"),
        Column("tokens_out", LARGE, null=True, of="reply.usage.tokens_out"),
        Column("tokens_reasoning", LARGE, null=True, of="reply.usage.tokens_reasoning"),
        Column("tokens_written", LARGE, null=True, of="reply.usage.tokens_written"),
        Column("latency", NUMBER, null=True, of="reply.latency"),
        Column("provider_state", TEXT, null=True, of="reply.provider_state"),
        Column("sent", TEXT, null=True, of="reply.sent"),
        Column("left_out", TEXT, null=True, of="reply.left_out"),  # by the endpoint
        Column("masked", TEXT, null=True, of="masked"),  # [[start, end, family, roles], …]
        Column("at", NUMBER, of="at"),
        Column("copied", WHOLE, null=True),  # 1: from another run, so no model was called here
        # of a model that Parley itself runs on this machine
        Column("device", WHOLE, null=True),
        Column("device_seconds", NUMBER, null=True),
        Column("digest", TEXT),
    ),
    numbered=True,
    long=True,
)
DEVICES = TableSpec("devices", ("number",), (Column("number", WHOLE), Column("setup", TEXT)))
EFFECTS = TableSpec(
    "effects",
    ("match", "round", "number"),
    (
        Column("match", WHOLE),
        Column("round", WHOLE),
        Column("number", WHOLE),
        Column("request_digest", BYTES),
        Column("result", TEXT),
        Column("digest", TEXT),
    ),
)
ROUNDS = TableSpec(
    "rounds",
    ("match", "first"),
    (
        Column("match", WHOLE),
        Column("first", WHOLE),
        Column("messages", BYTES),
        Column("digest", TEXT),
    ),
    long=True,
    once=True,
)
SCORES = TableSpec(
    "scores",
    ("match", "seat", "metric", "judge"),
    (
        Column("match", WHOLE),
        Column("seat", TEXT),
        Column("metric", TEXT),
        Column("value", NUMBER, null=True),
        Column("judge", TEXT, default=""),  # the run that it is copied from
    ),
)
VIOLATIONS = TableSpec(
    "violations",
    ("match", "number"),
    (
        Column("match", WHOLE),
        Column("number", WHOLE),
        Column("round", WHOLE),
        Column("seat", TEXT),
        Column("attempt", WHOLE),
        Column("kind", TEXT),
        Column("detail", TEXT),
        Column("outcome", TEXT),
    ),
)
NOTES = TableSpec(
    "notes",
    ("match", "number"),
    (
        Column("match", WHOLE),
        Column("number", WHOLE),
        Column("round", WHOLE),
        Column("facts", TEXT),
        Column("kind", TEXT, null=True),  # NULL: free facts
    ),
)
# the experiences that a seat was shown
RECALLED = TableSpec(
    "recalled",
    ("match", "seat"),
    (
        Column("match", WHOLE),
        Column("seat", TEXT),
        Column("version", TEXT),
        Column("shown", TEXT),
    ),
)
# the experiences from another run that models started with
TRANSFERRED = TableSpec(
    "transferred", ("number",), (Column("number", WHOLE), Column("experience", TEXT))
)
# Matches that people were asked about between two stages, and how many votes each answer got when
# the next stage began. NULL: the votes have not been used yet.
PEOPLE_VERDICTS = TableSpec(
    "people_verdicts",
    ("match", "seat"),
    (
        Column("match", WHOLE),
        Column("seat", TEXT),
        Column("yes", WHOLE, null=True),
        Column("no", WHOLE, null=True),
        Column("unsure", WHOLE, null=True),
    ),
    once=True,
)
# Requests that were sent together to the batch interface of a provider. A request whose reply is
# not in `calls` is still open, unless it failed.
BATCHES = TableSpec(
    "batches",
    ("number",),
    (
        Column("number", WHOLE),
        Column("uid", TEXT),
        Column("alias", TEXT),
        Column("state", TEXT),
        Column("provider_id", TEXT, null=True),
        Column("requests", WHOLE),
        Column("began", NUMBER),
        Column("ended", NUMBER, null=True, later=True),
    ),
)
BATCH_REQUESTS = TableSpec(
    "batch_requests",
    ("batch", "number"),
    (
        Column("batch", WHOLE),
        Column("number", WHOLE),
        Column("match", WHOLE),
        Column("round", WHOLE),
        Column("seat", TEXT),
        Column("attempt", WHOLE),
        Column("body", BYTES),
        Column("usd", NUMBER),
        Column("failed", WHOLE, default=0, later=True),
    ),
)
# results of analyses: derived data, which may be replaced
PART_RESULTS = TableSpec(
    "part_results",
    ("name",),
    (
        Column("name", TEXT),
        Column("version", TEXT),
        Column("schema", TEXT),
        Column("data", TEXT),
        Column("figures", TEXT),
    ),
)
# The tables of a run, in the order in which they move. In a file each has the rows of one run; in a
# database a further column, `run`, tells the runs apart.
RUN_TABLES = {
    table.name: table
    for table in (
        *(RUNS, HISTORY, ITEMS, MATCHES, CALLS, DEVICES, EFFECTS, ROUNDS, SCORES, VIOLATIONS),
        *(NOTES, RECALLED, TRANSFERRED, PEOPLE_VERDICTS, BATCHES, BATCH_REQUESTS, PART_RESULTS),
    )
}

# pairs of conversations, and votes on which of the two is better
STUDIES = TableSpec(
    "studies",
    ("id",),
    (
        Column("runs", TEXT),
        Column("seed", LARGE),
        Column("ties", WHOLE),
        Column("created", NUMBER),
    ),
    numbered=True,
)
PAIRS = TableSpec(
    "pairs",
    ("study", "number"),
    (
        Column("study", WHOLE),
        Column("number", WHOLE),
        Column("dataset", TEXT),
        Column("item", TEXT),
        Column("a_run", TEXT),
        Column("a_match", WHOLE),
        Column("a_model", TEXT),
        Column("a_score", NUMBER),
        Column("b_run", TEXT),
        Column("b_match", WHOLE),
        Column("b_model", TEXT),
        Column("b_score", NUMBER),
    ),
)
ANNOTATORS = TableSpec(
    "annotators",
    ("id",),
    (
        Column("study", WHOLE),
        Column("name", TEXT),
        Column("folded", TEXT),
        Column("token", BYTES, null=True),
        Column("created", NUMBER),
    ),
    unique=(("token",), ("study", "folded")),
    numbered=True,
)
VOTES = TableSpec(
    "votes",
    ("id",),
    (
        Column("study", WHOLE),
        Column("pair", WHOLE),
        Column("annotator", WHOLE),
        Column("choice", TEXT),
        Column("at", NUMBER),
        Column("replaced", NUMBER, null=True),
    ),
    numbered=True,
)
HELD = TableSpec(
    "held",
    ("study", "pair", "annotator"),
    (
        Column("study", WHOLE),
        Column("pair", WHOLE),
        Column("annotator", WHOLE),
        Column("until", NUMBER),
    ),
)
# pairs that people have put off
SKIPPED = TableSpec(
    "skipped",
    ("study", "pair", "annotator"),
    (Column("study", WHOLE), Column("pair", WHOLE), Column("annotator", WHOLE)),
)
# secrets that are no longer valid, so that the people who have them can be told
ENDED_INVITATIONS = TableSpec(
    "ended_invitations",
    ("digest",),
    (Column("digest", BYTES), Column("annotator", WHOLE), Column("at", NUMBER)),
)
# votes on whether one conversation is a success, for runs that wait for them
VERDICT_VOTES = TableSpec(
    "verdict_votes",
    ("id",),
    (
        Column("run", TEXT),
        Column("match", WHOLE),
        Column("seat", TEXT),
        Column("annotator", TEXT),
        Column("folded", TEXT),
        Column("choice", TEXT),
        Column("at", NUMBER),
        Column("replaced", NUMBER, null=True),
    ),
    numbered=True,
)
# personal links for these votes
VERDICT_INVITATIONS = TableSpec(
    "verdict_invitations",
    ("digest",),
    (
        Column("digest", BYTES),
        Column("run", TEXT),
        Column("annotator", TEXT),
        Column("folded", TEXT),
        Column("ended", NUMBER, null=True),
    ),
)
# in both databases these stand beside all runs
VOTE_TABLES = (
    *(STUDIES, PAIRS, ANNOTATORS, VOTES, HELD, SKIPPED, ENDED_INVITATIONS),
    *(VERDICT_VOTES, VERDICT_INVITATIONS),
)
