"""Whether a run was fair, in words: what an audit checked and found, violations, and what was
masked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from parley.audit.summary import AuditSummary, FairnessCheck
from parley.results.match_notes import Mark
from parley.results.result import RunResult
from parley.store.reader import RunReader
from parley.store.types import ViolationRow
from parley.tables import Table, plural, shorten

MOST_BREACHES = 10  # breaches that are listed openly; more are folded
MOST_FOLDED = 200
EXAMPLES = 3  # of violations of one model and kind
LONGEST = 300  # characters of an example
IDENTITY = "identity"  # the kind of a violation in which a seat reveals its model
# by check: its title, and what is true where it finds no breach
WORDS = {
    "digest": ("Record", "the record matches the digests that were written with it"),
    "synchrony": ("Simultaneous rounds", "in every round, all prompts came before all replies"),
    "shown": ("Views", "every seat was shown what the record says"),
    "replay": ("Replay", "replayed without models, the replies give the same record and scores"),
    "works": ("Reference works", "lookups give the answers on record"),
    "anonymity": ("Anonymity", "the referee named no model to any seat"),
    "information": ("Equal information", "all seats of a role began with the same information"),
    "plan": ("Plan", "the matches on record are the planned ones"),
    "recalled": ("Memories", "seats were shown only their own earlier experiences"),
    "votes": ("Votes", "people had voted on every match before the next stage began"),
    "balance": ("Balance", "every model held every role and position equally often"),
    "items": ("Items", "every model played every item equally often"),
}
PLACE = "-fairness"  # the end of the section's anchor
OF_THE_RUN = ("plan", "balance", "items")  # checks of the run as a whole


def summarise_fairness(audit: AuditSummary) -> Mark:
    """The verdict of an audit, which leads to the section on fairness."""
    open_checks = sum(bool(check.unchecked) for check in audit.checks)
    if audit.skipped:
        return Mark("not audited", "warn", PLACE)
    if audit.breaches:
        found = plural(len(audit.breaches), "breach", "breaches")
        return Mark(f"✗ audited: {found}", "bad", PLACE)
    if open_checks:
        left = plural(open_checks, "check")
        return Mark(f"audited: no breach, {left} not made", "warn", PLACE)
    return Mark("✓ audited: no breach", "good", PLACE)


@dataclass(frozen=True)
class Fairness:
    """The section on fairness."""

    anchor: str
    audit: str  # what the audit found, or why there is none
    checks: Table | None
    unchecked: Sequence[str]
    breaches: Sequence[str]
    more_breaches: Sequence[str]
    breach_count: int
    limits: Sequence[str]  # of the audit
    violations: Table | None
    violation_examples: Sequence[str]
    masking: str
    masked: Table | None
    masked_examples: Sequence[str]


def describe_fairness(
    result: RunResult, reader: RunReader, audit: AuditSummary, anchor: str
) -> Fairness:
    """What the audit found, then violations, then what was masked."""
    run, violations = result.head.run.id, result.head.violations
    faults = [
        [each.alias, each.kind, str(each.count), str(each.attempts)]
        for each in violations
        if each.kind != IDENTITY
    ]
    revealed = [[each.alias, str(each.attempts)] for each in violations if each.kind == IDENTITY]
    wanted = {(each.alias, each.kind): min(each.attempts, EXAMPLES) for each in violations}
    examples = find_examples(reader.violations.read(), wanted)
    checks = [list_cells(check) for check in audit.checks]
    header = ["model", "kind", "violations", "attempts"]
    return Fairness(
        anchor,
        describe_audit(audit, run),
        None if audit.skipped else Table(["check", "covered", "found"], checks, left=3),
        describe_unchecked(audit.checks),
        audit.breaches[:MOST_BREACHES],
        list_more_breaches(audit, run),
        len(audit.breaches),
        audit.cautions,
        Table(header, faults, left=2) if faults else None,
        [describe_example(each) for each in examples if each.kind != IDENTITY],
        describe_masking(audit, bool(revealed)),
        Table(["model", "masked"], revealed) if revealed else None,
        [describe_example(each) for each in examples if each.kind == IDENTITY],
    )


def describe_audit(audit: AuditSummary, run: str) -> str:
    """What the audit checked and found."""
    if audit.skipped:
        return f"Not audited: {audit.skipped}. Audit the run with: parley audit {run}"
    made = [check for check in audit.checks if not check.unchecked]
    found = plural(len(audit.breaches), "breach", "breaches") if audit.breaches else "no breach"
    return (
        f"The audit read the stored record and called no model. It found {found} in "
        f"{plural(len(made), 'check')}."
    )


def list_more_breaches(audit: AuditSummary, run: str) -> list[str]:
    """The breaches after the first ones, and how many are left out."""
    found = list(audit.breaches[MOST_BREACHES : MOST_BREACHES + MOST_FOLDED])
    left = len(audit.breaches) - MOST_BREACHES - MOST_FOLDED
    return [*found, f"{left:,} more: parley audit {run} lists all of them"] if left > 0 else found


def describe_unchecked(checks: Sequence[FairnessCheck]) -> list[str]:
    """The checks that could not be made, one line for each reason."""
    reasons: dict[str, list[str]] = {}
    for check in checks:
        if check.unchecked:
            reasons.setdefault(check.unchecked, []).append(WORDS[check.name][0])
    return [f"{', '.join(titles)} not checked: {why}" for why, titles in reasons.items()]


def list_cells(check: FairnessCheck) -> list[str]:
    """A check as a row of the table."""
    title, fine = WORDS[check.name]
    if check.unchecked:
        return [title, "not checked", "–"]
    covered = plural(check.covered, "match", "matches")
    if check.name == "votes":
        covered = plural(check.covered, "vote")
    elif check.name in OF_THE_RUN:
        covered = "the run"
    if check.breaches:
        return [title, covered, f"✗ {plural(check.breaches, 'breach', 'breaches')}"]
    return [title, covered, f"✓ {fine}"]


def describe_masking(audit: AuditSummary, masked: bool) -> str:
    """In how many replies names were found and masked."""
    lead = "No reply was masked."
    if masked:
        lead = (
            "These seats named models. Other seats read a mask instead; scores use the original "
            "text."
        )
    if audit.skipped:
        return lead
    return (
        f"{lead} The audit searched {plural(audit.replies, 'reply', 'replies')} for names of "
        f"models: found in {audit.revealing:,}, masked in {audit.masked:,}."
    )


def find_examples(
    rows: Iterable[ViolationRow], wanted: dict[tuple[str, str], int]
) -> list[ViolationRow]:
    """The first violations of each model and kind."""
    found, seen, missing = list[ViolationRow](), Counter[tuple[str, str]](), sum(wanted.values())
    for row in rows:
        if not missing:
            break
        key = (row.alias, row.kind)
        if seen[key] < wanted.get(key, 0):
            seen[key] += 1
            missing -= 1
            found.append(row)
    return found


def describe_example(row: ViolationRow) -> str:
    """A violation in one line."""
    said = shorten(" ".join(row.detail.split()), LONGEST)
    return f"{row.alias}, match {row.match}, round {row.round}, {row.kind}: {said} ({row.outcome})"
