"""Reads one page of a list of matches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from parley.store.reader.matches import MATCH, MatchReader
from parley.store.tables import MATCHES, SUMS
from parley.store.types import MatchRow

if TYPE_CHECKING:
    from parley.store.match_search import FoundMatches, MatchSearch


class MatchListReader(MatchReader):
    """Finds matches."""

    def find_matches(self, wanted: MatchSearch) -> FoundMatches:
        """One page of the matches that pass some filters, in an order. The work for a page is
        bounded: a page may end before it is full, and the next one goes on."""
        from parley.store.match_search import FoundMatch, FoundMatches  # late: few commands search
        from parley.store.reader.match_places import PlaceFinder

        seats = self.info.identity["seats"]
        finder = PlaceFinder(self._rows, self.dialect, wanted, seats)
        found = finder.find()
        places = found.places
        further = (found.end or places[-1]) if found.more else None
        back = finder.way_back(places)
        if wanted.before is not None:
            places, back, further = places[::-1], further, back
        rows = self._found_rows([place.number for place in places])
        listed = (FoundMatch(rows[at.number][0], at, *rows[at.number][1]) for at in places)
        return FoundMatches(tuple(listed), back, further, found.looked_at)

    def _found_rows(self, numbers: list[int]) -> dict[int, tuple[MatchRow, Any]]:
        """The matches with these numbers, each with what its record adds up to."""
        columns = ", ".join(f"m.{name}" for name in (*MATCH, *SUMS))
        found = {}
        for row in self._rows(
            f"SELECT {columns} FROM {self.dialect.chosen} "
            "CROSS JOIN matches m WHERE m.number = chosen.value",
            orjson.dumps(numbers).decode(),
        ):
            match, sums = self._match_from(row[: len(MATCH)]), row[len(MATCH) :]
            self._check(sums, MATCHES.types(*SUMS), f"match {row[0]}")
            found[match.number] = match, sums
        return found
