"""Voting on single conversations at the terminal: was it a success? A run that evolves with
`feedback=people` waits for these votes."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from typing import Any, Literal

import click
import orjson

from parley.annotation.ballots import normalise_name
from parley.annotation.verdict_ballots import (
    CRITERION,
    JudgedConversation,
    Place,
    cast_verdict,
    check_is_open,
    choose_place,
    end_verdict_invitation,
    has_voted,
    invite_to_verdicts,
    list_open_places,
    read_conversation,
    summarise_verdicts,
)
from parley.cli.annotate_serving import EARLIER_LINK, PersonalLink
from parley.cli.annotate_terminal import ANSWERS, WIDEST, ask_for_key, draw_rule
from parley.cli.invocation import command_name
from parley.cli.progress_line import say
from parley.cli.terminal import wrap_text
from parley.errors import UsageError
from parley.memory.feedback import VerdictChoice
from parley.store import RunRef, open_verdict_votes, read_run, read_verdict_votes
from parley.store.verdict_votes import VerdictVoteStore
from parley.tables import Table, plural, terminal_width

KEYS: dict[str, VerdictChoice] = {"y": "yes", "n": "no", "u": "unsure"}
CHOICES = "y (yes), n (no), u (cannot tell), s (skip) or q (quit)"


def print_verdicts(ref: RunRef, form: str, as_json: bool) -> None:
    """Print how the votes on a run stand, and what to do next."""
    with read_run(ref) as reader:
        data = summarise_verdicts(reader, read_verdict_votes(reader))
        waits = reader.info.state != "done" and bool(list_open_places(reader))
    if as_json:
        click.echo(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
    else:
        tables = verdict_tables(data)
        click.echo("\n\n".join(table.render(form, terminal_width()) for table in tables))
    place = shlex.quote(ref.location)
    if data["missing"]:
        say(
            f"{plural(data['missing'], 'vote')} still missing; vote with: {command_name()} "
            f"annotate {place} --terminal --annotator NAME (or --invite NAME for the browser)"
        )
    elif waits:
        say(f"every match has a vote; resume with: {command_name()} resume {place}")
    elif not data["stages"]:
        say("this run does not need votes yet: it asks for votes at the end of each stage")


def verdict_tables(data: dict[str, Any]) -> list[Table]:
    """What people were asked about, stage by stage, and who has voted."""
    keys = ("asked", "success", "failure", "undecided", "missing")
    rows = [
        ["standard" if not each["stage"] else str(each["stage"]), *(str(each[key]) for key in keys)]
        for each in data["stages"]
    ]
    several = data["several_votes"]
    note = (
        "undecided: the same number of people voted yes and no, or nobody could tell; such a "
        "match is not kept in the memory"
    )
    if several:
        note += (
            f"\n{plural(several, 'conversation')} with several votes, {data['unanimous']} of them "
            f"unanimous"
        )
    tables = [Table(["stage", *keys], rows, note=note)]
    people = [[each["name"], str(each["votes"])] for each in data["annotators"]]
    return [*tables, Table(["annotator", "votes"], people)] if people else tables


def invite_judge(ref: RunRef, name: str) -> PersonalLink:
    """A personal link for a person who votes on the conversations of a run."""
    with read_run(ref) as reader, open_verdict_votes(ref) as votes, votes.transaction():
        replaces = votes.end_invitation(reader.info.id, normalise_name(name))
        token = invite_to_verdicts(votes, reader.info.id, name)
    if replaces:
        say(EARLIER_LINK.format(name=name))
    return PersonalLink(name, token, "/vote/single/")


def end_link_of_judge(ref: RunRef, name: str) -> None:
    """End the link of a person, and say so."""
    with read_run(ref) as reader, open_verdict_votes(ref) as votes:
        end_verdict_invitation(votes, reader.info.id, name)
    say(f"the link of {name} no longer works; the votes stay")


def take_verdicts(ref: RunRef, annotator: str, change: Sequence[int]) -> None:
    """Show conversations and take votes until nothing is left for this person, they stop, or the
    input ends. The run is not kept open meanwhile: it may go on at any time."""
    name = normalise_name(annotator)
    with open_verdict_votes(ref) as votes:
        if change:
            change_verdicts(votes, ref, name, change)
            return
        take_new_verdicts(votes, ref, name)
        with read_run(ref) as reader:
            given, places = votes.votes(reader.info.id), list_open_places(reader)
    if places and all(given.get(place) for place in places):
        resume = f"{command_name()} resume {shlex.quote(ref.location)}"
        say(f"every match has a vote; resume with: {resume}")


def take_new_verdicts(votes: VerdictVoteStore, ref: RunRef, name: str) -> None:
    """Take votes on the conversations on which this person has not voted."""
    skipped, count, was_missing = set[Place](), 0, True
    while True:
        with read_run(ref) as reader:
            run, places = reader.info.id, list_open_places(reader)
            given = votes.votes(run)
            found = choose_place(places, given, name, skipped)
            shown = None if found is None else read_conversation(reader, found)
        if found is None or shown is None:
            break
        missing = sum(not given.get(place) for place in places)
        if was_missing and not missing:
            say("every match has a vote; you can vote on more conversations, or quit with q")
        was_missing = missing > 0
        say(f"you have given {plural(count, 'vote')}; {missing} missing")
        answer = ask_verdict(shown)
        if answer == "stop":
            say(f"stopped after {plural(count, 'vote')}; run the same command to continue")
            return
        if answer == "skip":
            skipped.add(found)
            continue
        count += record_verdict(votes, ref, found, name, answer)
    if not places:
        say(f"{run} is not waiting for votes, so there is nothing to vote on")
        return
    left = f" except {plural(len(skipped), 'conversation')} that you skipped" if skipped else ""
    say(f"You have voted on all conversations{left}. Thank you!")


def change_verdicts(votes: VerdictVoteStore, ref: RunRef, name: str, change: Sequence[int]) -> None:
    """Ask again about matches on which this person has voted."""
    for number in change:
        with read_run(ref) as reader:
            given = votes.votes(reader.info.id)
            own = [place for place in given if place[0] == number and has_voted(given, place, name)]
            if not own:
                raise UsageError(
                    f"{name} has not voted on match {number}, so there is no vote to change"
                )
            for place in own:
                check_is_open(reader.people_verdicts(number), place, reader.info.id)
            shown = [read_conversation(reader, place) for place in own]
        for place, conversation in zip(own, shown, strict=True):
            answer = ask_verdict(conversation)
            if answer == "stop":
                return
            if answer != "skip":
                record_verdict(votes, ref, place, name, answer, change=True)


def record_verdict(
    votes: VerdictVoteStore,
    ref: RunRef,
    place: Place,
    name: str,
    choice: VerdictChoice,
    change: bool = False,
) -> bool:
    """Record a vote and say so, once it is on disk; whether it counts."""
    try:
        with read_run(ref) as reader:  # the run may have gone on meanwhile
            found = cast_verdict(votes, reader, place, name, choice, change)
    except UsageError as wrong:
        say(str(wrong))
        return False
    say(f"match {place[0]}: {ANSWERS[found]}")
    return True


def ask_verdict(shown: JudgedConversation) -> VerdictChoice | Literal["skip", "stop"]:
    """Show a conversation and read whether it is a success; the end of the input is a stop."""
    width = min(WIDEST, shutil.get_terminal_size().columns)
    click.echo(render_conversation(shown, width))
    return ask_for_key("Did the participant succeed?", CHOICES, KEYS)


def render_conversation(shown: JudgedConversation, width: int) -> str:
    """A conversation as text. What was said stands behind a line at the left, so that it cannot
    pass for anything else."""
    parts = [f"\n{draw_rule(f'match {shown.match}, {shown.seat}', '═', width)}"]
    if shown.opening:
        parts += ["told:", wrap_text(shown.opening, width, "  │ ")]
    for turn in shown.turns:
        parts += ["asked:", wrap_text(turn.question, width, "  │ ")]
        parts += ["replied:", wrap_text(turn.answer, width, "  │ ")]
    return "\n".join([*parts, draw_rule("criterion", "─", width), wrap_text(CRITERION, width)])
