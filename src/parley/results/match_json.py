"""Matches as JSON data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from parley.match.record import RecordedCall
from parley.memory.experiences import Recalled
from parley.memory.feedback import PeopleVerdict
from parley.results.seat_views import rebuild_views
from parley.rules.pool import as_message
from parley.store.reader import RunReader
from parley.store.types import MatchRow, WholeMatch

# what `show RUN NUMBER --json` prints
SHOWN = (
    "number",
    "state",
    "reason",
    "item",
    "stage",
    "arm",
    "recalled",
    "people_verdicts",
    "seats",
    "rounds",
    "views",
    "scores",
    "violations",
    "notes",
)


def describe_record(whole: WholeMatch, verdicts: Iterable[PeopleVerdict]) -> dict[str, Any]:
    """A match with its scores, violations, notes, verdicts and transcript: the form of
    `Result.matches`."""
    return {
        **whole.match.to_dict(),
        "scores": {seat.key: by for seat, by in whole.scores.items()},
        "violations": [each.to_dict() for each in whole.violations],
        "notes": [note.to_dict() for note in whole.notes],
        "people_verdicts": [each.to_dict() for each in verdicts],
        "transcript": whole.messages,
    }


def describe_all_matches(reader: RunReader) -> list[dict[str, Any]]:
    """Every match of a run."""
    people: dict[int, list[PeopleVerdict]] = {}
    for said in reader.people.verdicts():
        people.setdefault(said.match, []).append(said)
    return [
        describe_record(whole, people.get(whole.match.number, ()))
        for whole in reader.whole_matches.read()
    ]


def describe_match(reader: RunReader, match: MatchRow) -> dict[str, Any]:
    """One match with replies by round, and with what each seat read and what it was shown."""
    whole = reader.whole_matches.of(match)
    views, _ = rebuild_views(whole)
    facts = describe_record(whole, reader.people.verdicts(match.number)) | {
        "recalled": list(map(describe_recalled_row, reader.experiences.recalled(match.number))),
        "rounds": describe_rounds(whole.calls),
        "views": {seat: [as_message(turn) for turn in view.turns] for seat, view in views.items()},
    }
    return {name: facts[name] for name in SHOWN}


def describe_recalled_row(row: Recalled) -> dict[str, Any]:
    """The experiences that a seat was shown."""
    return {
        "seat": row.seat,
        "version": row.version,
        "k": row.k,
        "dropped": row.dropped,
        "shown": [each._asdict() for each in row.shown],
    }


def describe_rounds(calls: Sequence[RecordedCall]) -> list[dict[str, Any]]:
    """The replies of each round."""
    rounds: dict[int, list[dict[str, Any]]] = {}
    for call in calls:
        said = {
            "seat": call.seat.key,
            "attempt": call.attempt,
            "reply": call.reply.content,
            "reasoning": call.reply.reasoning,
            "finish": call.reply.finish,
            "model_served": call.reply.model_served,
            "response_id": call.reply.response_id,
            "request_id": call.reply.request_id,
            "system_fingerprint": call.reply.system_fingerprint,
        }
        rounds.setdefault(call.round, []).append(said)
    return [{"round": round, "replies": replies} for round, replies in sorted(rounds.items())]
