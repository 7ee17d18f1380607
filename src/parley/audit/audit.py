"""Fairness, checked from the record: who was shown what, when, and was it the same for everybody.

synchrony     in every round all questions stand before all replies, everybody asked replies, and
              nothing is told in between
shown         every view, rebuilt from the record, has the digest that was taken when the seat was
              asked
replay        the match played again from its replies alone, without the cast, gives the same record
              and scores
works         works of reference, where they are at hand, give the answers that are on record
anonymity     no word of the referee holds a model's name that neither task nor seat brought in; who
              says its own is masked
information   before anybody has spoken, a seat hears the same in all matches of a block, and so do
              the seats of a role
plan          the matches on record are those that the configuration plans, and all of them in a run
              that is done
balance       every contestant sat in every role and position as often as every other
items         every contestant played every item (or block) in every role as often as every other

A record cannot prove that a reply was really given, or a program's verdict really found: these are
taken as they stand.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from parley.audit.balance import uneven
from parley.audit.equal_information import Beginnings
from parley.audit.messages import (
    brought_in,
    foreign_names,
    named,
    names_in_prompts,
    shown_after_all,
    unheard,
    unmasked,
    unsynchronous,
)
from parley.audit.replay import replayed
from parley.config.prepare import Prepared, names_to_mask, prepare_to_read
from parley.config.rule_digest import comparable
from parley.datasets.open_references import open_references
from parley.errors import ParleyError, TaskError
from parley.plans import replay_plan
from parley.results.scores import describe_left_out
from parley.results.transcript import conversations
from parley.results.types import LeftOut
from parley.store import MatchRow, RunReader, RunRef, read_run
from parley.tables import plural

CHECKS = (
    "synchrony",
    "shown",
    "replay",
    "works",
    "anonymity",
    "information",
    "plan",
    "balance",
    "items",
)
ENDS = ("plan_complete", "converged", "items_exhausted", "drift")  # ends that a plan decides


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
    unchecked: dict[str, str]  # check: why it could not be made
    breaches: list[Breach]
    masked: list[dict[str, Any]]  # what seats said of themselves and nobody else has read
    cautions: list[str]


def audit(ref: RunRef, task_file: str | None = None) -> Audit:
    """Look at every match of a run; `task_file` has its task, where that is not installed."""
    with read_run(ref) as reader, asyncio.Runner() as runner:
        looking = Looking(reader, task_file)
        for match in (matches := list(reader.matches())):
            looking.at_match(match, runner)
        looking.at_all(matches)
        checked = {name: looking.checked[name] for name in CHECKS if looking.checked[name]}
        return Audit(
            len(matches),
            checked,
            looking.unchecked,
            looking.breaches,
            masked_in(reader),
            looking.cautions,
        )


class Looking:
    """One audit while it goes on."""

    def __init__(self, reader: RunReader, task_file: str | None = None) -> None:
        self.task_file = task_file
        self.reader, self.checked, self.beginnings = reader, Counter[str](), Beginnings()
        self.breaches: list[Breach] = []
        self.cautions: list[str] = []
        self.unchecked: dict[str, str] = {}
        # matches that did not come out the same when they were played again
        self.departed: set[int] = set()
        self.prepared = self._prepared()
        self.works = self._works()
        self.foreign, self.own, self.names = (
            foreign_names(reader),
            brought_in(reader),
            frozenset(names_to_mask(reader.info.config)),
        )

    def _prepared(self) -> Prepared | None:
        """The run's task, as it was; without it nothing can be played again."""
        why = "the task or its prompts have changed since"
        try:
            prepared = prepare_to_read(self.reader.info.ref, self.task_file)
            now, then = prepared.identity, self.reader.info.identity
            known = comparable(now["rule"], then["rule"])
            if now["prompts"] == then["prompts"] and (not known or now["rule"] == then["rule"]):
                if not known:
                    self.cautions.append(
                        "the digest of the rule is of an older kind: whether the rule has "
                        "changed is not known"
                    )
                return prepared
        except ParleyError as wrong:
            why = str(wrong)
        self.unchecked |= dict.fromkeys(("replay", "plan"), why)
        self.cautions.append(f"matches were not replayed, so scores are taken as they stand: {why}")
        return None

    def _works(self) -> Mapping[str, Any]:
        """The works that the run consulted, if they are at hand and still the same."""
        wanted = self.reader.info.identity.get("works", {})
        if not wanted:
            return {}
        why = "without the task nothing is consulted"
        try:
            played = (
                (self.prepared.config.dataset, list(self.prepared.items.values()))
                if self.prepared
                else ()
            )
            works = open_references(self.prepared.task, *played) if self.prepared else {}
            now = {name: work.facts for name, work in works.items()}
            if now == wanted:
                return works
            if works:
                why = (
                    f"another one is here: "
                    f"{', '.join(f'{name} {facts}' for name, facts in now.items())}"
                )
        except ParleyError as wrong:
            why = str(wrong)
        self.unchecked["works"] = why
        self.cautions.append(f"answers of the {', '.join(wanted)} are taken from the record: {why}")
        return {}

    def found(self, kind: str, match: int | None, detail: str) -> None:
        self.breaches.append(Breach(kind, match, detail))

    def at_match(self, match: MatchRow, runner: asyncio.Runner) -> None:
        """All that one match shows by itself."""
        reader, number, ended = self.reader, match.number, match.has_ended
        messages, calls = reader.messages(number), reader.calls(number)
        claims = [fault for fault in reader.violations(number) if fault.kind == "identity"]
        found = [("synchrony", fault) for fault in unsynchronous(messages)]
        found += [("shown", fault) for fault in conversations(messages, calls, match.seats)[1]]
        found += (
            [("shown", fault) for fault in unheard(messages, calls, reader.info.config)]
            if ended
            else []
        )
        found += [("anonymity", fault) for fault in shown_after_all(messages, claims, self.own)]
        departures: list[tuple[str, str]] = []
        if ended and self.prepared is not None:
            departures = runner.run(
                replayed(self.prepared, reader, match, messages, calls, self.works)
            )
            found += departures
            self.checked.update(("replay", *(("works",) if self.works else ())))
        elif ended:
            found += [("anonymity", fault) for fault in unmasked(calls, claims, self.names)]
        if departures:
            self.departed.add(number)
        # a replay without the cast that gives the same words brings no names in
        if departures or not (ended and self.prepared):
            found += [("anonymity", fault) for fault in named(messages, self.foreign)]
        self.beginnings.take(match, messages)
        self.checked.update(("synchrony", "shown", "anonymity", "information"))
        for kind, detail in found:
            self.found(kind, number, detail)

    def at_all(self, matches: list[MatchRow]) -> None:
        """What only all matches together show."""
        reader, config = self.reader, self.reader.info.config
        for number, detail in self.beginnings.unequal(self.departed):
            self.found("information", number, detail)
        if self.prepared is not None:
            for detail in unplanned(self.prepared, reader, matches):
                self.found("plan", None, detail)
            self.checked["plan"] += 1
        why = "the run is not finished" if reader.info.state != "done" else ""
        if config.plan == "race":
            why = "who plays in a race is decided by its plan, which was checked"
        if why:
            self.unchecked |= dict.fromkeys(("balance", "items"), why)
            self.cautions.append(f"balance was not checked: {why}")
        else:
            self.checked.update(("balance", "items"))
            for kind, detail in uneven(config, reader.info.identity["roles"], matches):
                if config.rejudged is None:
                    self.found(kind, None, detail)
                else:  # only matches that had ended are judged again
                    self.cautions.append(f"uneven as in the run that played: {detail}")
        self.cautions += self.warnings(matches)

    def warnings(self, matches: list[MatchRow]) -> Iterator[str]:
        """What to know about the record, fair as it may be."""
        reader, config = self.reader, self.reader.info.config
        if self.prepared is not None and (left := sum(not match.has_ended for match in matches)):
            yield f"{plural(left, 'match', 'matches')} had not ended, and cannot be played again"
        if programs := sum(reader.verdict_kinds().values()):
            yield (
                f"verdicts on {plural(programs, 'program')} are taken from the record: no "
                f"program was run again"
            )
        if names := names_in_prompts(reader):
            yield (
                f"the prompts hold names of models that play: {', '.join(names)}; "
                f"everybody reads them"
            )
        if dealt := self.beginnings.by_position(self.departed):
            yield dealt
        if config.rejudged is not None:
            yield (
                f"judged again: what contestants said is that of {config.rejudged.run}, which "
                f"has an audit of its own"
            )
        yield from describe_left_out([LeftOut(**each) for each in reader.unsupported_options()])
        if reader.info.identity.get("runs_code") and config.sandbox == "none":
            yield (
                "UNSAFE: what models wrote was run without isolation; "
                "a program can have changed this record too"
            )


def masked_in(reader: RunReader) -> list[dict[str, Any]]:
    """What seats said of themselves, and was masked for everybody else: to be looked through for
    false hits."""
    return [
        {
            "alias": fault.alias,
            "match": fault.match,
            "round": fault.round,
            "seat": fault.seat.key,
            "masked": fault.detail,
        }
        for fault in reader.violations()
        if fault.kind == "identity"
    ]


def misended(reader: RunReader, status: str | None) -> Iterator[str]:
    """Whether the end that a run is marked with is the one that its plan comes to."""
    config, marked = reader.info.config, reader.info.status
    if reader.info.state == "done" and marked not in ENDS:
        yield f"the run is marked as done, and as {marked or 'nothing'}: no plan ends like that"
    elif marked in ENDS and marked != status:
        yield f"the run is marked as {marked}, but its plan says {status or 'to go on'}"
    elif (
        marked == "budget"
        and status is None
        and config.budget_usd is None
        and config.max_calls is None
    ):
        yield (
            "the run is marked as budget, but nothing bounds its calls or its cost, "
            "and its plan says to go on"
        )
    elif marked == "budget" and status not in ("budget", None):
        yield f"the run is marked as budget, but its plan says {status}"


def unplanned(prepared: Prepared, reader: RunReader, matches: list[MatchRow]) -> Iterator[str]:
    """Matches on record that are not those which the configuration plans, and ends that do not fit
    the run's."""
    try:
        wanted, end = replay_plan(prepared.plan, reader.scores_by_match())
    # a rule that gave up: what was played cannot be held against the plan any further
    except TaskError as wrong:
        yield from [] if reader.info.state == "failed" else [str(wrong)]
        return
    for fact, value in orjson.loads(orjson.dumps(prepared.identity)).items():
        if (
            fact not in ("parley", "python", "mends", "rule", "source")
            and reader.info.identity.get(fact) != value
        ):
            yield f"the record's own description of the task has other {fact}"
    yield from misended(reader, end.status if end else None)
    for match in matches:
        if wanted.pop(match.number, None) != match.spec:
            yield f"match {match.number} is not the one that the configuration plans"
        ended = match.has_ended
        if not ended and reader.scores_of(match.number):
            yield f"match {match.number} has scores, but has not ended"
        if reader.info.state == "done" and not ended:
            yield f"match {match.number} has not ended, but the run is marked as done"
    if reader.info.state == "done" and wanted:
        yield f"{len(wanted)} planned matches are missing"
    if strangers := reader.orphan_scores():
        yield f"there are scores of matches that do not exist: {strangers}"
