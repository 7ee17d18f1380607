"""Matches on record that are judged again: what their seats said is taken over as it is, and asked
of nobody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parley.errors import RecordEnded
from parley.match.protocol import Reply
from parley.match.record import Tape
from parley.plans import Done, MatchSpec, Plan
from parley.plans.fixed import Fixed
from parley.rules.pool import Seat, View
from parley.store.config import Config
from parley.store.sqlite.create import Inserts
from parley.store.sqlite.reader import Archive
from parley.store.sqlite.rows import EFFECT, MATCH, PINNED, SCORED, call_row, encoded, match_row


@dataclass(frozen=True)
class Recorded:
    """The matches, the file that has their replies, and what that record rests on."""

    path: Path
    plan: Plan
    facts: dict[str, Any]

    @classmethod
    def of(cls, archive: Archive) -> Recorded:
        """All matches of a run that judges again."""
        return cls(
            archive.path, Fixed([spec_of(match) for match in archive.matches()]), works_in(archive)
        )


class Pinned:
    """Sits where the record answers; where it does not, the record has ended."""

    privy = False

    async def reply(self, view: View) -> Reply:
        raise RecordEnded(
            f"round {view.round}, {view.seat}: the match that is judged again had ended here"
        )

    async def close(self) -> None:
        pass


def spec_of(match: Mapping[str, Any]) -> MatchSpec:
    """A match as it was planned."""
    seats = {Seat.of(seat): alias for seat, alias in match["seats"].items()}
    idle = frozenset(Seat.of(seat) for seat in match["idle"])
    return MatchSpec(
        match["number"], match["block"], match["item"], match["repeat"], match["seed"], seats, idle
    )


def works_in(archive: Archive) -> dict[str, Any]:
    """What a record says of the works that its matches consulted: the answers are on record, and
    nobody opens them again."""
    return {"works": archive.identity["works"]} if "works" in archive.identity else {}


def taken_over(path: Path, config: Config, plan: Plan) -> Iterator[Inserts]:
    """What a run that judges again keeps of the one that played: its replies, verdicts and scores,
    as rows for a new file."""
    specs = plan.next([])
    assert config.rejudged is not None
    assert not isinstance(specs, Done)
    with Archive(path) as archive:
        for spec in specs:
            tape = pinned(archive, spec.number, config)
            effects = [
                (spec.number, *place, saw, encoded(result))
                for place, (saw, result) in tape.effects.items()
            ]
            scores = [
                (spec.number, seat.key, metric, value, config.rejudged.run)
                for seat, by in archive.scores_of(spec.number).items()
                for metric, value in by.items()
            ]
            yield MATCH, [match_row(spec)]
            yield PINNED, [(*call_row(spec.number, call), 1) for call in tape.calls.values()]
            yield EFFECT, effects
            yield SCORED, scores


def pinned(archive: Archive, number: int, config: Config) -> Tape:
    """What a match that is judged again has on record: all but the words of those who are asked
    now."""
    tape = Tape()
    for call in archive.calls(number):
        if not config.asks(call.seat.role):
            tape.calls[call.round, call.seat, call.attempt] = call
    tape.effects = archive.effects(number)
    return tape
