"""A match as text: the transcript, or the view of one seat."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from parley.cli.terminal import wrap_text
from parley.results.match_notes import Mark
from parley.results.match_scores import MatchScores
from parley.results.match_turns import MatchTurn
from parley.results.transcript import READ_BEFORE, MatchHeadline, Transcript
from parley.rules.pool import Seat
from parley.tables import break_lines, make_visible

WIDEST = 100  # columns of a text, even on a wider terminal
UNBROKEN = 2**31  # the width of a text in a file or a pipe
WORDS_OF_OTHERS = "  │ "  # before every line from a model or the referee


def format_match(found: Transcript, run: str, width: int | None = None) -> str:
    """The transcript of a match: the headline, every round in order, then the scores."""
    recalled = [line for each in found.recalled for line in (each.text, *each.sources)]
    rounds = [
        format_section(
            each.title,
            [
                *(format_turn(turn, turn.unread, width) for turn in each.turns),
                *(format_note(note, width) for note in each.notes),
                *(format_turn(turn, turn.unread, width) for turn in each.told),
            ],
            width,
        )
        for each in found.rounds
    ]
    parts = [
        format_headline(found.headline, run, width),
        *format_quotes("Shown from earlier matches", recalled, width),
        *rounds,
        format_scores(found.scores, width),
        *format_quotes("Votes of people", found.votes, width),
    ]
    if found.leaves_out:
        parts.append(break_lines(f"{READ_BEFORE} --seat NAME prints all of it.", width))
    return "\n\n".join(parts)


def format_seat_view(
    found: Transcript, seat: Seat, turns: Iterable[MatchTurn], run: str, width: int | None = None
) -> str:
    """Everything that one seat read and wrote."""
    parts = [
        format_headline(found.headline, run, width),
        draw_heading(f"As {seat} saw it", width),
        *(format_turn(turn, turn.text, width) for turn in turns),
        format_scores(found.scores, width),
    ]
    return "\n\n".join(parts)


def format_headline(found: MatchHeadline, run: str, width: int | None) -> str:
    """The match, how it ended, and the model in each seat."""
    facts = [*found.facts, *(mark.text for mark in found.marks)]
    lines = [
        found.title,
        ", ".join(filter(None, [f"run {run}", found.item, found.stage])),
        found.lead,
        "; ".join(facts),
        *found.seats,
    ]
    return break_lines(make_visible("\n".join(lines)), width)


def format_scores(scores: MatchScores, width: int | None) -> str:
    """The scores of a match as a table."""
    text = scores.table().render(width=width) if scores.seats else "this match has no scores"
    return format_section("Scores", [text], width)


def format_quotes(title: str, lines: Sequence[str], width: int | None) -> list[str]:
    """A section of lines; none if there are no lines."""
    quoted = [wrap_text(line, room_of(width), WORDS_OF_OTHERS) for line in lines]
    return [format_section(title, quoted, width)] if quoted else []


def format_section(title: str, lines: Sequence[str], width: int | None) -> str:
    return "\n".join([draw_heading(title, width), *lines])


def draw_heading(title: str, width: int | None) -> str:
    return f"── {make_visible(title)} ".ljust(min(room_of(width), WIDEST), "─")


def room_of(width: int | None) -> int:
    """The maximum length of a line; lines in a file or a pipe are not wrapped."""
    return UNBROKEN if width is None else min(width, WIDEST)


def format_turn(turn: MatchTurn, text: str, width: int | None) -> str:
    """A message with its sender, its text, and what was wrong with it."""
    model = f" ({turn.alias})" if turn.alias else ""
    who = ", ".join([f"{turn.speaker}{model}", *(mark.text for mark in turn.marks)])
    lines = [f"{make_visible(who)}:"]
    if text.strip():
        lines.append(wrap_text(text, room_of(width), WORDS_OF_OTHERS))
    lines += [make_visible(f"  ! {fault.text}") for fault in turn.faults]
    return "\n".join(lines)


def format_note(note: Mark, width: int | None) -> str:
    return wrap_text(f"note: {note.text}", room_of(width) - 6).replace("\n", "\n      ")
