"""How matches at the command line ended, and how many turns they took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from parley.results.part import Part, Style
from parley.results.scores import RunScores
from parley.tables import Table, format_number
from parley.tasks.os_tasks.rule import MachineEnd

# by the word that tables show: the name in the data
ENDS = {
    "answered": "answered",
    "finished": "finished",
    "gave up": "gave_up",
    "out of turns": "out_of_turns",
}


@dataclass(frozen=True)
class EndCount:
    """How the matches of a model ended: counts by kind, solved matches, and the mean number of
    turns."""

    alias: str
    matches: int
    answered: int
    finished: int
    gave_up: int
    out_of_turns: int
    answered_right: int
    finished_right: int
    unprotected: int  # matches whose verdict the model could have forged
    unprotected_right: int
    mean_turns: float
    mean_turns_solved: float | None


def compute_ends(run: RunScores) -> tuple[EndCount, ...]:
    """By model, how its matches ended."""
    found: dict[str, list[MachineEnd]] = {}
    for match, note in run.notes(MachineEnd):
        for alias in match.seats.values():
            found.setdefault(alias, []).append(note)
    return tuple(count_ends(alias, found[alias]) for alias in sorted(found))


def count_ends(alias: str, notes: Sequence[MachineEnd]) -> EndCount:
    solved = [note.turns for note in notes if note.solved]
    return EndCount(
        alias,
        len(notes),
        **{name: sum(note.end == end for note in notes) for end, name in ENDS.items()},
        answered_right=sum(note.solved and note.end == "answered" for note in notes),
        finished_right=sum(note.solved and note.end == "finished" for note in notes),
        unprotected=sum(note.unprotected for note in notes),
        unprotected_right=sum(note.solved and note.unprotected for note in notes),
        mean_turns=fmean(note.turns for note in notes),
        mean_turns_solved=fmean(solved) if solved else None,
    )


def end_tables(found: Sequence[EndCount], style: Style) -> list[Table]:
    """One row per model."""
    apart = any(each.unprotected for each in found)
    rows = [
        [
            each.alias,
            str(each.matches),
            f"{each.answered} ({each.answered_right})",
            f"{each.finished} ({each.finished_right})",
            str(each.gave_up),
            str(each.out_of_turns),
            *([f"{each.unprotected} ({each.unprotected_right})"] if apart else []),
            format_number(each.mean_turns, 2),
            format_number(each.mean_turns_solved, 2),
        ]
        for each in found
    ]
    unprotected = ["unprotected"] if apart else []
    header = ["model", "matches", *ENDS, *unprotected, "mean turns", "mean turns, solved"]
    note = (
        "the numbers in parentheses count solved matches; `gave up` counts matches in which "
        "the model sent no readable action"
    )
    if apart:
        note += (
            "; `unprotected` counts matches whose verdict the model could have forged, however "
            "they ended"
        )
    return [Table(header, rows, title="how matches ended", note=note)]


PARTS = (
    Part(
        "ends",
        "How matches ended",
        tuple[EndCount, ...],
        compute_ends,
        end_tables,
        absent="not applicable: no match of this run has ended yet",
    ),
)
