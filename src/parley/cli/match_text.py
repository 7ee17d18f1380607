"""A match as text: the transcript, or the view of one seat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from parley.cli.terminal import wrap_text
from parley.errors import unknown_name
from parley.memory.experiences import ShownExperience
from parley.results.scores import parse_metric
from parley.results.transcript import rebuild_views
from parley.rules.items import LETTERS
from parley.rules.pool import Seat, as_message
from parley.store import MatchRow, NoteRow, RunReader, ViolationRow
from parley.tables import (
    Table,
    break_lines,
    format_number,
    make_visible,
    plural,
    round_half_up,
    shorten,
)

LONG, MANY = 200, 6  # characters of a note's value, and numbers of a list
WIDEST = 100  # columns of a text, even on a wider terminal
UNBROKEN = 2**31
WORDS_OF_OTHERS = "  │ "  # before every line from a model or the referee
LEFT_OUT = "[…]"
PASSAGE = 80  # characters; a repeated paragraph of at least this length is left out


def format_match(reader: RunReader, match: MatchRow, width: int | None = None) -> str:
    """The transcript of a match: the opening, every round in order, then the scores."""
    item = next((each for each in reader.items() if str(each["id"]) == match.item), {})
    page = Page(match, width, item)
    messages, notes = reader.messages(match.number), reader.notes_of(match.number)
    faults = list(reader.violations(match.number))
    rounds = sorted({*(each["round"] for each in messages), *(note.round for note in notes)})
    parts = [format_headline(reader, match, width), *page.format_recalled(reader)]
    for number in rounds:
        own = [each for each in messages if each["round"] == number]
        # first the messages of the round, then the rule's notes, then what seats were told
        after = number and [each for each in own if each["kind"] == "tell"]
        during = [each for each in own if not after or each not in after]
        written = [page.format_note(note) for note in notes if note.round == number]
        lines = [
            *(line for each in during for line in page.format_message(each, faults)),
            *written,
            *(line for each in after or () for line in page.format_message(each, faults)),
        ]
        title = f"round {number}" if number else "before the first round"
        parts.append("\n".join([page.draw_heading(title), *lines]))
    parts.append(page.draw_heading("scores") + "\n" + format_scores(reader, match, width))
    parts += page.format_people(reader)
    if page.left_out:
        left_out = f"{LEFT_OUT}: text that these seats have read before; --seat NAME prints all"
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
    parts.append(page.draw_heading("scores") + "\n" + format_scores(reader, match, width))
    return "\n\n".join(parts)


def describe_shown(shown: ShownExperience, source: MatchRow | None) -> str:
    """The source of an experience that a seat was shown."""
    if source is None:
        return f"shown from another run, distance {shown.distance:.3g}"
    item = f", item {source.item}" if source.item is not None else ""
    return f"shown from match {shown.match}{item}, distance {shown.distance:.3g}"


def find_seat(match: MatchRow, text: str) -> Seat:
    """Find a seat by its name (`Player 1`), its key (`players.1`), or an alias with one seat."""
    wanted = text.casefold()
    for seat in match.seats:
        if wanted in (seat.key.casefold(), str(seat).casefold()):
            return seat
    held = [seat for seat, alias in match.seats.items() if alias == text]
    if len(held) == 1:
        return held[0]
    names = [str(seat) for seat in match.seats]
    raise unknown_name("seat", text, [*names, *dict.fromkeys(match.seats.values())])


def format_headline(reader: RunReader, match: MatchRow, width: int | None) -> str:
    """The match, how it ended, and the model in each seat."""
    info = reader.info
    ended = f" after {plural(match.rounds, 'round')}" if match.rounds is not None else ""
    why = f" ({match.reason})" if match.reason else ""
    item = f", item {match.item}" if match.item is not None else ""
    arm = f" of arm {match.arm}" if match.arm else ""
    evolved = f", round {match.stage}{arm}" if info.config.evolve is not None else ""
    head = f"match {match.number} of {info.id}{item}{evolved}: {match.state}{ended}{why}"
    seats = [f"{seat}: {alias}" for seat, alias in match.seats.items()]
    return break_lines(make_visible("\n".join([head, *seats])), width)


def format_scores(reader: RunReader, match: MatchRow, width: int | None) -> str:
    """The scores of a match as a table, the best of each role first."""
    metrics = [parse_metric(each) for each in reader.info.identity["metrics"]]
    found = reader.scores_of(match.number)
    given = [each for each in metrics if any(each.name in by for by in found.values())]
    if not given:
        return "this match has no scores"

    def place(seat: Seat) -> tuple[int, float]:
        values = [(each, found[seat].get(each.name)) for each in given]
        first = next(((each, value) for each, value in values if value is not None), None)
        if first is None:
            return order[seat.role], 0.0
        return order[seat.role], first[1] if first[0].better == "lower" else -first[1]

    order = {role: at for at, role in enumerate(dict.fromkeys(seat.role for seat in match.seats))}
    header = ["seat", "model"] + [f"{m.name} ({m.unit})" if m.unit else m.name for m in given]
    rows = []
    for seat in sorted(found, key=place):
        idle = " (fills a seat, not scored)" if seat in match.idle else ""
        values = [format_number(found[seat].get(each.name), each.digits) for each in given]
        rows.append([str(seat), f"{match.seats[seat]}{idle}", *values])
    return Table(header, rows, left=2).render(width=width)


@dataclass
class Page:
    """Formats the messages of one match, and remembers what each seat has read."""

    match: MatchRow
    width: int | None
    item: Mapping[str, Any] = field(default_factory=dict)  # its fields, if the match has one
    left_out: bool = False
    _read: set[tuple[str, str]] = field(default_factory=set)  # seat, paragraph

    def format_recalled(self, reader: RunReader) -> list[str]:
        """The experiences from earlier matches that seats were shown."""
        from parley.results.demonstrations import recalls_lessons

        lines = []
        lessons = recalls_lessons(reader, self.match)
        for row in reader.read_recalled(self.match.number):
            seat, shown = self.name(Seat.of(row.seat)), row.shown
            own = row.k - len(shown)
            more = [
                f"{plural(row.dropped, 'lesson' if lessons else 'experience')} left out (too long)"
            ] * bool(row.dropped)
            if row.shuffle:
                more.append("the task's examples, shuffled")
            elif own > 0 and not lessons:
                more.append(f"after up to {plural(own, 'example')} of the task")
            sources = [
                describe_shown(each, reader.match(each.match) if each.match > 0 else None)
                for each in shown
            ]
            count = plural(len(shown), "lesson" if lessons else "experience")
            lines.append("\n".join([f"{seat}: {', '.join([count, *more])}", *sources]))
        if not lines:
            return []
        return ["\n".join([self.draw_heading("recalled"), *map(self.quote, lines)])]

    def format_people(self, reader: RunReader) -> list[str]:
        """What people said of the match."""
        words = {True: "a success", False: "a failure", None: "undecided"}
        lines = [
            f"{self.name(said.seat)}: people have not voted yet"
            if said.is_open
            else f"{self.name(said.seat)}: {words[said.success]} ({said.yes} yes, {said.no} no, "
            f"{said.unsure} cannot tell)"
            for said in reader.people_verdicts(self.match.number)
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

    def format_message(
        self, message: Mapping[str, Any], faults: Sequence[ViolationRow]
    ) -> list[str]:
        """A message with its sender, its audience and the violations of the reply."""
        if message["kind"] == "reply":
            seat, said = Seat.of(message["sender"]), message["content"] or ""
            broken = [
                make_visible(f"  ! {each.kind}: {each.detail}; {each.outcome}")
                for each in faults
                if (each.round, each.seat, each.attempt)
                == (message["round"], seat, message["attempt"])
            ]
            words = [self.quote(said)] if said.strip() else []
            nothing = "" if words else " (empty)"
            return [f"{self.name(seat)}:{nothing}", *words, *broken]
        audience = [Seat.of(key) for key in message["audience"]]
        everybody = len(audience) == len(self.match.seats) > 1
        to = "all" if everybody else ", ".join(map(str, audience))
        again = ", again" if message["kind"] == "again" else ""
        unread = self._unread(message["content"], message["audience"])
        return [f"referee to {to}{again}:", self.quote(unread)]

    def _unread(self, text: str, audience: Iterable[str]) -> str:
        """A text without the long paragraphs that its whole audience has read before. A message
        with nothing new stays complete, because the repetition itself may matter."""
        paragraphs = text.split("\n\n")
        keys = {each: {(seat, each) for seat in audience} for each in paragraphs}
        known = {each for each in paragraphs if len(each) >= PASSAGE and keys[each] <= self._read}
        self._read = self._read.union(*keys.values())
        if known.issuperset(paragraphs):
            return text
        kept: list[str] = []
        for paragraph in paragraphs:
            if paragraph not in known:
                kept.append(paragraph)
            elif kept[-1:] != [LEFT_OUT]:
                kept.append(LEFT_OUT)
                self.left_out = True
        return "\n\n".join(kept).replace(f"\n\n{LEFT_OUT}", f" {LEFT_OUT}")

    def format_note(self, note: NoteRow) -> str:
        """A note of the rule in one line, with verdicts and votes in words and seats by name."""
        facts = name_seats(dict(note.facts), self.match.seats)
        given = next((name for name in ("answer", "first") if name in facts), "")
        verdict = describe_answer(facts, given, self.item) if given else ""
        if verdict:
            facts = {name: facts[name] for name in facts if name not in (given, "right")}
        text = f"note: {'; '.join(filter(None, [verdict, format_facts(facts)]))}"
        return wrap_text(text, self.room - 6).replace("\n", "\n      ")


def name_seats(value: Any, seats: Iterable[Seat]) -> Any:
    """Replace the keys of seats with their names."""
    names = {seat.key: str(seat) for seat in seats}

    def named(value: Any) -> Any:
        if isinstance(value, dict):
            return {names.get(key, key): named(each) for key, each in value.items()}
        return [named(each) for each in value] if isinstance(value, list) else value

    return named(value)


def describe_answer(facts: Mapping[str, Any], given: str, item: Mapping[str, Any]) -> str:
    """The answer to a question, and whether it is correct; empty for any other note."""
    said, right, key = facts[given], facts.get("right"), item.get("answer")
    if not isinstance(right, bool) or not isinstance(key, str) or not isinstance(said, str | None):
        return ""
    answered = "no readable answer" if said is None else f"answer {with_choice(said, item)}"
    verdict = "correct" if right else f"wrong, expected {with_choice(key, item)}"
    return f"{answered}: {verdict}"


def with_choice(answer: str, item: Mapping[str, Any]) -> str:
    """An answer, with the text of its choice if the answer is a letter."""
    texts = dict(zip(LETTERS, item.get("choices") or (), strict=False))
    return shorten(f"{answer} ({texts[answer]})" if answer in texts else answer, LONG)


def is_empty(value: Any) -> bool:
    """Whether a value is empty; 0 and false are not."""
    return value is None or (isinstance(value, str | list | dict) and not value)


def format_facts(facts: Mapping[str, Any]) -> str:
    """Facts in one line, with verdicts on programs and votes of judges in words; empty values are
    left out."""
    rest, parts = {name: value for name, value in facts.items() if not is_empty(value)}, []
    if isinstance(faults := rest.get("faults"), list) and "passed" in rest:
        passed, end, guarantee = rest.pop("passed"), rest.pop("end", ""), rest.pop("guarantee", "")
        first = next(
            (
                f" test {n} of {len(faults)}: {shorten(fault, LONG)}"
                for n, fault in enumerate(faults, 1)
                if fault
            ),
            "",
        )
        parts.append("passed" if passed else f"failed{first}")
        parts += [
            f"{name} {value}" for name, value in (("end", end), ("guarantee", guarantee)) if value
        ]
        del rest["faults"]
    if isinstance(votes := rest.get("votes"), dict) and all(
        isinstance(given, dict) for given in votes.values()
    ):
        parts += [
            f"{judge} votes "
            + ", ".join(f"{seat} {format_vote(vote)}" for seat, vote in votes[judge].items())
            for judge in votes
        ]
        del rest["votes"]
    return "; ".join([*(f"{name} {format_fact(value)}" for name, value in rest.items()), *parts])


def format_vote(vote: Any) -> str:
    """A vote without the judge's reasons."""
    return format_fact(vote["score"] if isinstance(vote, dict) and "score" in vote else vote)


def format_fact(value: Any) -> str:
    """A value of a note, shortened and rounded."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {format_fact(each)}" for name, each in value.items())
    if isinstance(value, float):
        small = 0 < abs(value) < 1
        text = f"{value:.3g}" if small else round_half_up(value).rstrip("0").rstrip(".")
        return text or "0"
    if isinstance(value, list) and all(isinstance(each, int | float) for each in value):
        more = [f"… ({len(value)} numbers)"] if len(value) > MANY else []
        return f"[{', '.join([*map(format_fact, value[:MANY]), *more])}]"
    return shorten(value if isinstance(value, str) else orjson.dumps(value).decode(), LONG)
