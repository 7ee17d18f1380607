"""Audit check: all seats were shown the same prompts before the first reply."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from secrets import token_bytes
from typing import Any

import numpy as np

from parley.audit.replay import describe_difference
from parley.rules.pool import Seat
from parley.statistics.identical_repeats import MARK
from parley.store.reader import RunReader
from parley.store.types import MatchRow
from parley.tables import plural


class OpeningWords:
    """What each seat read before the first reply of a match, when no model could have made a
    difference yet.

    Matches of one block and repeat share item and random seed, so the same seat must have read the
    same text in all of them, but for the marks of quotations, which differ from match to match.
    Only digests are kept: where they differ, the texts are read again. Digests are keyed at random,
    so that nobody can prepare texts with equal digests.
    """

    def __init__(self) -> None:
        self._key = token_bytes(16)
        # for each run of matches with the same block and repeat, and each of their seats
        self._places, self._words = array("Q"), array("Q")
        self._group: tuple[str, int] | None = None  # the block and repeat of the last match
        self._last: dict[str, int] = {}  # words by seat, of the last run of matches
        self._unequal: set[int] = set()  # places with different words
        # matches whose replay differs from the record: a role whose seats read different text
        self._different_roles: dict[int, str] = {}
        self._dealt, self._dealt_role = 0, ""  # the same, for other matches

    def add_match(
        self, match: MatchRow, messages: Sequence[Mapping[str, Any]], confirmed: bool
    ) -> None:
        """Add a match. `confirmed`: its replay does not differ from the record."""
        told = collect_opening_words(messages, [seat.key for seat in match.seats])
        if self._group != (match.block, match.repeat):
            self._group = match.block, match.repeat
            self._last.clear()
        for seat, words in told.items():
            digest = self._digest(words)
            if seat not in self._last:
                self._last[seat] = digest
                self._places.append(self._place(match, seat))
                self._words.append(digest)
            elif self._last[seat] != digest:
                self._unequal.add(self._place(match, seat))
        roles: dict[str, set[str]] = {}
        for seat, words in told.items():
            roles.setdefault(Seat.of(seat).role, set()).add(words)
        if unlike := [role for role, heard in roles.items() if len(heard) > 1]:
            if confirmed:
                self._dealt_role = self._dealt_role or unlike[0]
                self._dealt += 1
            else:
                self._different_roles[match.number] = unlike[0]

    def _digest(self, text: str) -> int:
        data = text.encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(data, digest_size=8, key=self._key).digest())

    def _place(self, match: MatchRow, seat: str) -> int:
        return self._digest(f"{match.block}\0{match.repeat}\0{seat}")

    def find_unequal(self, reader: RunReader) -> Iterator[tuple[int, str]]:
        """Matches in which a seat read other text than in the other matches of its block."""
        found: dict[int, str] = {}
        for (block, _, seat), by_words in self._read_unequal(reader).items():
            usual = max(by_words, key=lambda words: len(by_words[words]))
            for words, numbers in by_words.items():
                if words != usual:
                    where = (
                        f"{seat}: the opening prompt differs from that in match "
                        f"{by_words[usual][0]} (block {block})"
                    )
                    found |= {
                        number: f"{where}: {describe_difference(usual, words, 'there', 'here')}"
                        for number in numbers
                    }
        for number in self._different_roles.keys() - found.keys():
            found[number] = (
                f"{self._different_roles[number]}: the opening prompts differ between seats"
            )
        yield from sorted(found.items())

    def _read_unequal(self, reader: RunReader) -> dict[tuple[str, int, str], dict[str, list[int]]]:
        """By block, repeat and seat where words differ: the matches by their words."""
        places = np.frombuffer(self._places, dtype=np.uint64)
        words = np.frombuffer(self._words, dtype=np.uint64)
        order = np.argsort(places, kind="stable")
        same = places[order[1:]] == places[order[:-1]]
        unlike = same & (words[order[1:]] != words[order[:-1]])
        unequal = self._unequal | set(places[order[1:][unlike]].tolist())
        found: dict[tuple[str, int, str], dict[str, list[int]]] = {}
        for match in reader.matches.read() if unequal else ():
            keys = [seat.key for seat in match.seats]
            wanted = [key for key in keys if self._place(match, key) in unequal]
            if wanted:
                told = collect_opening_words(reader.messages.of(match.number), keys)
                for seat in wanted:
                    if seat in told:
                        by_words = found.setdefault((match.block, match.repeat, seat), {})
                        by_words.setdefault(told[seat], []).append(match.number)
        return found

    def describe_dealt(self) -> str:
        """A line on rules that give the seats of one role different opening prompts."""
        if not self._dealt:
            return ""
        return (
            f"in {plural(self._dealt, 'match', 'matches')}, the seats of role `{self._dealt_role}` "
            "had different opening prompts, because the task assigns prompts by position. This is "
            "fair if every model held every position equally often (see the check `balance`)"
        )


def collect_opening_words(
    messages: Sequence[Mapping[str, Any]], seats: Sequence[str]
) -> dict[str, str]:
    """What each seat read before the first reply of a match, without seats that read nothing."""
    told: dict[str, list[str]] = {seat: [] for seat in seats}
    for message in messages:
        if message["kind"] == "reply":
            break
        for seat in message["audience"]:
            told.setdefault(seat, []).append(MARK.sub("[", message["content"]))
    return {seat: "\n\n".join(words) for seat, words in told.items() if words}
