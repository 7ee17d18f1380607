"""Notes of a rule in words: verdicts on answers and programs, votes of judges, other facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import orjson

from parley.rules.items.question import LETTERS
from parley.rules.pool import Seat
from parley.store.types import MatchRow, NoteRow
from parley.tables import round_half_up, shorten

LONG, MANY = 200, 6  # characters of a note's value, and numbers of a list


MarkKind: TypeAlias = Literal["", "good", "warn", "bad"]


@dataclass(frozen=True)
class Mark:
    """A few words on a run, a match, a reply or a note, and whether they are good news."""

    text: str
    kind: MarkKind = ""
    place: str | None = None  # where the page of the run says more: the end of an anchor


def describe_note(
    note: NoteRow, match: MatchRow, item: Mapping[str, Any], mask: Callable[[str], str]
) -> Mark:
    """A note of the rule with verdicts and votes in words and seats by name."""
    facts = mask_data(dict(note.facts), mask)
    passed = facts.get("passed", facts.get("right"))
    verdict: MarkKind = "good" if passed is True else "bad" if passed is False else ""
    return Mark(write_note(facts, match, item), verdict)


def write_note(facts: Mapping[str, Any], match: MatchRow, item: Mapping[str, Any]) -> str:
    """The facts of a note in one line."""
    facts = name_seats(facts, match.seats)
    given = next((name for name in ("answer", "first") if name in facts), "")
    verdict = describe_answer(facts, given, item) if given else ""
    if verdict:
        facts = {name: facts[name] for name in facts if name not in (given, "right")}
    return "; ".join(filter(None, [verdict, format_facts(facts)]))


def mask_data(value: Any, mask: Callable[[str], str]) -> Any:
    """Plain data with all its texts masked."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, dict):
        return {mask(name): mask_data(each, mask) for name, each in value.items()}
    return [mask_data(each, mask) for each in value] if isinstance(value, list) else value


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
