"""Reads what people said of matches, and the experiences that seats were shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypedDict

from parley.memory.experiences import Experience, Recalled, ShownExperience
from parley.rules.pool import Example
from parley.store.decoding import find_misfit
from parley.store.reader.snapshot import Section
from parley.store.tables import PEOPLE_VERDICTS, RECALLED
from parley.tables import shorten

if TYPE_CHECKING:
    from parley.memory.feedback import PeopleVerdict


class RecalledFacts(TypedDict):
    """The experiences that a seat was shown, as recorded."""

    shown: list[list[Any]]
    k: int
    dropped: int
    shuffle: str


class TransferredFacts(TypedDict):
    """An experience of another run, as recorded."""

    match: int
    seat: str
    alias: str
    role: str
    item: str
    stage: int
    arm: str
    series: int
    cue: str
    turns: list[list[str]]
    success: bool
    right: bool
    subject: str
    lesson: str


class PeopleRows(Section):
    """What people said of matches."""

    def verdicts(self, number: int | None = None) -> list[PeopleVerdict]:
        """The seats that people were asked about, in one match or in all, with their votes."""
        rows = self._snapshot.rows(
            f"SELECT {PEOPLE_VERDICTS.row} FROM people_verdicts "
            + ("" if number is None else "WHERE match = ? ")
            + "ORDER BY match, seat",
            *(() if number is None else (number,)),
        )
        from parley.memory.feedback import PeopleVerdict  # late: few runs need it

        found = []
        for row in rows:
            what = f"what people said of match {row[0]}"
            self._snapshot.check(row, PEOPLE_VERDICTS.types(), what)
            match, seat, *counts = row
            given = [count for count in counts if count is not None]
            if len(given) not in (0, 3) or any(count < 0 for count in given):
                self._snapshot.refuse(f"{what}: expected counts of votes, found {shorten(counts)}")
            if given and not sum(given):
                self._snapshot.refuse(f"{what}: there is a verdict without votes")
            found.append(PeopleVerdict(match, self._snapshot.seat(seat, what), *counts))
        return found


class ExperienceRows(Section):
    """The experiences that seats were shown, and those of another run."""

    def recalled(self, number: int | None = None, last: int | None = None) -> Iterator[Recalled]:
        """The experiences that seats were shown, by match: in one match, in those numbered `number`
        to `last`, or in all."""
        rows = self._snapshot.rows(
            f"SELECT {RECALLED.row} FROM recalled "
            + ("" if number is None else "WHERE match BETWEEN ? AND ? ")
            + "ORDER BY match, seat",
            *(() if number is None else (number, number if last is None else last)),
        )
        for row in rows:
            what = f"the experiences shown in match {row[0]}"
            self._snapshot.check(row, RECALLED.types(), what)
            match, seat, version, text = row
            facts = self._snapshot.decode(text, Any, what)
            if not are_recalled_facts(facts):
                misfit = find_misfit(facts, RecalledFacts, what)
                self._snapshot.refuse(
                    misfit
                    or f"{what}: {shorten(facts)} is not a list of experiences (remembered "
                    "conversations)"
                )
            shown = tuple(ShownExperience(*each) for each in facts["shown"])
            yield Recalled(
                match, seat, version, shown, facts["k"], facts["dropped"], facts["shuffle"]
            )

    def transferred(self) -> list[Experience]:
        """The experiences from another run that models started with."""
        found = []
        for number, text in self._snapshot.rows(
            "SELECT number, experience FROM transferred ORDER BY number"
        ):
            what = f"experience {number}"
            facts = self._snapshot.decode(text, TransferredFacts, what)
            turns = facts.pop("turns")
            if not turns or any(len(turn) != 3 for turn in turns):
                self._snapshot.refuse(f"{what}: a turn must have a question, an answer and a hint")
            found.append(Experience(**facts, turns=tuple(Example(*turn) for turn in turns)))
        return found


def are_recalled_facts(facts: Any) -> bool:
    """Whether a row has all fields of `RecalledFacts`. A run may have very many rows, so this is
    fast."""
    if not isinstance(facts, dict):
        return False
    shown = facts.get("shown")
    return (
        isinstance(shown, list)
        and type(facts.get("k")) is type(facts.get("dropped")) is int
        and isinstance(facts.get("shuffle"), str)
        and all(
            isinstance(each, list)
            and len(each) == 3
            and type(each[0]) is int
            and type(each[1]) is str
            and type(each[2]) in (int, float)
            for each in shown
        )
    )
