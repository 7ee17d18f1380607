"""A match as text: the transcript, or the view of one seat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parley.cli.terminal import wrap_text
from parley.memory.experiences import Recalled
from parley.memory.feedback import PeopleVerdict
from parley.results.match_notes import describe_note
from parley.results.match_scores import match_score_table
from parley.results.seat_views import rebuild_views
from parley.results.transcript import (
    LEFT_OUT,
    MatchTurn,
    Transcript,
    describe_shown,
    read_transcript,
)
from parley.rules.pool import Seat, as_message
from parley.store import MatchRow, NoteRow, RunReader
from parley.tables import break_lines, make_visible, plural

WIDEST = 100  # columns of a text, even on a wider terminal
UNBROKEN = 2**31
WORDS_OF_OTHERS = "  │ "  # before every line from a model or the referee


def format_match(reader: RunReader, match: MatchRow, width: int | None = None) -> str:
    """The transcript of a match: the opening, every round in order, then the scores."""
    found = read_transcript(reader, match)
    page = Page(match, width, found.item)
    parts = [format_headline(reader, match, width), *page.format_recalled(reader, found.recalled)]
    for each in found.rounds:
        lines = [
            *(line for turn in each.turns for line in page.format_turn(turn)),
            *map(page.format_note, each.notes),
            *(line for turn in each.told for line in page.format_turn(turn)),
        ]
        title = f"round {each.number}" if each.number else "before the first round"
        parts.append("\n".join([page.draw_heading(title), *lines]))
    parts.append(page.draw_heading("scores") + "\n" + format_scores(found, width))
    parts += page.format_people(found.people)
    if found.leaves_out:
        left_out = (
            f"{LEFT_OUT} marks text that these seats had read before; --seat NAME prints all of it"
        )
        parts.append(break_lines(left_out, width))
    return "\n\n".join(parts)


def format_seat_view(
    reader: RunReader, match: MatchRow, seat: Seat, width: int | None = None
) -> str:
    """Everything that one seat read and wrote, unshortened."""
    from parley.results.demonstrations import read_demonstrations

    page = Page(match, width)
    views, _ = rebuild_views(reader.messages(match.number), reader.calls(match.number), match.seats)
    parts = [
        format_headline(reader, match, width),
        page.draw_heading(f"as {page.name(seat)} saw it"),
    ]
    recalled = [row for row in reader.read_recalled(match.number) if row.seat == seat.key]
    for row in recalled:
        parts += [
            f"{describe_shown(shown, source)}:\n{page.quote(words)}"
            for shown, source, words in read_demonstrations(reader, row)
        ]
    for turn in map(as_message, views[seat.key].turns):
        who = "referee" if turn["role"] == "user" else page.name(seat)
        parts.append(f"{who}:\n{page.quote(turn['content'])}")
    parts.append(
        page.draw_heading("scores") + "\n" + format_scores(read_transcript(reader, match), width)
    )
    return "\n\n".join(parts)


def format_headline(reader: RunReader, match: MatchRow, width: int | None) -> str:
    """The match, how it ended, and the model in each seat."""
    info = reader.info
    ended = f" after {plural(match.rounds, 'round')}" if match.rounds is not None else ""
    why = f" ({match.reason})" if match.reason else ""
    item = f", item {match.item}" if match.item is not None else ""
    arm = f" of arm {match.arm}" if match.arm else ""
    evolved = f", stage {match.stage}{arm}" if info.config.evolve is not None else ""
    head = f"match {match.number} of {info.id}{item}{evolved}: {match.state}{ended}{why}"
    seats = [f"{seat}: {alias}" for seat, alias in match.seats.items()]
    return break_lines(make_visible("\n".join([head, *seats])), width)


def format_scores(found: Transcript, width: int | None) -> str:
    """The scores of a match as a table, the best of each role first."""
    table = match_score_table(found)
    return "this match has no scores" if table is None else table.render(width=width)


@dataclass
class Page:
    """Formats the messages of one match."""

    match: MatchRow
    width: int | None
    item: Mapping[str, Any] = field(default_factory=dict)  # its fields, if the match has one

    def format_recalled(self, reader: RunReader, recalled: Sequence[Recalled]) -> list[str]:
        """The experiences from earlier matches that seats were shown."""
        from parley.results.demonstrations import recalls_lessons

        lines = []
        lessons = recalls_lessons(reader, self.match)
        for row in recalled:
            seat, shown = self.name(Seat.of(row.seat)), row.shown
            own = row.k - len(shown)
            more = [
                f"{plural(row.dropped, 'lesson' if lessons else 'experience')} left out because "
                "the prompt would be too long"
            ] * bool(row.dropped)
            if row.shuffle:
                more.append("shown the task's own examples in random order")
            elif own > 0 and not lessons:
                more.append(f"shown after up to {plural(own, 'example')} from the task itself")
            sources = [
                describe_shown(each, reader.match(each.match) if each.match > 0 else None)
                for each in shown
            ]
            count = plural(len(shown), "lesson" if lessons else "experience")
            lines.append("\n".join([f"{seat}: {', '.join([count, *more])}", *sources]))
        if not lines:
            return []
        return ["\n".join([self.draw_heading("recalled"), *map(self.quote, lines)])]

    def format_people(self, verdicts: Sequence[PeopleVerdict]) -> list[str]:
        """What people said of the match."""
        words = {True: "a success", False: "a failure", None: "undecided"}
        lines = [
            f"{self.name(said.seat)}: people have not voted yet"
            if said.is_open
            else f"{self.name(said.seat)}: {words[said.success]} ({said.yes} yes, {said.no} no, "
            f"{said.unsure} cannot tell)"
            for said in verdicts
        ]
        return ["\n".join([self.draw_heading("votes"), *map(self.quote, lines)])] if lines else []

    @property
    def room(self) -> int:
        """The maximum length of a line; lines in a file or a pipe are not wrapped."""
        return UNBROKEN if self.width is None else min(self.width, WIDEST)

    def draw_heading(self, title: str) -> str:
        return f"── {title} ".ljust(min(self.room, WIDEST), "─")

    def name(self, seat: Seat) -> str:
        """A seat and its model."""
        return make_visible(f"{seat} ({self.match.seats[seat]})")

    def quote(self, text: str) -> str:
        return wrap_text(text, self.room, WORDS_OF_OTHERS)

    def format_turn(self, turn: MatchTurn) -> list[str]:
        """A message with its sender, its audience and the violations of the reply."""
        if turn.seat is not None:
            broken = [
                make_visible(f"  ! {each.kind}: {each.detail}; {each.outcome}")
                for each in turn.violations
            ]
            words = [self.quote(turn.text)] if turn.text.strip() else []
            nothing = "" if words else " (empty)"
            return [f"{self.name(turn.seat)}:{nothing}", *words, *broken]
        everybody = len(turn.audience) == len(self.match.seats) > 1
        to = "all" if everybody else ", ".join(map(str, turn.audience))
        again = ", again" if turn.kind == "again" else ""
        return [f"referee to {to}{again}:", self.quote(turn.unread)]

    def format_note(self, note: NoteRow) -> str:
        text = f"note: {describe_note(note, self.match, self.item)}"
        return wrap_text(text, self.room - 6).replace("\n", "\n      ")
