"""What a page shows besides the results themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from parley.audit.summary import NOT_AUDITED, AuditSummary
from parley.report.model_signs import ModelSigns
from parley.report.notable import parse_match_limit
from parley.store.types import RunRef

LARGEST = 1_500_000  # bytes of a page


@dataclass(frozen=True)
class PageOptions:
    """The audits of runs, which matches are shown, and what runs on one page share."""

    audits: Mapping[RunRef, AuditSummary] = field(default_factory=dict)

    matches: int | None = None  # how many matches of each run; None: those worth reading
    room: int = LARGEST  # bytes of one run
    signs: ModelSigns | None = None  # of all models on the page; None: of those of each run

    @classmethod
    def choose(cls, audits: Mapping[RunRef, AuditSummary], matches: str | int) -> PageOptions:
        """Options as users give them; `matches` is none, notable or a number."""
        return cls(audits, parse_match_limit(matches))

    def audit_of(self, ref: RunRef) -> AuditSummary:
        return self.audits.get(ref, NOT_AUDITED)
