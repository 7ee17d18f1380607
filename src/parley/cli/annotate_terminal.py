"""Voting at the terminal: one pair after another, without names."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Literal

import click

from parley.annotation.study import CRITERIA, Exchange, Sheet, sheet
from parley.cli.progress_line import say
from parley.cli.terminal import wrapped
from parley.errors import UsageError
from parley.statistics.preferences import Choice, votes_needed
from parley.store import RunRef
from parley.store.sqlite.votes import Annotator, Study, Votes
from parley.tables import plural

WIDEST = 110
KEYS: dict[str, Choice] = {"a": "A", "b": "B", "t": "tie"}
ANSWERS = {
    "recorded": "recorded",
    "same": "you had said so",
    "changed": "changed; both votes stay on record",
    "not needed": "others have completed this pair meanwhile; your vote was not needed",
}


def voted(
    votes: Votes, study: Study, me: Annotator, refs: Mapping[str, RunRef], change: Sequence[int]
) -> None:
    """Show pairs and take votes until nothing is left for this person, they stop, or the input
    ends."""
    try:
        again(votes, study, me, refs, change) if change else onward(votes, study, me, refs)
    finally:
        votes.release(study, me)


def onward(votes: Votes, study: Study, me: Annotator, refs: Mapping[str, RunRef]) -> None:
    """The pairs that still need this person's vote."""
    pairs, skipped, count = votes.pairs(study), set[int](), 0
    while (found := votes.offer(study, me, skipped)) is not None:
        own = sum(me.name in by for by in votes.votes(study).values())
        say(
            f"pair {found}; {plural(own, 'vote')} by you so far, at most "
            f"{left(votes, study, me)} to go"
        )
        answer = asked(sheet(found, pairs[found], refs), study.ties)
        if answer == "stop":
            say(f"stopped after {plural(count, 'vote')}; go on whenever you like")
            return
        if answer == "skip":
            skipped.add(found)
            continue
        count += taken(votes, study, found, me, answer)
    say(
        f"nothing is left for you{f' but what you skipped ({len(skipped)})' if skipped else ''}: "
        f"thank you"
    )


def again(
    votes: Votes, study: Study, me: Annotator, refs: Mapping[str, RunRef], change: Sequence[int]
) -> None:
    """Pairs on which this person has voted and wants to vote otherwise."""
    pairs, given = votes.pairs(study), votes.votes(study)
    for number in change:
        if me.name not in given.get(number, {}):
            raise UsageError(
                f"{me.name} has not voted on a pair {number}: there is nothing to change"
            )
    for number in change:
        say(f"pair {number}; so far you say {given[number][me.name]}")
        answer = asked(sheet(number, pairs[number], refs), study.ties)
        if answer == "stop":
            return
        if answer != "skip":
            taken(votes, study, number, me, answer, change=True)


def taken(
    votes: Votes, study: Study, number: int, me: Annotator, choice: Choice, change: bool = False
) -> bool:
    """Record a vote and say so, once it is on disk; whether it counts."""
    try:
        found = votes.vote(study, number, me, choice, change)
    except UsageError as wrong:  # the same person has voted elsewhere meanwhile
        say(str(wrong))
        return False
    say(f"pair {number}: {ANSWERS[found]}")
    return found != "not needed"


def left(votes: Votes, study: Study, me: Annotator) -> int:
    """How many pairs need a vote that this person may give."""
    return sum(
        votes_needed(list(by.values())) > 0 and me.name not in by
        for by in votes.votes(study).values()
    )


def asked(shown: Sheet, ties: bool) -> Choice | Literal["skip", "stop"]:
    """Show a pair and read what the person says of it; the end of the input is a stop."""
    click.echo(page(shown, min(WIDEST, shutil.get_terminal_size().columns)))
    keys = f"A or B{', t (both alike)' if ties else ''}, s (skip), q (stop)"
    while True:
        print(f"Which is better? {keys}: ", end="", file=sys.stderr, flush=True)
        try:
            line = sys.stdin.readline()
        except (AttributeError, OSError, ValueError) as wrong:
            raise UsageError(f"the input cannot be read: {wrong}") from None
        answer = line.strip().casefold()
        if not line or answer == "q":
            return "stop"
        if answer == "s":
            return "skip"
        if answer in KEYS and (ties or answer != "t"):
            return KEYS[answer]
        say(f"wanted {keys}")


def page(shown: Sheet, width: int) -> str:
    """A pair as text: what was said stands behind a line at the left, so that it cannot pass for
    anything else."""
    parts = [
        f"\n{rule(f'pair {shown.number}', '═', width)}",
        wrapped(shown.question, width, "  │ "),
    ]
    if shown.choices:
        parts.append(wrapped(shown.choices, width, "  │ "))
    parts += ["right answer:", wrapped(shown.right, width, "  │ ")]
    for name, said in (("A", shown.a), ("B", shown.b)):
        parts.append(f"\n{rule(f'conversation {name}', '─', width)}")
        parts += [
            line for number, each in enumerate(said) for line in exchanged(number, each, width)
        ]
    criteria = "; ".join(f"{name}: {what}" for name, what in CRITERIA.items())
    return "\n".join([*parts, f"\n{rule('criteria', '─', width)}", wrapped(criteria, width)])


def exchanged(number: int, each: Exchange, width: int) -> list[str]:
    """A question and the reply to it; the first reply is the answer to the question of the pair."""
    asking = [f"question {number}:", wrapped(each.asked, width, "  │ ")] if number else []
    cut = " (cut off by the limit of length)" if each.cut else ""
    heading = f"{f'reply {number}' if number else 'first answer'}{cut}:"
    return [
        *asking,
        heading if each.said else f"{heading} (no words)",
        *([wrapped(each.said, width, "  │ ")] if each.said else []),
    ]


def rule(title: str, line: str, width: int) -> str:
    return f"{line * 2} {title} ".ljust(width, line)
