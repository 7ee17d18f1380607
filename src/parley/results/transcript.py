"""A match read back from its record: what was said in which round, and what each seat saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parley.match.record import RecordedCall
from parley.memory.experiences import Recalled, ShownExperience
from parley.memory.feedback import PeopleVerdict
from parley.results.scores import parse_metric
from parley.rules.pool import Seat
from parley.rules.task import Metric
from parley.store import MatchRow, NoteRow, RunReader, ViolationRow

LEFT_OUT = "[…]"
PASSAGE = 80  # characters; a repeated paragraph of at least this length is left out


@dataclass(frozen=True)
class MatchTurn:
    """One message of a match: a reply of a seat, or a text of the referee."""

    round: int
    kind: str  # tell, ask, again or reply
    seat: Seat | None  # None: the referee
    audience: tuple[Seat, ...]
    text: str
    unread: str  # the text without long paragraphs that its whole audience has read before
    attempt: int
    violations: tuple[ViolationRow, ...] = ()  # of this reply
    call: RecordedCall | None = None  # of this reply


@dataclass(frozen=True)
class MatchRound:
    """One round: what was said, then the rule's notes, then what seats were told afterwards."""

    number: int  # 0: before the first round
    turns: tuple[MatchTurn, ...]
    notes: tuple[NoteRow, ...]
    told: tuple[MatchTurn, ...]


@dataclass(frozen=True)
class Transcript:
    """Everything on record for one match, in the order of time."""

    match: MatchRow
    item: Mapping[str, Any]  # its fields; empty if the match has none
    rounds: tuple[MatchRound, ...]
    violations: tuple[ViolationRow, ...]
    metrics: tuple[Metric, ...]  # those that a seat has
    scores: Mapping[Seat, Mapping[str, float | None]]  # the best seat of each role first
    recalled: tuple[Recalled, ...]
    people: tuple[PeopleVerdict, ...]

    @property
    def leaves_out(self) -> bool:
        """Whether a text is shorter in `unread`."""
        return any(
            turn.text != turn.unread
            for round in self.rounds
            for turn in (*round.turns, *round.told)
        )


def read_transcript(reader: RunReader, match: MatchRow) -> Transcript:
    """The record of a match."""
    number = match.number
    items = reader.items() if match.item is not None else []
    item = next((each for each in items if str(each["id"]) == match.item), {})
    violations, notes = tuple(reader.violations(number)), reader.notes_of(number)
    turns = list(read_turns(reader, match, violations))
    rounds = []
    for at in sorted({*(turn.round for turn in turns), *(note.round for note in notes)}):
        own = [turn for turn in turns if turn.round == at]
        # the referee's words after the replies come after the notes of the round
        rounds.append(
            MatchRound(
                at,
                tuple(turn for turn in own if not (at and turn.kind == "tell")),
                tuple(note for note in notes if note.round == at),
                tuple(turn for turn in own if at and turn.kind == "tell"),
            )
        )
    scores = reader.scores_of(number)
    metrics = [parse_metric(each) for each in reader.info.identity["metrics"]]
    given = tuple(each for each in metrics if any(each.name in by for by in scores.values()))
    order = sorted(scores, key=lambda seat: rank_in_match(match, given, seat, scores[seat]))
    return Transcript(
        match,
        item,
        tuple(rounds),
        violations,
        given,
        {seat: scores[seat] for seat in order},
        tuple(reader.read_recalled(number)),
        tuple(reader.people_verdicts(number)),
    )


def read_turns(
    reader: RunReader, match: MatchRow, violations: Iterable[ViolationRow]
) -> Iterable[MatchTurn]:
    """The messages of a match in order."""
    faults: dict[tuple[int, Seat, int], list[ViolationRow]] = {}
    for each in violations:
        faults.setdefault((each.round, each.seat, each.attempt), []).append(each)
    calls = {(call.round, call.seat, call.attempt): call for call in reader.calls(match.number)}
    paragraphs = ReadParagraphs()
    for message in reader.messages(match.number):
        round, attempt = message["round"], message["attempt"]
        audience = tuple(Seat.of(key) for key in message["audience"])
        text = message["content"] or ""
        if message["kind"] == "reply":
            seat = Seat.of(message["sender"])
            place = round, seat, attempt
            own = tuple(faults.get(place, ()))
            yield MatchTurn(
                round, "reply", seat, audience, text, text, attempt, own, calls.get(place)
            )
        else:
            unread = paragraphs.leave_out(text, audience)
            yield MatchTurn(round, message["kind"], None, audience, text, unread, attempt)


def rank_in_match(
    match: MatchRow, metrics: Sequence[Metric], seat: Seat, scores: Mapping[str, float | None]
) -> tuple[int, float]:
    """Sort key of a seat: roles in order, in each role the best first."""
    roles = list(dict.fromkeys(each.role for each in match.seats))
    for metric in metrics:
        value = scores.get(metric.name)
        if value is not None:
            return roles.index(seat.role), value if metric.better == "lower" else -value
    return roles.index(seat.role), 0.0


@dataclass
class ReadParagraphs:
    """Remembers which paragraphs each seat has read."""

    _read: set[tuple[Seat, str]] = field(default_factory=set)

    def leave_out(self, text: str, audience: Iterable[Seat]) -> str:
        """A text without the long paragraphs that its whole audience has read before. A message
        with nothing new stays complete, because the repetition itself may matter."""
        seats, paragraphs = tuple(audience), text.split("\n\n")
        keys = {each: {(seat, each) for seat in seats} for each in paragraphs}
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
        return "\n\n".join(kept).replace(f"\n\n{LEFT_OUT}", f" {LEFT_OUT}")


def describe_shown(shown: ShownExperience, source: MatchRow | None) -> str:
    """The source of an experience that a seat was shown."""
    if source is None:
        return f"taken from another run (distance {shown.distance:.3g} from this item)"
    item = f", item {source.item}" if source.item is not None else ""
    return f"taken from match {shown.match}{item} (distance {shown.distance:.3g} from this item)"
