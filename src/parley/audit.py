"""Fairness, checked from the record: who was shown what, when.

synchrony     in every round all questions stand before all replies, and nothing is told in between
shown         every view, rebuilt from the record, has the digest that was taken when the seat was asked
replay        the match played again from its replies alone, without the cast, gives the same record and scores
anonymity     no word of the referee holds the name of a model that neither the task nor a seat brought in
plan          the matches on record are those that the configuration plans, and all of them in a run that is done
balance       every contestant sat in every role and position as often as every other
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from parley.errors import Halted, ParleyError, TaskError
from parley.findings import asked_without
from parley.match import Match
from parley.plan import unfolded
from parley.pool import Seat, View
from parley.prepared import Prepared, names_of, prepare_again
from parley.providers.protocol import Reply
from parley.record import Call, Tape
from parley.store.archive import Archive
from parley.transcript import conversations


@dataclass(frozen=True)
class Breach:
    """Something that a fair match cannot have in its record."""

    kind: str
    match: int | None
    detail: str


@dataclass(frozen=True)
class Audit:
    """What was looked at, what was found, and what could not be looked at."""

    matches: int
    checked: dict[str, int]
    breaches: list[Breach]
    cautions: list[str]


ENDS = ("plan_complete", "converged", "items_exhausted", "budget", "drift")  # ends that the plan decides
VIOLATION = ("round", "seat", "attempt", "kind", "detail", "outcome")


class Absent:
    """Sits where the record ought to answer."""

    privy: bool = False

    async def reply(self, view: View) -> Reply:
        raise Halted(f"round {view.round}, {view.seat}: the record has no reply")

    async def close(self) -> None:
        pass


def audit(path: Path) -> Audit:
    """Look at every match of a run."""
    breaches: list[Breach] = []
    cautions: list[str] = []
    checked: Counter[str] = Counter()
    with Archive(path) as archive, asyncio.Runner() as runner:
        prepared: Prepared | None = None
        try:
            prepared = prepare_again(path, seated=False)
            if (
                prepared.identity["rule"] != archive.identity["rule"]
                or prepared.identity["prompts"] != archive.identity["prompts"]
            ):
                prepared = None
                cautions.append("matches were not replayed: the task or its prompts have changed since")
        except ParleyError as wrong:
            cautions.append(f"matches were not replayed: {wrong}")
        matches = archive.matches()
        foreign = foreign_names(archive)
        for match in matches:
            number = match["number"]
            messages, calls = archive.messages(number), archive.calls(number)
            found = [
                *unsynchronous(messages),
                *(("shown", fault) for fault in conversations(messages, calls, list(match["seats"]))[1]),
            ]
            checked.update(("synchrony", "shown", "anonymity"))
            proven = False
            if prepared is not None and match["state"] in ("done", "aborted"):
                departures = runner.run(replayed(prepared, archive, match, messages, calls))
                proven, found = not departures, [*found, *departures]
                checked["replay"] += 1
            if not proven:  # a replay without the cast that gives the same words proves that no name came from it
                found += named(messages, foreign)
            breaches += [Breach(kind, number, detail) for kind, detail in found]
        if prepared is not None:
            breaches += [Breach("plan", None, detail) for detail in unplanned(prepared, archive, matches)]
            checked["plan"] += 1
        if archive.config.plan == "race":
            cautions.append("balance was not counted: who plays in a race is decided by its plan, which was checked")
        elif archive.state == "done":
            breaches += [Breach("balance", None, detail) for detail in unbalanced(archive, matches)]
            checked["balance"] += 1
        else:
            cautions.append("balance was not checked: the run is not finished")
        if archive.config.rejudged is not None:
            cautions.append(
                f"judged again: what contestants said is that of {archive.config.rejudged.run}, which has an audit of its own"
            )
        cautions += asked_without(archive.left_out())
        if archive.identity.get("runs_code") and archive.config.sandbox == "none":
            cautions.append("UNSAFE: what models wrote was run without isolation; a program can have changed this record too")
    return Audit(len(matches), dict(checked), breaches, cautions)


def unplanned(prepared: Prepared, archive: Archive, matches: list[dict[str, Any]]) -> Iterator[str]:
    """Matches on record that are not those which the configuration plans, and ends that do not fit the run's."""
    try:
        wanted, end = unfolded(prepared.plan, archive.finished())
    except TaskError as wrong:  # a rule that gave up: what was played cannot be held against the plan any further
        yield from [] if archive.state == "failed" else [str(wrong)]
        return
    for fact, value in orjson.loads(orjson.dumps(prepared.identity)).items():
        if fact not in ("parley", "python", "mends") and archive.identity.get(fact) != value:
            yield f"the record's own description of the task has other {fact}"
    status = end.status if end else None
    if archive.state == "done" and archive.status not in ENDS:
        yield f"the run is marked as done, and as {archive.status or 'nothing'}: no plan ends like that"
    if archive.status in ENDS and archive.status != status:
        yield f"the run is marked as {archive.status}, but its plan says {status or 'to go on'}"
    for match in matches:
        spec = wanted.pop(match["number"], None)
        seats = None if spec is None else {seat.key: alias for seat, alias in spec.seats.items()}
        idle = None if spec is None else sorted(seat.key for seat in spec.idle)
        facts = None if spec is None else (spec.block, spec.item, spec.repeat, spec.seed, seats, idle)
        if facts != tuple(match[name] for name in ("block", "item", "repeat", "seed", "seats", "idle")):
            yield f"match {match['number']} is not the one that the configuration plans"
        ended = match["state"] in ("done", "aborted")
        if not ended and archive.scores_of(match["number"]):
            yield f"match {match['number']} has scores, but has not ended"
        if archive.state == "done" and not ended:
            yield f"match {match['number']} has not ended, but the run is marked as done"
    if archive.state == "done" and wanted:
        yield f"{len(wanted)} planned matches are missing"
    if strangers := archive.strangers():
        yield f"there are scores of matches that do not exist: {strangers}"


def unsynchronous(messages: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Places where words could have been read before their round closed."""
    closed = opened = 0
    for message in messages:
        round, kind = message["round"], message["kind"]
        if kind == "ask":
            if round == opened and closed == round:
                yield "synchrony", f"round {round}: a seat was asked after another had already replied"
            opened = max(opened, round)
        elif kind == "reply":
            closed = max(closed, round)
            if round != opened:
                yield "synchrony", f"round {round}: a reply stands in round {opened}"
        elif kind == "tell" and (round != closed or opened > closed):
            yield "synchrony", f"round {round}: seats were told something while round {opened} was open"


def foreign_names(archive: Archive) -> list[str]:
    """Names of the cast that no prompt, parameter or item brings in by itself."""
    config = archive.config
    brought = (config.task, config.params, list(archive.identity["roles"]), archive.items(), archive.identity["texts"])
    own = str(brought).lower()
    names = {*names_of(config), *(name for served in archive.served().values() for name in served), *config.models}
    return sorted(name for name in names if len(name) >= 4 and name.lower() not in own)


def named(messages: list[dict[str, Any]], names: list[str]) -> Iterator[tuple[str, str]]:
    """The referee's words that hold a name which nobody at the table has said."""
    said = " ".join(message["content"] or "" for message in messages if message["kind"] == "reply").lower()
    for name in names:
        if name.lower() in said:
            continue
        word = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)
        for message in messages:
            if message["kind"] != "reply" and word.search(message["content"] or ""):
                yield "anonymity", f"round {message['round']}: the referee's words hold the name {name!r}"
                break


async def replayed(
    prepared: Prepared, archive: Archive, match: Mapping[str, Any], messages: list[dict[str, Any]], calls: list[Call]
) -> list[tuple[str, str]]:
    """Where the match, played again from its replies alone, departs from its record."""
    tape = Tape()
    for call in calls:
        tape.calls[call.round, call.seat, call.attempt] = call
    tape.effects = archive.effects(match["number"])
    scores = archive.scores_of(match["number"])
    cast = {Seat.of(seat): Absent() for seat in match["seats"]}
    item = prepared.items[match["item"]] if match["item"] is not None else None
    try:
        again = await Match(
            prepared.task,
            cast,
            seed=match["seed"],
            item=item,
            prompts=prepared.prompts,
            record=tape,
            names=frozenset(names_of(prepared.config)),
            standardise=prepared.config.standardise,
            mend="mends" in archive.identity,
        ).play()
    except ParleyError as wrong:
        return [("replay", str(wrong))]
    found = []
    told = [(m.round, m.kind, [seat.key for seat in m.audience], m.content) for m in tape.messages if m.kind != "reply"]
    kept = [(m["round"], m["kind"], m["audience"], m["content"]) for m in messages if m["kind"] != "reply"]
    if told != kept:
        found.append(("replay", "the referee's words differ from the record"))
    kept_violations = [tuple(v[name] for name in VIOLATION) for v in archive.violations(match["number"])]
    violations = [(v.round, v.seat.key, v.attempt, v.kind, v.detail, v.outcome) for v in again.violations]
    used = {(m.round, m.sender, m.attempt) for m in tape.messages if m.kind == "reply"}
    asks = prepared.config.asks  # what was taken over from another run may go on for longer than judges let it
    compared = {
        "calls": ({call for call in tape.calls if asks(call[1].role) or call in used}, used),
        "scores": (scores, {seat: by for seat, by in again.scores.items() if by}),
        "end": ((match["state"], match["reason"] or "", match["rounds"]), (again.state, again.reason, again.rounds)),
        "violations": (kept_violations, violations),
        "notes": (archive.notes(match["number"]), again.notes),
    }
    return [*found, *(("replay", f"its {what} differs from the record") for what, (old, new) in compared.items() if old != new)]


def unbalanced(archive: Archive, matches: list[dict[str, Any]]) -> Iterator[str]:
    """Contestants that sat in a role or at a place more often than others."""
    config, roles = archive.config, archive.identity["roles"]
    held: dict[str, Counter[str]] = {}
    for match in matches:
        for seat, alias in match["seats"].items():
            role = Seat.of(seat).role
            if roles[role] == "contestant":
                held.setdefault(role, Counter())[alias] += 1
                if seat != role:
                    held.setdefault(seat, Counter())[alias] += 1
    for place, count in sorted(held.items()):
        times = [count[alias] for alias in config.contestants]
        slack = 1 if place not in roles else 0  # positions rotate: a number of blocks need not divide evenly
        if max(times) - min(times) > slack:
            yield f"{place}: " + ", ".join(f"{alias} {count[alias]}" for alias in config.contestants)
