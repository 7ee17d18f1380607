"""Checks the fairness of a run from its record: what each seat was shown, when, and whether it was
the same for all.

digest        the record matches the digests that were computed when it was written
synchrony     in every round all prompts come before all replies, every seat that was asked replies,
              and no message comes in between
shown         every view, rebuilt from the record, has the digest that was recorded with the call
replay        replaying the match from its replies, without the models, gives the same record and
              the same scores
works         reference works, if they are available, give the answers on record
anonymity     no message of the referee contains a model's name that neither the task nor a seat
              introduced; names on record as masked stand in no later message
information   before the first reply, a seat reads the same in all matches of a block, and so do all
              seats of a role
plan          the matches on record are those that the configuration plans; a finished run has all
recalled      seats were shown only their own experiences, from earlier stages of the same arm
votes         if people decide what is remembered, they had voted on every match of a stage before
              the next stage began
balance       every contestant held every role and position equally often
items         every contestant played every item (or block) equally often in every role

A record cannot prove that a model gave a reply, or that a program got its verdict: the audit trusts
both. Anybody who can write the file can also recompute all digests. Only the digest that the run
printed, kept somewhere else, reveals that.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, takewhile
from operator import attrgetter
from typing import Any

import orjson

from parley.audit.balance import ROTATING, find_imbalance
from parley.audit.equal_information import OpeningWords
from parley.audit.messages import (
    check_masking,
    find_leaked_names,
    find_names_in_prompts,
    find_readable_names,
    find_unsynchronous,
    list_foreign_names,
    unmatched_replies,
)
from parley.audit.plan_replay import PlanReplay
from parley.audit.recalled import RecallCheck
from parley.audit.replay import replay_match
from parley.config.identity import is_same_rule, roster_of
from parley.config.prepare import Prepared, prepare_to_read
from parley.datasets.open_references import open_references
from parley.errors import ParleyError, TaskError
from parley.masking.mask import UNSEEN, NameFinder
from parley.plans import MatchSpec
from parley.results.part import parts_of_task, qualified_name
from parley.results.run_facts import describe_left_out, format_time, list_earlier_seals
from parley.results.seat_views import rebuild_views
from parley.results.stored_parts import is_part_of_task
from parley.results.types import LeftOut, as_json
from parley.rules.pool import text_of
from parley.rules.task import Task
from parley.store import read_run
from parley.store.reader import RunReader
from parley.store.types import WAITING, HistoryEntry, MatchRow, RunRef, WholeMatch
from parley.tables import plural, shorten

CHECKS = (
    "digest",
    "synchrony",
    "shown",
    "replay",
    "works",
    "anonymity",
    "information",
    "plan",
    "recalled",
    "votes",
    "balance",
    "items",
)
ENDS = ("plan_complete", "converged", "items_exhausted", "drift")  # statuses that a plan ends with


@dataclass(frozen=True)
class Breach:
    """Something that the record of a fair match cannot contain."""

    kind: str
    match: int | None
    detail: str

    def __str__(self) -> str:
        place = f", match {self.match}" if self.match else ""
        return f"{self.kind}{place}: {self.detail}"


@dataclass(frozen=True)
class Disclosures:
    """Replies with names of models: how many were checked, how many the table of today finds, how
    many were masked, and what no rule can find."""

    replies: int
    found: int
    masked: int
    unseen: str = UNSEEN


@dataclass(frozen=True)
class Audit:
    """The checks that were made, the breaches found, and the checks that could not be made."""

    matches: int
    checked: dict[str, int]
    unchecked: dict[str, str]  # check: why it could not be made
    breaches: list[Breach]
    masked: list[dict[str, Any]]  # names that no other seat has read
    cautions: list[str]
    anonymity: Disclosures
    digest: str | None  # of the run when it last stopped; None if it has none
    earlier_seals: list[dict[str, Any]]  # of ends after which the run was opened again


def audit_run(
    ref: RunRef, task: type[Task] | str | None = None, digest: str | None = None
) -> Audit:
    """Check every match of a run. `task` is the class of a task that is not installed, or its file;
    `digest` is the digest that the run printed when it stopped."""
    with read_run(ref) as reader, asyncio.Runner() as runner:
        running = AuditRun(reader, task)
        running.check_digests(digest)
        runner.run(running.check_matches())
        running.check_all_matches()
        checked = {name: running.checked[name] for name in CHECKS if running.checked[name]}
        masked = list_masked(reader)
        return Audit(
            running.matches,
            checked,
            running.unchecked,
            running.breaches,
            masked,
            running.cautions,
            Disclosures(running.replies, running.found, len(masked)),
            reader.info.digest or None,
            as_json(running.earlier_seals),
        )


class AuditRun:
    """One audit in progress."""

    def __init__(self, reader: RunReader, task: type[Task] | str | None = None) -> None:
        self.task, self.earlier_seals = task, list_earlier_seals(reader)
        self.reader, self.checked, self.opening_words = reader, Counter[str](), OpeningWords()
        self.breaches: list[Breach] = []
        self.cautions: list[str] = []
        self.unchecked: dict[str, str] = {}
        self.prepared = self._prepare_task()
        self.works = self._open_references()
        self.recalled = self._open_memories()
        self.foreign = list_foreign_names(reader)
        self.roster = roster_of(reader.info.config)
        self.items = {str(item["id"]): item for item in reader.run.items()}
        self._quotation_secret = reader.run.quotation_secret() if self.prepared else ""
        self.replies = self.found = self.matches = self.unfinished = self.shells = 0
        self._task_words: tuple[str | None, str] | None = None  # of the last item

    def _prepare_task(self) -> Prepared | None:
        """The run's task, if it has not changed; without it no match can be replayed."""
        why = "the task or its prompts have changed since the run"
        try:
            prepared = prepare_to_read(self.reader.info.ref, self.task)
            now, then = prepared.identity, self.reader.info.identity
            known = bool(now["rule"] and then["rule"])
            if now["prompts"] == then["prompts"] and (not known or is_same_rule(then, now)):
                if not known and now["rule"] != then["rule"]:
                    self.cautions.append(
                        "the task was not defined in a file, so Parley cannot tell whether its "
                        "rule has changed since the run"
                    )
                return prepared
        except ParleyError as wrong:
            why = str(wrong)
        self.unchecked |= dict.fromkeys(("replay", "plan"), why)
        self.cautions.append(
            f"matches were not replayed and scores were not verified, because {why}"
        )
        return None

    def _open_memories(self) -> RecallCheck | None:
        """The memories of an `evolve` run, rebuilt from its record."""
        config = self.reader.info.config
        if config.evolve is None or config.rejudged is not None:
            return None
        if self.prepared is None:
            self.unchecked["recalled"] = (
                "the memories of this run cannot be rebuilt without the task: add --task FILE"
            )
            return None
        return RecallCheck(self.prepared, self.reader)

    def _open_references(self) -> Mapping[str, Any]:
        """The reference works that the run used, if they are installed and unchanged."""
        wanted = self.reader.info.identity.get("works", {})
        if not wanted:
            return {}
        why = (
            "reference works, such as dictionaries, cannot be opened without the task: add "
            "--task FILE"
        )
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
                    "a different version is installed now "
                    f"({', '.join(f'{name} {facts}' for name, facts in now.items())})"
                )
        except ParleyError as wrong:
            why = str(wrong)
        self.unchecked["works"] = why
        self.cautions.append(f"lookups in {', '.join(wanted)} were not repeated, because {why}")
        return {}

    def add_breach(self, kind: str, match: int | None, detail: str) -> None:
        self.breaches.append(Breach(kind, match, detail))

    def check_digests(self, given: str | None) -> None:
        """Recompute all digests, and compare the run's digest with the given one."""
        info = self.reader.info
        if given is not None and given.strip().lower() != info.digest:
            self.add_breach(
                "digest",
                None,
                f"the run's digest is {info.digest or 'missing'}, but --digest "
                f"gives {given}: {self.explain_other_digest(given)}",
            )
        for fault in self.reader.snapshot.find_changes():
            self.add_breach("digest", fault.match, fault.detail)
        self.checked["digest"] += sum(self.reader.matches.counts().values())
        own = parts_of_task(type(self.prepared.task)) if self.prepared else ()
        # a result of the installed task is computed from the record wherever it is shown
        computed = {qualified_name(part, info.identity["task"]) for part in own}
        parts = self.reader.run.part_results()
        for part in parts:
            if not is_part_of_task(part):
                self.add_breach(
                    "digest",
                    None,
                    f"the record has a stored result {shorten(repr(part.name))}, which Parley does "
                    "not store",
                )
        kept = [part.name for part in parts if is_part_of_task(part)]
        if stored := [name for name in kept if name not in computed]:
            self.cautions.append(
                f"no digest covers the stored results of {', '.join(map(shorten, stored))}; to "
                "have them recomputed, install the task or add --task FILE"
            )
        if not info.digest:
            self.cautions.append(
                "the run is still being played or was interrupted, so its matches have "
                "digests, but the run as a whole has no digest yet"
            )
        elif given is None:
            self.cautions.append(
                f"digest {info.digest}: compare this digest with the one that the run printed "
                "at its end (`--digest D`). Without this comparison, the audit cannot notice "
                "that the whole record was replaced"
            )

    def explain_other_digest(self, given: str) -> str:
        """Why the digest of the run may be another one than the given digest."""
        for seal in self.earlier_seals:
            if given.strip().lower() == seal.digest:
                return (
                    f"that is the digest of an earlier end of this run ({seal.at}, "
                    f"{plural(seal.matches, 'match', 'matches')}), after which it was opened again"
                )
        return "this is a different record, or it was changed"

    async def check_matches(self) -> None:
        """Make the checks that need only one match, for all matches."""
        for whole in self.reader.whole_matches.read():
            await self.check_match(whole)

    async def check_match(self, whole: WholeMatch) -> None:
        """Make the checks that need only one match."""
        match, messages, calls = whole.match, whole.messages, whole.calls
        config, number, ended = self.reader.info.config, match.number, match.has_ended
        self.matches += 1
        self.unfinished += not ended
        self.shells += any(map(is_of_shell, whole.effects.values()))
        claims = [fault for fault in whole.violations if fault.kind == "identity"]
        found = [("synchrony", fault) for fault in find_unsynchronous(messages)]
        found += [("shown", fault) for fault in rebuild_views(whole)[1]]
        found += (
            [("shown", fault) for fault in unmatched_replies(messages, calls, config)]
            if ended
            else []
        )
        found += [("anonymity", fault) for fault in find_readable_names(messages, calls)]
        if ended:  # violations are recorded with the end of a match
            found += [("anonymity", fault) for fault in check_masking(calls, claims)]
        if whole.scores and not ended:
            found.append(("plan", "the match has scores, although it has not ended"))
        names = NameFinder(self.roster, lambda: self.words_for(match.item))
        self.replies += len(calls)
        self.found += sum(bool(names.find(text_of(call.reply.content))) for call in calls)
        departures: list[tuple[str, str]] = []
        if ended and self.prepared is not None:
            departures = await replay_match(
                self.prepared,
                whole,
                self._quotation_secret,
                self.works,
                self.recalled,
            )
            found += departures
            self.checked.update(("replay", *(("works",) if self.works else ())))
            self.checked["recalled"] += self.recalled is not None and match.stage > 0
        # A replay knows no model names. If it gives the same messages, no name was leaked.
        if departures or not (ended and self.prepared):
            found += [("anonymity", fault) for fault in find_leaked_names(messages, self.foreign)]
        self.opening_words.add_match(match, messages, confirmed=not departures)
        self.checked.update(("synchrony", "shown", "anonymity", "information"))
        for kind, detail in found:
            self.add_breach(kind, number, detail)

    def words_for(self, id: str | None) -> str:
        """All words that a task brings into a match on an item. Matches on one item often follow
        each other."""
        if self._task_words is None or self._task_words[0] != id:
            info, item = self.reader.info, self.items.get(id or "")
            words = str((info.config.params, item, list(info.identity["texts"].values())))
            self._task_words = id, words
        return self._task_words[1]

    def check_all_matches(self) -> None:
        """Make the checks that need all matches."""
        reader, config = self.reader, self.reader.info.config
        for number, detail in self.opening_words.find_unequal(reader):
            self.add_breach("information", number, detail)
        if self.prepared is not None:
            for detail in find_unplanned(self.prepared, reader):
                self.add_breach("plan", None, detail)
            self.checked["plan"] += 1
        if self.recalled is not None:
            for at, detail in self.recalled.find_vote_faults(reader):
                self.add_breach("votes", at, detail)
            self.checked["votes"] += len(reader.people.verdicts())
        why = "the run is not finished" if reader.info.state != "done" else ""
        if config.plan == "race":
            why = "in a race, the plan decides which models play, and the plan was checked"
        if why:
            self.unchecked |= dict.fromkeys(("balance", "items"), why)
            self.cautions.append(f"the check `balance` was not made, because {why}")
        else:
            self.checked.update(("balance", "items"))
            for kind, detail in self.find_unbalanced():
                if config.rejudged is None:
                    self.add_breach(kind, None, detail)
                else:  # only matches that had ended are rejudged
                    self.cautions.append(f"this was already so in the original run: {detail}")
        self.cautions += self.list_cautions()

    def find_unbalanced(self) -> list[tuple[str, str]]:
        """What is not balanced within a stage of an arm, in the order of their first matches."""
        config, roles = self.reader.info.config, self.reader.info.identity["roles"]
        rotating = config.plan in ROTATING
        shared = self.reader.matches.stages_with_shared_tables() if rotating else set()
        found = {
            stage: list(find_imbalance(config, roles, seatings, rotating and stage not in shared))
            for stage, seatings in groupby(
                self.reader.matches.count_seatings(), attrgetter("stage", "arm")
            )
        }
        faults = (fault for stage in self.reader.matches.stages() for fault in found[stage])
        return list(dict.fromkeys(faults))

    def list_cautions(self) -> Iterator[str]:
        """Limits of the audit that its reader should know."""
        reader, config = self.reader, self.reader.info.config
        if self.prepared is not None and (left := self.unfinished):
            yield (
                f"{plural(left, 'unfinished match was', 'unfinished matches were')} not replayed"
            )
        if programs := sum(reader.effects.verdict_kinds().values()):
            yield (
                f"verdicts on {plural(programs, 'program')} were not verified: the audit does not "
                f"run programs again"
            )
        if self.shells:
            yield (
                f"what commands and checks returned in {plural(self.shells, 'match', 'matches')} "
                "was not verified: the audit starts no shell"
            )
        if names := find_names_in_prompts(reader):
            yield (
                "the prompts contain names of models in this run, and all seats can read them: "
                f"{', '.join(names)}"
            )
        yield from list_reopenings(reader)
        if dealt := self.opening_words.describe_dealt():
            yield dealt
        if config.rejudged is not None:
            yield (
                f"this run rejudges {config.rejudged.run}: the replies of contestants come from "
                "that run, so audit that run, too"
            )
        yield from describe_left_out(
            [LeftOut(**each) for each in reader.usage.unsupported_options()]
        )
        if reader.info.identity.get("runs_code") and config.sandbox == "none":
            yield (
                "UNSAFE: model-written code ran without a sandbox, so a program could have "
                "changed this record"
            )


def list_reopenings(reader: RunReader) -> Iterator[str]:
    """Each end after which the run was opened again, and the settings that were changed then, also
    after it was killed."""
    history = reader.run.history()
    for number, (last, opened) in enumerate(pairwise(history), 1):
        if opened.kind != "opened":
            continue
        later = takewhile(lambda each: each.kind not in ("opened", "sealed"), history[number + 1 :])
        before, now = read_settings(history[:number]), read_settings(list(later))
        changed = [name for name in now if before.get(name) != now[name]]
        said = f" with another {', '.join(changed)}" if changed else ""
        if last.kind == "sealed":
            yield (
                f"the run stopped at {format_time(last.at)} "
                f"({last.facts['status'] or last.facts['state']}, "
                f"{plural(last.facts['matches'], 'match', 'matches')}) with the digest "
                f"{last.digest}, and was opened again{said}"
            )
        elif changed:
            yield (
                f"the run was interrupted, and was opened again at {format_time(opened.at)}{said}"
            )


def is_of_shell(effect: tuple[bytes, Any]) -> bool:
    """Whether a recorded result is that of a command or a check in a shell."""
    return isinstance(effect[1], dict) and "status" in effect[1]


def read_settings(entries: Sequence[HistoryEntry]) -> dict[str, Any]:
    """The settings that the last of these entries has, those of models as `ALIAS.OPTION`."""
    found = [entry.facts["settings"] for entry in entries if "settings" in entry.facts]
    own = dict(found[-1]) if found else {}
    for alias, options in own.pop("models", {}).items():
        own |= {f"{alias}.{name}": value for name, value in options.items()}
    return own


def list_masked(reader: RunReader) -> list[dict[str, Any]]:
    """Names that were masked for all other seats. Read them to find false positives."""
    return [
        {
            "alias": fault.alias,
            "match": fault.match,
            "round": fault.round,
            "seat": fault.seat.key,
            "masked": fault.detail,
        }
        for fault in reader.violations.read()
        if fault.kind == "identity"
    ]


def wrong_stop_status(reader: RunReader, status: str | None) -> Iterator[str]:
    """Where the stop status of a run is not the one that its plan ends with."""
    config, marked = reader.info.config, reader.info.status
    if reader.info.state == "done" and marked not in ENDS:
        yield (
            f"the run is marked as done with the status `{marked or 'none'}`, which is not a "
            "status that a finished plan can have"
        )
    elif marked in ENDS and marked != status:
        does = f"ends with the status `{status}`" if status else "has not ended"
        yield f"the run has the status `{marked}`, but its plan {does}"
    elif (
        marked == "budget"
        and status is None
        and config.budget_usd is None
        and config.max_calls is None
    ):
        yield (
            "the run has the status `budget` (stopped by a limit), but no limit on calls or cost "
            "was set, and its plan is not finished"
        )
    elif marked == WAITING and not any(each.is_open for each in reader.people.verdicts()):
        yield "the run is marked as waiting for votes, but no match waits for a vote"
    elif marked == "budget" and status not in ("budget", None):
        yield f"the run has the status `budget`, but its plan ends with the status `{status}`"


# recorded facts that may differ from today's: the recorded value counts
NOT_OF_THE_TASK = (
    "parley", "python", "json_repair", "rule", "rule_without_bots", "source", "retrievers",
)  # fmt: skip


def find_unplanned(prepared: Prepared, reader: RunReader) -> Iterator[str]:
    """Matches that the configuration does not plan, missing matches, and a wrong stop status."""
    replay, faults, missing = PlanReplay(prepared.plan, reader), list[str](), 0
    try:
        for match, planned in replay.compare(reader.matches.read()):
            if match is None:
                missing += 1
            else:
                faults += find_faults_in_plan(reader, match, planned)
    # the rule gave up, so the rest cannot be compared with the plan
    except TaskError as wrong:
        yield from [] if reader.info.state == "failed" else [str(wrong)]
        return
    for fact, value in orjson.loads(orjson.dumps(prepared.identity)).items():
        if fact not in NOT_OF_THE_TASK and reader.info.identity.get(fact) != value:
            yield (
                f"the recorded description of the task differs from the installed task in `{fact}`"
            )
    yield from wrong_stop_status(reader, replay.end.status if replay.end else None)
    yield from faults
    if reader.info.state == "done" and missing:
        yield f"{plural(missing, 'planned match is', 'planned matches are')} missing"
    if strangers := reader.scores.orphans():
        listed = ", ".join(map(str, strangers))
        yield f"the record has scores for matches that it does not contain: {listed}"


def find_faults_in_plan(
    reader: RunReader, match: MatchRow, planned: MatchSpec | None
) -> Iterator[str]:
    """Where a match on record is not the planned one, or has a state that it cannot have."""
    if planned != match.spec:
        yield f"match {match.number} differs from the match that follows from the configuration"
    if reader.info.state == "done" and not match.has_ended:
        yield f"match {match.number} has not ended, but the run is marked as done"
