"""Voting at the terminal: one ballot after another, without names."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from parley.annotation.ballots import VoteChoice, VoteOutcome
from parley.annotation.sheets import Exchange, JudgedConversation, Sheet
from parley.annotation.voters import OpenVoter
from parley.cli.progress_line import say
from parley.cli.terminal import wrap_text
from parley.errors import UsageError
from parley.tables import plural

WIDEST = 110
SKIP, STOP = VoteChoice("skip", "s (skip)", ""), VoteChoice("stop", "q (quit)", "")
ANSWERS: dict[VoteOutcome, str] = {
    "recorded": "recorded",
    "same": "unchanged",
    "changed": "vote changed; the record keeps both votes",
    "not needed": "not counted: {late}",
}


def take_votes(open_voter: OpenVoter, change: Sequence[int]) -> None:
    """Show ballots and take votes until nothing is left for this person, they stop, or the input
    ends. No run is kept open while they read."""
    try:
        if change:
            change_votes(open_voter, change)
        else:
            take_new_votes(open_voter)
    finally:
        with open_voter() as voter:
            voter.leave()


def take_new_votes(open_voter: OpenVoter) -> None:
    """Take votes on what still needs this person's vote."""
    skipped, count = set[Any](), 0
    while True:
        with open_voter() as voter:
            place = voter.offer(skipped)
            if place is None:
                break
            given = plural(len(voter.own_votes()), "vote")
            say(f"{voter.describe(place)}; you have given {given}; {voter.describe_progress()}")
            shown = voter.read(place)
        match ask_vote(shown, voter.choices):
            case STOP.value:
                say(f"stopped after {plural(count, 'vote')}; run the same command to continue")
                return
            case SKIP.value:
                skipped.add(place)
            case choice:
                count += record_choice(open_voter, place, choice)
    with open_voter() as voter:
        if not voter.own_votes() and not skipped:
            say(f"no {voter.noun} needs a vote of yours now")
            return
    left = f" except {plural(len(skipped), voter.noun)} that you skipped" if skipped else ""
    say(f"You have voted on all your {voter.noun}s{left}. Thank you!")


def change_votes(open_voter: OpenVoter, change: Sequence[int]) -> None:
    """Ask again about what this person has voted on."""
    with open_voter() as voter:
        places = [place for number in change for place in voter.find_own(number)]
    for place in places:
        with open_voter() as voter:
            say(f"{voter.describe(place)}; your vote is {voter.own_votes()[place]}")
            shown = voter.read(place)
        answer = ask_vote(shown, voter.choices)
        if answer == STOP.value:
            return
        if answer != SKIP.value:
            record_choice(open_voter, place, answer, change=True)


def record_choice(open_voter: OpenVoter, place: Any, choice: str, change: bool = False) -> bool:
    """Record a vote and print a confirmation once it is on disk; return whether it counts."""
    try:
        with open_voter() as voter:
            found = voter.vote(place, choice, change)
    except UsageError as wrong:  # the same person has voted elsewhere in the meantime
        say(str(wrong))
        return False
    say(f"{voter.describe(place)}: {ANSWERS[found].format(late=voter.late)}")
    return found != "not needed"


def ask_vote(shown: Sheet | JudgedConversation, choices: Sequence[VoteChoice]) -> str:
    """Show a ballot and read the person's choice; the end of the input means stop."""
    width = min(WIDEST, shutil.get_terminal_size().columns)
    if isinstance(shown, Sheet):
        click.echo(render_sheet(shown, width))
    else:
        click.echo(render_conversation(shown, width))
    known = [*choices, SKIP, STOP]
    *first, last = [choice.typed for choice in known]
    named = f"{', '.join(first)} or {last}"
    keys = {choice.typed[0].casefold(): choice.value for choice in known}
    while True:
        print(f"{shown.question} {named}: ", end="", file=sys.stderr, flush=True)
        try:
            line = sys.stdin.readline()
        except (AttributeError, OSError, ValueError) as wrong:
            raise UsageError(
                f"your input cannot be read ({wrong}): type one of the letters shown"
            ) from None
        answer = line.strip().casefold() if line else "q"
        if answer in keys:
            return keys[answer]
        say(f"please answer {named}")


def render_sheet(shown: Sheet, width: int) -> str:
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
        parts.append(f"\n{draw_rule(f'{shown.noun} {name}', '─', width)}")
        parts += [
            line
            for number, each in enumerate(exchanges)
            for line in render_exchange(number, each, shown.noun, width)
        ]
    text = "; ".join(f"{name}: {what}" for name, what in shown.criteria.items())
    return "\n".join([*parts, f"\n{draw_rule('criteria', '─', width)}", wrap_text(text, width)])


def render_conversation(shown: JudgedConversation, width: int) -> str:
    """A conversation as text, in the same way."""
    parts = [f"\n{draw_rule(f'match {shown.match}, {shown.seat}', '═', width)}"]
    if shown.opening:
        parts += ["told:", wrap_text(shown.opening, width, "  │ ")]
    for turn in shown.turns:
        parts += ["asked:", wrap_text(turn.question, width, "  │ ")]
        parts += ["replied:", wrap_text(turn.answer, width, "  │ ")]
    parts += [draw_rule("criterion", "─", width), wrap_text(shown.criterion, width)]
    return "\n".join(parts)


def render_exchange(number: int, each: Exchange, noun: str, width: int) -> list[str]:
    """A question and the reply to it; the first reply is the answer to the question of the pair."""
    first = "first answer" if noun == "conversation" else noun
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
