"""What a page shows besides the results themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from parley.report.fairness import NOT_AUDITED, AuditSummary
from parley.store import RunRef


@dataclass(frozen=True)
class PageOptions:
    """The audits of runs."""

    audits: Mapping[RunRef, AuditSummary] = field(default_factory=dict)

    def audit_of(self, ref: RunRef) -> AuditSummary:
        return self.audits.get(ref, NOT_AUDITED)
