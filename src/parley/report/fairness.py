"""Whether a run was fair, in words: what an audit checked and found, violations, and what was
masked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from parley.audit.summary import AuditSummary, FairnessCheck
from parley.report.sections import draw_table
from parley.report.svg import Clean
from parley.results.result import RunResult
from parley.store import RunReader, ViolationRow
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
OF_THE_RUN = ("plan", "balance", "items")  # checks of the run as a whole


def summarise_fairness(audit: AuditSummary) -> tuple[str, str]:
    """The verdict of an audit for a chip: its kind and its words."""
    open_checks = sum(bool(check.unchecked) for check in audit.checks)
    if audit.skipped:
        return "warn", "not audited"
    if audit.breaches:
        return "bad", f"✗ audited: {plural(len(audit.breaches), 'breach', 'breaches')}"
    if open_checks:
        return "warn", f"audited: no breach, {plural(open_checks, 'check')} not made"
    return "good", "✓ audited: no breach"


def draw_fairness(
    result: RunResult, reader: RunReader, audit: AuditSummary, anchor: str, clean: Clean
) -> str:
    """The section on fairness: the audit, then violations, then what was masked."""
    run, violations = result.head.run.id, result.head.violations
    faults = [each for each in violations if each.kind != IDENTITY]
    revealed = [each for each in violations if each.kind == IDENTITY]
    wanted = {(each.alias, each.kind): min(each.attempts, EXAMPLES) for each in violations}
    examples = find_examples(reader.violations(), wanted)
    parts = [draw_audit(audit, run, clean), "<h3>Violations</h3>"]
    if faults:
        rows = [[each.alias, each.kind, str(each.count), str(each.attempts)] for each in faults]
        words = "A violation is a reply that breaks the required format or a rule."
        table = Table(["model", "kind", "violations", "attempts"], rows, left=2)
        parts += [paragraph(words, clean), draw_table(table, "Violations", clean)]
        parts.append(draw_examples([each for each in examples if each.kind != IDENTITY], clean))
    else:
        parts.append(paragraph("No reply broke the required format or a rule.", clean))
    parts.append("<h3>Masked names</h3>")
    parts.append(paragraph(describe_masking(audit, bool(revealed)), clean))
    if revealed:
        rows = [[each.alias, str(each.attempts)] for each in revealed]
        parts.append(draw_table(Table(["model", "masked"], rows), "Masked names", clean))
        parts.append(draw_examples([each for each in examples if each.kind == IDENTITY], clean))
    body = "".join(parts)
    return f'<section class="card" id="{escape(anchor)}"><h2>Fairness</h2>{body}</section>'


def draw_audit(audit: AuditSummary, run: str, clean: Clean) -> str:
    """What the audit checked and found."""
    if audit.skipped:
        again = f"Audit the run with: parley audit {run}"
        return paragraph(f"Not audited: {audit.skipped}. {again}", clean)
    made = [check for check in audit.checks if not check.unchecked]
    found = plural(len(audit.breaches), "breach", "breaches") if audit.breaches else "no breach"
    words = f"The audit read the stored record and called no model. It found {found}"
    words += f" in {plural(len(made), 'check')}."
    rows = [list_cells(check) for check in audit.checks]
    parts = [
        paragraph(words, clean),
        draw_table(Table(["check", "covered", "found"], rows, left=3), "Checks", clean),
        draw_list(describe_unchecked(audit.checks), clean),
        draw_list(audit.breaches[:MOST_BREACHES], clean),
    ]
    folded = audit.breaches[MOST_BREACHES : MOST_BREACHES + MOST_FOLDED]
    if folded:
        left = len(audit.breaches) - MOST_BREACHES - len(folded)
        more = [f"{left:,} more: parley audit {run} lists all of them"] if left else []
        title = plural(len(audit.breaches) - MOST_BREACHES, "more breach", "more breaches")
        parts.append(fold_list(title, [*folded, *more], clean))
    return "".join(parts) + fold_list("Limits of this audit", audit.cautions, clean)


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


def draw_examples(rows: Sequence[ViolationRow], clean: Clean) -> str:
    lines = [
        f"{row.alias}, match {row.match}, round {row.round}, {row.kind}: "
        f"{shorten(' '.join(row.detail.split()), LONGEST)} ({row.outcome})"
        for row in rows
    ]
    return fold_list("Examples", lines, clean)


def fold_list(summary: str, lines: Sequence[str], clean: Clean) -> str:
    body = draw_list(lines, clean)
    return f"<details><summary>{escape(summary)}</summary>{body}</details>" if lines else ""


def draw_list(lines: Sequence[str], clean: Clean) -> str:
    items = "".join(f"<li><bdi>{escape(clean(line))}</bdi></li>" for line in lines)
    return f'<ul class="list">{items}</ul>' if lines else ""


def paragraph(words: str, clean: Clean) -> str:
    return f'<p class="why">{escape(clean(words))}</p>'
