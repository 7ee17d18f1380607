"""What a page shows besides the results themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from parley.audit.summary import NOT_AUDITED, AuditSummary
from parley.report.notable import ROOM, parse_match_limit
from parley.store import RunRef


@dataclass(frozen=True)
class PageOptions:
    """The audits of runs, and which matches are shown."""

    audits: Mapping[RunRef, AuditSummary] = field(default_factory=dict)

    matches: int | None = None  # how many matches of each run; None: those worth reading
    room: int = ROOM  # characters of the matches of one run

    @classmethod
    def choose(cls, audits: Mapping[RunRef, AuditSummary], matches: str | int) -> PageOptions:
        """Options as users give them; `matches` is none, notable or a number."""
        return cls(audits, parse_match_limit(matches))

    def audit_of(self, ref: RunRef) -> AuditSummary:
        return self.audits.get(ref, NOT_AUDITED)
