"""Audit check: everybody was shown the same words before anybody spoke."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from parley.audit.replay import difference
from parley.rules.pool import Seat
from parley.store import MatchRow


class Beginnings:
    """What seats were told and asked before anybody had spoken: nothing that a model says can have
    made a difference yet.

    Matches of one block and repeat share item and draws, so a seat of one must have heard what that
    seat of another has.
    """

    def __init__(self) -> None:
        self._told: dict[tuple[str, int, str], dict[str, list[int]]] = {}
        # matches whose seats of one role heard different words, by role
        self._unlike: dict[int, str] = {}

    def take(self, match: MatchRow, messages: Sequence[Mapping[str, Any]]) -> None:
        told = first_words(messages, [seat.key for seat in match.seats])
        for seat, words in told.items():
            self._told.setdefault((match.block, match.repeat, seat), {}).setdefault(
                words, []
            ).append(match.number)
        roles: dict[str, set[str]] = {}
        for seat, words in told.items():
            roles.setdefault(Seat.of(seat).role, set()).add(words)
        if unlike := [role for role, heard in roles.items() if len(heard) > 1]:
            self._unlike[match.number] = unlike[0]

    def unequal(self, doubtful: set[int]) -> Iterator[tuple[int, str]]:
        """Matches in which a seat began with other words than elsewhere; `doubtful` are those that
        a replay did not confirm."""
        found: dict[int, str] = {}
        for (block, _, seat), by_words in self._told.items():
            usual = max(by_words, key=lambda words: len(by_words[words]))
            for words, numbers in by_words.items():
                if words != usual:
                    where = (
                        f"{seat} was told other words than in match {by_words[usual][0]} of "
                        f"block {block}, before any reply"
                    )
                    found |= {
                        number: f"{where}: {difference(usual, words, 'there', 'here')}"
                        for number in numbers
                    }
        for number in doubtful & self._unlike.keys() - found.keys():
            found[number] = (
                f"seats of {self._unlike[number]} were told different words before any reply"
            )
        yield from sorted(found.items())

    def by_position(self, doubtful: set[int]) -> str:
        """What to know where the rule itself tells the seats of one role different things."""
        unlike = [number for number in self._unlike if number not in doubtful]
        if not unlike:
            return ""
        return (
            f"in {len(unlike)} matches the seats of {self._unlike[unlike[0]]} began with different "
            f"words: the rule deals by "
            "position, so what is equal is how often everybody sat in each"
        )


def first_words(messages: Sequence[Mapping[str, Any]], seats: Sequence[str]) -> dict[str, str]:
    """All that each seat heard before the first reply of a match; seats that had heard nothing are
    left out."""
    told: dict[str, list[str]] = {seat: [] for seat in seats}
    for message in messages:
        if message["kind"] == "reply":
            break
        for seat in message["audience"]:
            told.setdefault(seat, []).append(message["content"])
    return {seat: "\n\n".join(words) for seat, words in told.items() if words}
