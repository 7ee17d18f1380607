"""The experiences that a seat was shown: where they come from, and their texts, read from their
matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from parley.errors import StoreError
from parley.memory.experiences import Recalled, ShownExperience
from parley.memory.interactions import collect_interactions
from parley.rules.pool import Example, Seat
from parley.store.feedback_notes import FeedbackOnRecord, read_feedback
from parley.store.reader import RunReader
from parley.store.types import MatchRow
from parley.tables import plural


def recalls_lessons(reader: RunReader, match: MatchRow) -> bool:
    """Whether a match was shown lessons instead of demonstrations."""
    evolve = reader.info.config.evolve
    return evolve is not None and match.arm != "" and evolve.arm(match.arm).memory == "insights"


@dataclass(frozen=True)
class RecalledInWords:
    """What a seat was shown from earlier matches, and where each of it comes from."""

    text: str
    sources: tuple[str, ...]


def describe_recalled(reader: RunReader, match: MatchRow) -> Iterator[RecalledInWords]:
    """What each seat of a match was shown from earlier matches."""
    lessons = recalls_lessons(reader, match)
    noun = "lesson" if lessons else "experience"
    for row in reader.experiences.recalled(match.number):
        own, seat = row.k - len(row.shown), Seat.of(row.seat)
        words = [plural(len(row.shown), noun)]
        if row.dropped:
            words.append(
                f"{plural(row.dropped, noun)} left out because the prompt would be too long"
            )
        if row.shuffle:
            words.append("shown the task's own examples in random order")
        elif own > 0 and not lessons:
            words.append(f"shown after up to {plural(own, 'example')} from the task itself")
        sources = (
            describe_shown(each, reader.matches.find(each.match) if each.match > 0 else None)
            for each in row.shown
        )
        yield RecalledInWords(f"{seat} ({match.seats[seat]}): {', '.join(words)}", tuple(sources))


def describe_shown(shown: ShownExperience, source: MatchRow | None) -> str:
    """The source of an experience that a seat was shown."""
    if source is None:
        return f"taken from another run (distance {shown.distance:.3g} from this item)"
    item = f", item {source.item}" if source.item is not None else ""
    return f"taken from match {shown.match}{item} (distance {shown.distance:.3g} from this item)"


def read_demonstrations(
    reader: RunReader, recalled: Recalled
) -> Iterator[tuple[ShownExperience, MatchRow | None, str]]:
    """Every experience that a seat was shown, in order, with its match and its text."""
    match = reader.matches.find(recalled.match)
    lessons = match is not None and recalls_lessons(reader, match)
    feedback = read_feedback(reader) if lessons else FeedbackOnRecord()
    transferred = (
        reader.experiences.transferred() if any(each.match < 0 for each in recalled.shown) else []
    )
    for shown in recalled.shown:
        if shown.match < 0:
            if -shown.match > len(transferred):
                raise StoreError(
                    f"match {recalled.match} was shown experience {-shown.match:,} from another "
                    f"run, but only {len(transferred):,} such experiences are on record: the "
                    "record is damaged"
                )
            other = transferred[-shown.match - 1]
            yield shown, None, other.lesson if lessons else format_turns(other.turns)
            continue
        if lessons:
            words = feedback.lesson(shown.match, Seat.of(shown.seat))
            yield shown, reader.matches.find(shown.match), words
            continue
        turns: tuple[Example, ...] = ()
        for played in reader.messages.recorded_matches(shown.match - 1, shown.match):
            interaction = collect_interactions(played).get(shown.seat)
            turns = interaction.turns if interaction is not None else ()
        yield shown, reader.matches.find(shown.match), format_turns(turns)


def format_turns(turns: Sequence[Example]) -> str:
    """Demonstrations as one text."""
    return "\n\n".join(f"{turn.question}\n\n→ {turn.answer}" for turn in turns)
