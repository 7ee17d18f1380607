"""What an audit checked and found, as plain data for reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FairnessCheck:
    """One check of an audit; `unchecked` says why it could not run."""

    name: str
    covered: int  # matches, votes or runs
    breaches: int = 0
    unchecked: str = ""


@dataclass(frozen=True)
class AuditSummary:
    """What an audit checked and found. `skipped` says why no audit was made."""

    checks: tuple[FairnessCheck, ...] = ()
    breaches: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    replies: int = 0  # that were searched for statements that reveal the model
    revealing: int = 0
    masked: int = 0
    skipped: str = ""


NOT_AUDITED = AuditSummary(skipped="no audit was requested")
