"""Whether the models of a run always gave the same reply to the same prompt, from its record. The
record is read as a stream: no match needs a query of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from parley.results.types import IdenticalRepeats
from parley.statistics.identical_repeats import (
    ENOUGH,
    Line,
    PlayedMatch,
    RepeatTracker,
    collect_exchanges,
    digest_exchanges,
    group_identical_blocks,
    is_design_repeated,
)
from parley.statistics.score_table import ScoreTable
from parley.store.reader import RunReader
from parley.store.types import MatchRow

FIRST_LOOK = 1_000  # matches
Identical = tuple[dict[str, str], IdenticalRepeats | None]


def find_identical_repeats(
    reader: RunReader,
    played: Sequence[MatchRow],
    scores: ScoreTable,
    roles: Collection[str],
    is_fixed: bool,
) -> Identical:
    """Whether all models, including judges, always gave the same reply to the same prompt. Then
    identical blocks of a fixed plan are one observation: the mapping has, for each block, the first
    of them; it is empty if all blocks differ."""
    if not has_repeated_item(played) or not may_be_deterministic(reader, played, roles):
        return {}, None
    numbers = {match.number for match in played}
    tracker, digests, kept = RepeatTracker(), list[bytes](), dict[bytes, bytes]()
    for whole in reader.whole_matches.read():
        match = whole.match
        if match.number not in numbers:
            continue
        seats = {seat.key: (seat.role, alias) for seat, alias in match.seats.items()}
        lines = [
            Line(each["sender"], each["audience"], each["content"])
            for each in whole.messages
            if each["content"] is not None
        ]
        exchanges = collect_exchanges(lines, seats)
        tracker.add(match.block, match.repeat, exchanges)
        if tracker.differs:
            return {}, None
        digest = digest_exchanges(sorted(exchanges))
        digests.append(kept.setdefault(digest, digest))  # most matches are equal
    if not tracker.is_deterministic:
        return {}, None
    blocks = len({match.block for match in played})
    different, exact, same = blocks, False, dict[str, str]()
    if is_fixed:
        found = group_identical_blocks(list_played(played, scores, digests))
        different = len(set(found.values()))
        if different < blocks:
            same = found
        repeated = is_design_repeated(list_played(played, scores, digests), found)
        exact = different == 1 or repeated
    return same, IdenticalRepeats(tracker.most_plays, blocks, different, exact)


def list_played(
    played: Sequence[MatchRow], scores: ScoreTable, digests: list[bytes]
) -> Iterator[PlayedMatch]:
    """The matches with the digests of what was said, and their scores."""
    marks = groupby(scores, lambda row: row.match)
    number, given = next(marks, (None, iter(())))
    designs = dict[str, str]()
    for match, digest in zip(played, digests, strict=True):
        found = []
        if number == match.number:
            found = [(row.role, row.alias, row.metric, row.value) for row in given]
            number, given = next(marks, (None, iter(())))
        design = describe_design(match)
        yield PlayedMatch(match.block, designs.setdefault(design, design), digest, found)


def describe_design(match: MatchRow) -> str:
    """The plan of a match: its item and its seats."""
    return repr((match.item, sorted((seat.key, alias) for seat, alias in match.seats.items())))


def has_repeated_item(played: Sequence[MatchRow]) -> bool:
    """Whether an item was played in at least `ENOUGH` blocks and repeats: only then can models be
    found to be deterministic."""
    plays: dict[str | None, set[tuple[str, int]]] = {}
    for match in played:
        found = plays.setdefault(match.item, set())
        found.add((match.block, match.repeat))
        if len(found) >= ENOUGH:
            return True
    return False


def may_be_deterministic(
    reader: RunReader, played: Sequence[MatchRow], roles: Collection[str]
) -> bool:
    """A quick check, which rules out most runs: whether contestants gave the same replies in enough
    matches on one item."""
    said: list[tuple[int, MatchRow]] = []  # a digest of the item and the replies of each match
    replies = groupby(reader.calls.replies_in(roles), lambda row: row[0])
    number, rows = next(replies, (None, iter(())))
    for match in played:
        while number is not None and number < match.number:
            number, rows = next(replies, (None, iter(())))
        if number == match.number:
            spoken = sorted((role, alias, hash(text)) for _, role, alias, text in rows)
            said.append((hash((match.item, tuple(spoken))), match))
            if len(said) == FIRST_LOOK and has_plays(said):
                return True  # the rest need not be read
    return has_plays(said)


def has_plays(said: Sequence[tuple[int, MatchRow]]) -> bool:
    """Whether one digest occurs in enough different blocks and repeats."""
    plays: dict[int, set[tuple[str, int]]] = {}
    for digest, match in said:
        found = plays.setdefault(digest, set())
        found.add((match.block, match.repeat))
        if len(found) >= ENOUGH:
            return True
    return False
