"""Audit check: all seats were shown the same prompts before the first reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parley.audit.replay import describe_difference
from parley.rules.pool import Seat
from parley.store import MatchRow
from parley.tables import plural


class OpeningWords:
    """What each seat read before the first reply of a match, when no model could have made a
    difference yet.

    Matches of one block and repeat share item and random seed, so the same seat must have read the
    same text in all of them.
    """

    def __init__(self) -> None:
        self._words: dict[tuple[str, int, str], dict[str, list[int]]] = {}
        # by match: a role whose seats read different text
        self._different_roles: dict[int, str] = {}

    def add_match(self, match: MatchRow, messages: Sequence[Mapping[str, Any]]) -> None:
        told = collect_opening_words(messages, [seat.key for seat in match.seats])
        for seat, words in told.items():
            self._words.setdefault((match.block, match.repeat, seat), {}).setdefault(
                words, []
            ).append(match.number)
        roles: dict[str, set[str]] = {}
        for seat, words in told.items():
            roles.setdefault(Seat.of(seat).role, set()).add(words)
        if unlike := [role for role, heard in roles.items() if len(heard) > 1]:
            self._different_roles[match.number] = unlike[0]

    def find_unequal(self, unconfirmed: set[int]) -> Iterator[tuple[int, str]]:
        """Matches in which a seat read other text than in the other matches of its block.
        `unconfirmed` are the matches whose replay differs from the record."""
        found: dict[int, str] = {}
        for (block, _, seat), by_words in self._words.items():
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
        for number in unconfirmed & self._different_roles.keys() - found.keys():
            found[number] = (
                f"{self._different_roles[number]}: the opening prompts differ between seats"
            )
        yield from sorted(found.items())

    def describe_dealt(self, unconfirmed: set[int]) -> str:
        """A line on rules that give the seats of one role different opening prompts."""
        unlike = [number for number in self._different_roles if number not in unconfirmed]
        if not unlike:
            return ""
        role = self._different_roles[unlike[0]]
        return (
            f"in {plural(len(unlike), 'match', 'matches')}, the seats of role `{role}` had "
            "different opening prompts, because the task assigns prompts by position. This is "
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
            told.setdefault(seat, []).append(message["content"])
    return {seat: "\n\n".join(words) for seat, words in told.items() if words}
