"""Whether the models of a run always gave the same reply to the same prompt, from its record. The
record is read as a stream: no match needs a query of its own."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator
from itertools import groupby

from parley.results.played_matches import PlayedMatches
from parley.results.score_columns import ScoreColumns
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
from parley.store import MatchRow
from parley.store.reader import RunReader

FIRST_LOOK = 1_000  # matches
Identical = tuple[dict[str, str], IdenticalRepeats | None]


def find_identical_repeats(
    reader: RunReader,
    played: PlayedMatches,
    scores: ScoreColumns,
    roles: Collection[str],
    is_fixed: bool,
) -> Identical:
    """Whether all models, including judges, always gave the same reply to the same prompt. Then
    identical blocks of a fixed plan are one observation: the mapping has, for each block, the first
    of them; it is empty if all blocks differ."""
    if not may_be_deterministic(reader, played, roles):
        return {}, None
    tracker, digests, kept = RepeatTracker(), list[bytes](), dict[bytes, bytes]()
    for whole in reader.whole_matches():
        match = whole.match
        if match.number not in played:
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
    blocks = played.count_blocks()
    different, exact, same = blocks, False, dict[str, str]()
    if is_fixed:
        found = group_identical_blocks(list_played(reader, played, scores, digests))
        different = len(set(found.values()))
        if different < blocks:
            same = found
        repeated = is_design_repeated(list_played(reader, played, scores, digests), found)
        exact = different == 1 or repeated
    return same, IdenticalRepeats(tracker.most_plays, blocks, different, exact)


def list_played(
    reader: RunReader, played: PlayedMatches, scores: ScoreColumns, digests: list[bytes]
) -> Iterator[PlayedMatch]:
    """The matches with the digests of what was said, and their scores."""
    marks = groupby(scores.rows(), lambda row: row[0])
    number, given = next(marks, (None, iter(())))
    designs = dict[str, str]()
    for match, digest in zip(played.rows(reader), digests, strict=True):
        found = []
        if number == match.number:
            found = [(s.seat.role, s.alias, s.metric, value) for _, _, s, value in given]
            number, given = next(marks, (None, iter(())))
        design = describe_design(match)
        yield PlayedMatch(match.block, designs.setdefault(design, design), digest, found)


def describe_design(match: MatchRow) -> str:
    """The plan of a match: its item and its seats."""
    return repr((match.item, sorted((seat.key, alias) for seat, alias in match.seats.items())))


def may_be_deterministic(reader: RunReader, played: PlayedMatches, roles: Collection[str]) -> bool:
    """A quick check, which rules out most runs: whether contestants gave the same replies in enough
    matches on one item."""
    said = array("q")  # a digest of the item and the replies of each match
    places = array("q")  # where this match is in `played`
    replies = groupby(reader.replies_in(roles), lambda row: row[0])
    number, rows = next(replies, (None, iter(())))
    for place, (match, item) in enumerate(zip(played.number, played.item, strict=True)):
        while number is not None and number < match:
            number, rows = next(replies, (None, iter(())))
        if number == match:
            spoken = sorted((role, alias, hash(text)) for _, role, alias, text in rows)
            said.append(hash((item, tuple(spoken))))
            places.append(place)
            if len(said) == FIRST_LOOK and has_plays(said, places, played):
                return True  # the rest need not be read
    return has_plays(said, places, played)


def has_plays(said: array[int], places: array[int], played: PlayedMatches) -> bool:
    """Whether one digest occurs in enough different blocks and repeats."""
    order = sorted(said)
    often = {one for one, two in zip(order, order[ENOUGH - 1 :], strict=False) if one == two}
    plays: dict[int, set[tuple[int, int]]] = {}
    for digest, place in zip(said, places, strict=True):
        if digest in often:
            found = plays.setdefault(digest, set())
            found.add((played.block[place], played.repeat[place]))
            if len(found) >= ENOUGH:
                return True
    return False
