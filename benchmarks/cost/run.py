"""What a ranking costs in USD and hours: the race and cycles against the full round robin, with
cached prefixes and at batch prices, beside the lower bound on matches.

    python benchmarks/cost/run.py [--quick] [--jobs 2] [--only 4,10] [--out FILE]

Prints two tables and leaves with 1 if a bar is missed. The worlds, the plans and the simulated runs
are those of `benchmarks/plans`. No model is called. Prices, token counts and rate limits are below.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.cost.lower_bound import bound_matches
from benchmarks.plans import run as plans

from parley.money import MILLION
from parley.runs.simulation import SimulatedRun

DELTA = 0.05  # the error rate of every plan
BAR = 1 / 5  # of the money and hours of the round robin, for the top 3 of 10 models
# Tokens a minute of each model, input and output, cached ones included. These are Anthropic's
# limits on the input of claude-sonnet-4-5 in the first and the second tier of accounts (2026).
PER_MINUTE = 30_000
MORE_PER_MINUTE = 450_000
CALL_SECONDS = 6.0
BATCH_HOURS = 1.0  # until a batch has its replies; providers promise 24, most take less than 1
BATCH = 0.5  # of the price, for input and output, not combined with cache prices


@dataclass(frozen=True)
class ListedModel:
    """A model's prices in USD per million tokens, and the shortest prefix that is cached."""

    name: str
    input: float
    cached: float
    written: float
    output: float
    shortest: int = 1024
    step: int = 128  # cached prefixes are multiples of this


# As genai-prices 0.2.1 lists them on 2026-11-01, the most expensive first. Anthropic bills what is
# written to the cache; OpenAI caches by itself, in steps of 128 tokens.
MODELS = (
    ListedModel("claude-opus-4-5", 5.0, 0.5, 6.25, 25.0, 4096, 1),
    ListedModel("claude-sonnet-4-5", 3.0, 0.3, 3.75, 15.0, 1024, 1),
    ListedModel("gpt-4o", 2.5, 1.25, 2.5, 10.0),
    ListedModel("gpt-5.1", 1.25, 0.125, 1.25, 10.0),
    ListedModel("gpt-4.1", 2.0, 0.5, 2.0, 8.0),
    ListedModel("claude-haiku-4-5", 1.0, 0.1, 1.25, 5.0, 4096, 1),
    ListedModel("gpt-5-mini", 0.25, 0.025, 0.25, 2.0),
    ListedModel("gpt-4.1-mini", 0.4, 0.1, 0.4, 1.6),
    ListedModel("gpt-4o-mini", 0.15, 0.075, 0.15, 0.6),
    ListedModel("gpt-5-nano", 0.05, 0.005, 0.05, 0.4),
)
JUDGE = ListedModel("gpt-5", 1.25, 0.125, 1.25, 10.0)


class Call(NamedTuple):
    """The tokens of one call; the first `known` of its input were sent in the call before."""

    input: int
    known: int
    output: int


@dataclass(frozen=True)
class Dialogue:
    """The tokens of a match: two roles speak in turn, and every prompt repeats what was said."""

    opening: tuple[int, int]  # instructions and item, by role
    replies: tuple[int, int]
    rounds: int
    verdict: tuple[int, int] | None = None  # the judge's instructions, and its reply

    def calls(self, role: int) -> list[Call]:
        """The calls of one role. The first role speaks first."""
        found: list[Call] = []
        for at in range(self.rounds):
            heard = at + role  # messages of the other role so far
            into = self.opening[role] + at * self.replies[role] + heard * self.replies[1 - role]
            found.append(Call(into, found[-1].input if found else 0, self.replies[role]))
        return found

    @property
    def judged(self) -> list[Call]:
        """The judge reads the whole match once."""
        if self.verdict is None:
            return []
        said = self.rounds * sum(self.replies)
        return [Call(self.verdict[0] + said, 0, self.verdict[1])]

    @property
    def steps(self) -> int:
        """Calls that follow each other."""
        return 2 * self.rounds + len(self.judged)


# By range of scores: a program and its reviews, rated by a judge; a longer game that is scored by
# its rules.
DIALOGUES = {
    "1-10": Dialogue((450, 500), (350, 250), 3, verdict=(500, 80)),
    "0-100": Dialogue((1200, 1200), (150, 150), 6),
}


def price_calls(model: ListedModel, calls: list[Call], caching: bool) -> float:
    """USD of some calls."""
    usd = 0.0
    for call in calls:
        read, written = 0, 0
        if caching:
            read = call.known // model.step * model.step if call.known >= model.shortest else 0
            written = call.input - read if call.input >= model.shortest else 0
        usd += (call.input - read - written) * model.input + read * model.cached
        usd += written * model.written + call.output * model.output
    return usd / MILLION


def count_tokens(calls: list[Call]) -> int:
    return sum(call.input + call.output for call in calls)


class Spent(NamedTuple):
    """What one simulated run costs."""

    usd: float
    usd_cached: float
    usd_batch: float
    hours: float
    hours_second_tier: float
    hours_batch: float


def spend(trial: SimulatedRun, dialogue: Dialogue) -> Spent:
    """The cost of a simulated run."""
    usd, count = [0.0, 0.0], len(trial.seats[0])
    tokens = [0] * count
    for role, seats in enumerate(trial.seats):
        calls = dialogue.calls(role)
        for at, times in enumerate(seats):
            # the better models are the more expensive ones
            model = MODELS[at * len(MODELS) // count]
            tokens[at] += times * count_tokens(calls)
            for caching in (False, True):
                usd[caching] += times * price_calls(model, calls, caching)
    judge = [trial.matches * price_calls(JUDGE, dialogue.judged, caching) for caching in (0, 1)]
    busiest = max(*tokens, trial.matches * count_tokens(dialogue.judged))
    return Spent(
        usd[0] + judge[0],
        usd[1] + judge[1],
        BATCH * (usd[0] + judge[0]),
        count_hours(trial, dialogue, busiest, PER_MINUTE),
        count_hours(trial, dialogue, busiest, MORE_PER_MINUTE),
        len(trial.looks) * dialogue.steps * BATCH_HOURS,
    )


def count_hours(trial: SimulatedRun, dialogue: Dialogue, tokens: int, limit: int) -> float:
    """The plan waits for its matches at every look. They take as long as the busiest model needs at
    its rate limit, and at least as long as one match."""
    hours, before = 0.0, 0
    for matches in trial.looks:
        share = (matches - before) / trial.matches
        hours += max(share * tokens / limit / 60, dialogue.steps * CALL_SECONDS / 3600)
        before = matches
    return hours


def mean_spent(trials: list[SimulatedRun], case: plans.Case) -> Spent:
    each = [spend(trial, DIALOGUES[case.world.partition(",")[0]]) for trial in trials]
    return Spent(*(fmean(values) for values in zip(*each, strict=True)))


Found = dict[tuple[int, str], list[SimulatedRun]]


def cost_table(chosen: list[int], found: Found) -> tuple[str, bool]:
    """Money and hours of every plan, in Markdown; whether all bars are met."""
    header = [
        *("scores", "aim", "plan", "matches", "USD", "USD, cached", "USD, batch", "hours"),
        *("hours, second tier", "hours, batch", "of round robin: USD", "USD, cached", "hours"),
        *("hours, second tier", "bar", "wrong", ""),
    ]
    lines = [
        f"| {' | '.join(header)} |",
        f"| {' | '.join(['---'] * 3 + ['---:'] * 13 + ['---'])} |",
    ]
    good = True
    for at in chosen:
        case, base = plans.CASES[at], mean_spent(found[at, "round_robin"], plans.CASES[at])
        barred = case.top == 3 and plans.WORLDS[case.world].models == 10
        for plan in plans.PLANS:
            trials = found[at, plan]
            spent, wrong = mean_spent(trials, case), sum(trial.wrong for trial in trials)
            shares = [spent.usd / base.usd, spent.usd_cached / base.usd, spent.hours / base.hours]
            second = spent.hours_second_tier / base.hours_second_tier
            bar = BAR if barred and plan == "race" else None
            met = (
                all(trial.decided for trial in trials)
                and wrong <= DELTA * len(trials)
                and (bar is None or max(shares) <= bar)
            )
            good = good and met
            cells = [case.world, case.aim, plan, f"{fmean(t.matches for t in trials):,.0f}"]
            cells += [f"{usd:,.0f}" for usd in spent[:3]]
            cells += [f"{hours:,.1f}" for hours in spent[3:]]
            cells += [f"{share:.3f}" for share in (*shares, second)]
            cells += ["" if bar is None else f"≤ {bar:g}", f"{wrong} of {len(trials)}"]
            cells += ["met" if met else "**missed**"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines), good


def bound_table(chosen: list[int], found: Found) -> str:
    """The lower bound on matches, and how far every plan is from it."""
    lines = [
        f"| scores | aim | lower bound | {' | '.join(f'{plan} / bound' for plan in plans.PLANS)} |",
        f"| --- | --- | ---: | {' | '.join(['---:'] * len(plans.PLANS))} |",
    ]
    for at in chosen:
        case = plans.CASES[at]
        bound = bound_matches(plans.WORLDS[case.world], case.epsilon, DELTA, case.top)
        shares = [fmean(trial.matches for trial in found[at, plan]) / bound for plan in plans.PLANS]
        cells = [case.world, case.aim, f"{bound:,.0f}", *(f"{share:.1f} ×" for share in shares)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    began = time.monotonic()
    given = plans.read_options("What a ranking costs, by plan.")
    found, seconds = plans.simulated(list(plans.pieces(given.chosen, given.quick)), given.jobs)
    if given.out:
        with given.out.open("a") as file:
            for (at, plan), trials in sorted(found.items()):
                dialogue = DIALOGUES[plans.CASES[at].world.partition(",")[0]]
                file.writelines(
                    json.dumps(
                        {
                            "case": plans.CASES[at].name,
                            "plan": plan,
                            **trial._asdict(),
                            **spend(trial, dialogue)._asdict(),
                        }
                    )
                    + "\n"
                    for trial in trials
                )
    text, good = cost_table(given.chosen, found)
    print(text)
    print(f"\n{bound_table(given.chosen, found)}")
    print(
        f"\n{time.monotonic() - began:.0f} s, {seconds:.0f} s of CPU for simulations, "
        f"{given.jobs} jobs, Python {sys.version.split()[0]}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
