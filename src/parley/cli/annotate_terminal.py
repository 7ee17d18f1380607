"""Voting at the terminal: one pair after another, without names."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

import click

from parley.annotation.ballots import VoteOutcome
from parley.annotation.pair_ballots import (
    cast_vote,
    count_open_pairs,
    offer_pair,
)
from parley.annotation.sheets import Exchange, Sheet, SheetFormat, make_sheet
from parley.cli.progress_line import say
from parley.cli.terminal import wrap_text
from parley.errors import UsageError
from parley.results.human_votes import votes_by_name
from parley.statistics.preferences import Preference
from parley.store import Annotator, RunRef, Study, VoteStore
from parley.tables import plural

WIDEST = 110
Choice = TypeVar("Choice", bound=str)
KEYS: dict[str, Preference] = {"a": "A", "b": "B", "t": "tie"}
ANSWERS: dict[VoteOutcome, str] = {
    "recorded": "recorded",
    "same": "unchanged",
    "changed": "vote changed; the record keeps both votes",
    "not needed": "not counted: other annotators have completed this pair in the meantime",
}


def take_votes(
    votes: VoteStore,
    study: Study,
    me: Annotator,
    sheet: SheetFormat,
    refs: Mapping[str, RunRef],
    change: Sequence[int],
) -> None:
    """Show pairs and take votes until nothing is left for this person, they stop, or the input
    ends."""
    try:
        if change:
            change_votes(votes, study, me, sheet, refs, change)
        else:
            take_new_votes(votes, study, me, sheet, refs)
    finally:
        votes.release_pair(study, me)


def take_new_votes(
    votes: VoteStore,
    study: Study,
    me: Annotator,
    sheet: SheetFormat,
    refs: Mapping[str, RunRef],
) -> None:
    """Take votes on the pairs that still need this person's vote."""
    pairs, skipped, count = votes.pairs(study), set[int](), 0
    while (found := offer_pair(votes, study, me, skipped)) is not None:
        own = sum(me.id in by for by in votes.votes(study).values())
        say(
            f"pair {found}; you have given {plural(own, 'vote')} and have at most "
            f"{plural(count_open_pairs(votes, study, me), 'pair')} left"
        )
        answer = ask_choice(make_sheet(found, pairs[found], refs, sheet), sheet, study.ties)
        if answer == "stop":
            say(f"stopped after {plural(count, 'vote')}; run the same command to continue")
            return
        if answer == "skip":
            skipped.add(found)
            continue
        count += record_choice(votes, study, found, me, answer)
    left = f" except {plural(len(skipped), 'pair')} that you skipped" if skipped else ""
    say(f"You have voted on all your pairs{left}. Thank you!")


def change_votes(
    votes: VoteStore,
    study: Study,
    me: Annotator,
    sheet: SheetFormat,
    refs: Mapping[str, RunRef],
    change: Sequence[int],
) -> None:
    """Ask again about pairs that this person has voted on."""
    pairs, given = votes.pairs(study), votes_by_name(votes, study)
    for number in change:
        if me.name not in given.get(number, {}):
            raise UsageError(
                f"{me.name} has not voted on pair {number}, so there is no vote to change"
            )
    for number in change:
        say(f"pair {number}; your vote is {given[number][me.name]}")
        answer = ask_choice(make_sheet(number, pairs[number], refs, sheet), sheet, study.ties)
        if answer == "stop":
            return
        if answer != "skip":
            record_choice(votes, study, number, me, answer, change=True)


def record_choice(
    votes: VoteStore,
    study: Study,
    number: int,
    me: Annotator,
    choice: Preference,
    change: bool = False,
) -> bool:
    """Record a vote and print a confirmation once it is on disk; return whether it counts."""
    try:
        found = cast_vote(votes, study, number, me, choice, change)
    except UsageError as wrong:  # the same person has voted elsewhere in the meantime
        say(str(wrong))
        return False
    say(f"pair {number}: {ANSWERS[found]}")
    return found != "not needed"


def ask_choice(
    shown: Sheet, sheet: SheetFormat, ties: bool
) -> Preference | Literal["skip", "stop"]:
    """Show a pair and read the person's preference; the end of the input means stop."""
    width = min(WIDEST, shutil.get_terminal_size().columns)
    click.echo(render_sheet(shown, sheet, width))
    named = f"A, B{', t (tie)' if ties else ''}, s (skip) or q (quit)"
    keys = {key: choice for key, choice in KEYS.items() if ties or key != "t"}
    return ask_for_key(f"Which {sheet.noun} is better?", named, keys)


def ask_for_key(
    question: str, named: str, keys: Mapping[str, Choice]
) -> Choice | Literal["skip", "stop"]:
    """Ask until one of the keys is typed; s means skip, q or the end of the input means stop."""
    while True:
        print(f"{question} {named}: ", end="", file=sys.stderr, flush=True)
        try:
            line = sys.stdin.readline()
        except (AttributeError, OSError, ValueError) as wrong:
            raise UsageError(
                f"your input cannot be read ({wrong}): type one of the letters shown"
            ) from None
        answer = line.strip().casefold()
        if not line or answer == "q":
            return "stop"
        if answer == "s":
            return "skip"
        if answer in keys:
            return keys[answer]
        say(f"please answer {named}")


def render_sheet(shown: Sheet, sheet: SheetFormat, width: int) -> str:
    """A pair as text. Every line that a model wrote has a bar at the left, so that it cannot be
    mistaken for anything else."""
    parts = [
        f"\n{draw_rule(f'pair {shown.number}', '═', width)}",
        wrap_text(shown.item.question, width, "  │ "),
    ]
    if shown.item.choices:
        parts.append(wrap_text(shown.item.choices, width, "  │ "))
    if shown.item.right:
        parts += [f"{shown.item.right_name}:", wrap_text(shown.item.right, width, "  │ ")]
    for name, exchanges in (("A", shown.a), ("B", shown.b)):
        parts.append(f"\n{draw_rule(f'{sheet.noun} {name}', '─', width)}")
        parts += [
            line
            for number, each in enumerate(exchanges)
            for line in render_exchange(number, each, sheet, width)
        ]
    text = "; ".join(f"{name}: {what}" for name, what in sheet.criteria.items())
    return "\n".join([*parts, f"\n{draw_rule('criteria', '─', width)}", wrap_text(text, width)])


def render_exchange(number: int, each: Exchange, sheet: SheetFormat, width: int) -> list[str]:
    """A question and the reply to it; the first reply is the answer to the question of the pair."""
    first = "first answer" if sheet.noun == "conversation" else sheet.noun
    asking = [f"question {number}:", wrap_text(each.asked, width, "  │ ")] if number else []
    cut = " (cut off at the token limit)" if each.cut else ""
    heading = f"{f'reply {number}' if number else first}{cut}:"
    return [
        *asking,
        heading if each.said else f"{heading} (empty)",
        *([wrap_text(each.said, width, "  │ ")] if each.said else []),
    ]


def draw_rule(title: str, line: str, width: int) -> str:
    return f"{line * 2} {title} ".ljust(width, line)
