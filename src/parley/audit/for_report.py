"""The audit of a run for its report: plain data that says what was checked, or why nothing was."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from parley.audit.audit import CHECKS, Audit, audit_run
from parley.audit.summary import AuditSummary, FairnessCheck
from parley.errors import ParleyError
from parley.rules.task import Task
from parley.runs.event_loop import is_inside_loop
from parley.store import read_run
from parley.store.types import RunRef
from parley.tables import plural

MOST_CALLS = 10_000  # calls of a run that is audited without being asked for; 6 s of CPU


def audit_for_report(
    ref: RunRef, task: type[Task] | str | None = None, wanted: bool | None = None
) -> AuditSummary:
    """Audit a run. Without `wanted`, a run of more than `MOST_CALLS` calls is not audited."""
    if wanted is False:
        return AuditSummary(skipped="the report was made without an audit")
    try:
        with read_run(ref) as reader:
            calls = reader.calls.count()
        if wanted is None and calls > MOST_CALLS:
            return AuditSummary(
                skipped=f"the run has {plural(calls, 'call')}, and a report audits runs of up to "
                f"{MOST_CALLS:,} calls unless you ask for it (--audit)"
            )
        if not is_inside_loop():
            return summarise_for_report(audit_run(ref, task))
        with ThreadPoolExecutor(1) as other:  # an audit needs an event loop of its own
            return summarise_for_report(other.submit(audit_run, ref, task).result())
    except ParleyError as wrong:
        return AuditSummary(skipped=f"the audit could not be made: {wrong}")


def summarise_for_report(found: Audit) -> AuditSummary:
    """An audit as plain data."""
    checks = tuple(
        FairnessCheck(
            name,
            found.checked.get(name, 0),
            sum(breach.kind == name for breach in found.breaches),
            "" if name in found.checked else found.unchecked.get(name, ""),
        )
        for name in CHECKS
        if name in found.checked
        or name in found.unchecked
        or any(breach.kind == name for breach in found.breaches)
    )
    seen = found.anonymity
    return AuditSummary(
        checks,
        tuple(map(str, found.breaches)),
        (*found.cautions, seen.unseen),
        seen.replies,
        seen.found,
        seen.masked,
    )
