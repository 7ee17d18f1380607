"""Verdicts of critics and people on the matches of an `evolve` run, with the task's own score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from parley.plans.evolve_settings import PROBE, find_success_rules
from parley.results.scores import parse_metric
from parley.rules.pool import Seat
from parley.store.feedback_notes import read_feedback
from parley.store.reader import RunReader


@dataclass(frozen=True)
class JudgedMatch:
    """The verdict of a critic or of people on one seat of a match, and the task's own score."""

    arm: str
    match: int
    seat: Seat
    verdict: bool | None  # None: it could not be read, or people disagree
    truth: bool


def list_judged_matches(reader: RunReader) -> Iterator[JudgedMatch]:
    """Every verdict of an `evolve` run, once for each arm that uses it. All arms share the
    verdicts of the standard stage."""
    config, identity = reader.info.config, reader.info.identity
    if config.evolve is None:
        return
    metrics = [parse_metric(each) for each in identity["metrics"]]
    roles = [role for role, kind in identity["roles"].items() if kind == "contestant"]
    verdicts, scores = read_feedback(reader).verdicts, reader.scores.by_match()
    arms = {match.number: match.arm.removesuffix(PROBE) for match in reader.matches.read()}
    for name, arm in config.evolve.arms.items():
        if arm.feedback == "truth":
            continue
        rules = find_success_rules(metrics, roles, arm, identity["task"])
        for (match, seat, by), verdict in verdicts.items():
            rule = rules.get(seat.role)
            if by != arm.feedback or arms[match] not in ("", name) or rule is None:
                continue
            given = scores.get(match, {}).get(seat, {})
            if rule.applies(given):
                right = rule.holds(given.get(rule.metric))
                yield JudgedMatch(name, match, seat, verdict, right)
