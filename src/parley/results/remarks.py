"""The notes below the tables of a result: the state of the run, and what limits what its scores
say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parley.money import cost_remarks, is_free
from parley.results.parts.evolve import describe_gains
from parley.results.parts.resolved_pairs import describe_resolved
from parley.results.parts.results import describe_unprotected
from parley.results.parts.stability import describe_paths
from parley.results.run_facts import (
    describe_earlier_seals,
    describe_left_out,
    describe_open_batches,
    describe_unfinished,
    describe_workers,
)
from parley.results.types import (
    IdenticalRepeats,
    Programs,
    RunFactsInResult,
    ViolationCount,
    as_json,
)
from parley.statistics.identical_repeats import WHAT_HELPS
from parley.store.types import NOBODY, WAITING
from parley.tables import plural

if TYPE_CHECKING:
    from parley.results.result import RunResult

UNSAFE = (
    "UNSAFE: model-written code ran without a sandbox, so a program could have changed "
    "anything on this machine, including these numbers"
)
# parts that the notes of the main table use
REMARKS = ("results", "stability", "judges", "rejudged", "cost", "resolved_pairs")
RANKED = ("pairs", "ratings")  # other parts that rank models


def list_remarks(result: RunResult) -> list[str]:
    """The notes below the main table: state of the run, violations, cost, signature."""
    head, lines = result.head, list_reservations(result)
    if head.violations:
        lines.append(
            "violations (replies that broke the format or a rule): "
            f"{', '.join(map(describe_violations, head.violations))}"
        )
    lines += describe_left_out(head.left_out)
    billed = [row for row in result.part("cost").cost if not is_free(head.run.models[row.alias])]
    lines += cost_remarks([as_json(row) for row in billed])
    lines += describe_resolved(result.part("resolved_pairs"))
    lines += list_signature(result)
    lines += describe_earlier_seals(head.run.earlier_seals)
    lines += [describe_failure(*each) for each in result.failures.items()]
    return lines


def list_cautions(result: RunResult) -> list[str]:
    """What to know before reading a number: an unfinished run, missing votes, unsafe code."""
    failed = [describe_failure(*each) for each in result.failures.items()]
    return [*list_reservations(result), *describe_left_out(result.head.left_out), *failed]


def list_part_notes(result: RunResult, part: str) -> list[str]:
    """The notes below the tables of another part than the main one."""
    standing = [] if result.state == "done" else describe_standing(result)
    costs = describe_resolved(result.part("resolved_pairs")) if part in RANKED else []
    return [*standing, *list_dangers(result), *costs, *list_signature(result)]


def list_reservations(result: RunResult) -> list[str]:
    """What limits what the scores say."""
    result.compute(REMARKS)
    head = result.head
    rejudged, judges = result.part("rejudged"), result.part("judges")
    lines = describe_standing(result)
    if head.shown:
        lines += [head.shown, *describe_gains(result.part("evolve"))]
    if rejudged:
        lines.append(
            f"this run rejudges the matches of {rejudged.run} with a new "
            f"{' and '.join(rejudged.roles)}; contestants were not called again"
        )
    if head.run.excluded:
        lines.append(f"excluded models, which did not play: {', '.join(head.run.excluded)}")
    lines += list_dangers(result) + describe_programs(head.programs)
    lines += describe_unprotected(result.part("results") or (), result.style)
    if judges and judges.incomplete.matches:
        missing = judges.incomplete
        lines.append(
            f"some judges' votes are missing in {missing.matches} of "
            f"{plural(missing.of, 'match', 'matches')} (see --part judges)"
        )
    if judges and judges.also_play:
        also = ", ".join(judges.also_play)
        lines.append(
            "these judges are also contestants, so they may favour themselves: "
            f"{also} (see --part judges)"
        )
    return [
        *lines,
        *describe_identical(head.identical),
        *describe_paths(result.part("stability")),
    ]


def list_signature(result: RunResult) -> list[str]:
    """The line with the signature of the scores, if there are scores."""
    results = result.part("results")
    return [f"signature: {results[0].signature}"] if results else []


def list_dangers(result: RunResult) -> list[str]:
    """The warning for a run whose programs ran without a sandbox."""
    return [UNSAFE] if result.head.run.sandbox == "none" else []


def describe_standing(result: RunResult) -> list[str]:
    """The state of the run and why it stopped."""
    run, stop = result.head.run, result.head.run.stop
    if run.state == "done":
        said = stop.status and stop.reason
        return [f"{str(stop.status).replace('_', ' ')}: {stop.reason}"] if said else []
    # with sequential stopping, the number of matches is not known in advance
    done, planned = run.matches.done, run.matches.planned
    count = plural(done, "match", "matches")
    if not result.style.sequential and planned is not None:
        count = f"{done:,} of {plural(planned, 'match', 'matches')}"
    why = f"; {stop.reason}" if stop.reason and result.reasoned else ""
    if result.reasoned:
        why += describe_resuming(run, result.style.sequential)
    elif run.state == "running":
        why = "; the run is being played, so the numbers still change"
    # an `evolve` run plans a stage when the one before has ended
    far = " planned so far" if result.head.shown and not result.style.sequential else ""
    line = f"{run.state}: {count}{far}{why}"
    return [
        line,
        *describe_unfinished(run.unfinished),
        *describe_open_batches(run.open_batches, run.id, run.state),
    ]


def describe_resuming(run: RunFactsInResult, sequential: bool) -> str:
    """What to do so that an unfinished run continues, with the command."""
    workers = "" if run.workers is None else " --workers N"
    resume, limits = f"`parley resume {run.id}{workers}`", run.budget
    if run.workers is not None and run.workers.alive:
        return f"; {describe_workers(run.workers)}; stop it with `parley stop {run.id}`"
    if run.stop.reason == NOBODY:
        return f"; go on with `parley worker {run.id}` on any machine, or with {resume}"
    if run.state == "running":
        return f"; if this run is no longer being played, resume it with {resume}"
    if run.stop.status == WAITING:
        vote = f"`parley annotate vote {run.id} --annotator NAME`"
        return f"; vote with {vote}, then resume with {resume}"
    if run.stop.status == "budget":
        flags = {
            "--budget-usd N": limits.usd is not None,
            "--max-calls N": limits.calls is not None,
            "--max-blocks N": sequential,
        }
        raised = " or ".join(flag for flag, is_set in flags.items() if is_set)
        return f"; resume with {resume} and a higher limit ({raised})"
    if run.state == "failed":
        return f"; fix the cause, then resume with {resume}"
    return f"; resume with {resume}"


def describe_failure(name: str, why: str) -> str:
    """A line on a part that could not be computed."""
    return f"part `{name}` of the result could not be computed: {why}"


def describe_violations(found: ViolationCount) -> str:
    """Violations of a model of one kind, with the number of attempts if it is larger."""
    attempts = f" ({found.attempts} attempts)" if found.attempts > found.count else ""
    return f"{found.alias} {found.kind} ×{found.count}{attempts}"


def describe_programs(found: Programs | None) -> list[str]:
    """Warnings about verdicts that a hostile program could have forged, and programs without a
    verdict."""
    if found is None:
        return []
    remarks = []
    if found.inside:
        were = "was" if found.inside == 1 else "were"
        remarks.append(
            f"{found.inside} of {plural(found.run, 'program')} {were} judged inside the program's "
            "own process, where a program can forge its verdict: they count apart"
        )
    if found.unjudged:
        remarks.append(
            f"{found.unjudged} of {plural(found.run, 'program')} could not be judged and has no "
            "score: a test needs an object of the program as plain data, and the problem has no "
            "reference that shows whether a right program passes"
            if found.unjudged == 1
            else f"{found.unjudged} of {plural(found.run, 'program')} could not be judged and have "
            "no score: tests need objects of the program as plain data, and the problems have no "
            "references that show whether a right program passes"
        )
    return remarks


def describe_identical(found: IdenticalRepeats | None) -> list[str]:
    """A note on a run whose models always gave the same reply to the same prompt."""
    if found is None:
        return []
    alike = f"a match was played {found.plays} times, with identical prompts and replies"
    if found.blocks > found.different:
        alike = (
            f"{found.blocks} blocks have only {plural(found.different, 'distinct set')} of prompts "
            f"and replies"
        )
    exact = (
        "; the scores are exact for these prompts, so they have no interval" if found.exact else ""
    )
    return [
        f"the models always gave the same replies: {alike}{exact}. More repeats add "
        f"nothing; use {WHAT_HELPS}"
    ]
