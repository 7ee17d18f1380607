"""Planted abilities: bots with a known true order play a task, and its results must show that
order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Any

from parley.config.selection import as_items
from parley.datasets.open_references import open_references
from parley.errors import UsageError, unknown_name
from parley.match.match import Match
from parley.match.seating import seat_counts
from parley.participants.bot import ANYWHERE, Bot, make
from parley.plans import MatchSpec
from parley.plans.arrangements import default_arrangement
from parley.plans.fixed import make_fixed_plan
from parley.report.notebook_table import for_notebook
from parley.rules.bot_view import BotView
from parley.rules.parameters import parse_keywords
from parley.rules.quotations import derive_match_key
from parley.rules.task import Metric, Task
from parley.runs.event_loop import run_sync
from parley.statistics import estimates
from parley.statistics.intervals import ALPHA
from parley.statistics.score_table import Observation, ScoreTable
from parley.statistics.student_t import incomplete_beta
from parley.tables import Table, format_number, plural
from parley.testing.by_hand import QUOTATION_SECRET

FLUKE = 0.001  # an outcome that is rarer than this under a sound statistic is an error
Named = str | Mapping[str, Any]
Rows = list[Observation]
Execute = Callable[[Mapping[str, Any]], Awaitable[Any]]


def check_planted(
    task: Task,
    order: Sequence[Named | Sequence[Named]],
    *,
    roles: Mapping[str, Sequence[Named]] | None = None,
    items: Sequence[Any] = (),
    metric: str | None = None,
    only: str | None = None,
    plan: str | None = None,
    runs: int = 250,
    blocks: int = 10,
    seed: int = 0,
    execute: Execute | None = None,
) -> Table:
    """Check that a task's results show a known order of bots, from best to worst. Raises
    AssertionError with a table of what it found.

    A bot is "bot/NAME", "bot/NAME:option=value,…" or {"model": "bot/NAME", option: value}. A list
    of bots inside the order means that they are equal. Many small runs are played in memory and
    compared with Parley's own statistics. It is an error if

    - more than 5% of runs find the opposite of a planted difference, or a difference between equal
      bots (by more than chance explains);
    - all runs pooled do not show a planted difference.

    `roles` seats instruments, `only` restricts the check to one role, `execute` runs code.
    """
    bots: dict[str, Bot] = {}
    places = [
        [
            add_bot(task, one, bots)
            for one in ([place] if isinstance(place, str | Mapping) else place)
        ]
        for place in order
    ]
    panels = {
        role: [add_bot(task, one, bots) for one in panel] for role, panel in (roles or {}).items()
    }
    contestants = [alias for place in places for alias in place]
    if len(contestants) < 2:
        raise UsageError(
            "an order needs at least two bots, like check_planted(task, ['bot/better', "
            "'bot/worse'])"
        )
    if only is not None and only not in task.roles:
        raise unknown_name(f"role of {task.name}:", only, task.roles)
    known = {item.id: item for item in as_items(items, type(task))}

    def planned(run: int) -> Sequence[MatchSpec]:
        ids = Random(run).sample(sorted(known), min(blocks, len(known)))
        return make_fixed_plan(
            plan or default_arrangement(task),
            task,
            contestants,
            panels,
            ids,
            1 if ids else blocks,
            run,
        ).specs

    chosen, works = metric_of(task, planned(seed)[0], metric), open_references(task)

    async def series() -> list[Rows]:
        return [
            await play_models(task, planned(run), bots, known, chosen.name, execute, works)
            for run in range(seed, seed + runs)
        ]

    found = Findings(
        places,
        chosen,
        [[row for row in rows if only in (None, row.role)] for rows in run_sync(series())],
    )
    table = Table(
        HEADER,
        found.lines,
        left=2,
        note=f"{plural(runs, 'run')} of {plural(blocks, 'block')}; {chosen.name}, "
        f"{chosen.better} is better",
    )
    if found.errors:
        raise AssertionError(
            "\n".join(
                [
                    f"{task.name} does not rank the bots in the expected order:",
                    *found.errors,
                    "",
                    str(table),
                ]
            )
        )
    return for_notebook(table)


HEADER = ["role", "truth", "found", "wrong", "difference", "p (all runs)"]


class Findings:
    """What the runs found, one by one and pooled, compared with the truth."""

    def __init__(
        self, places: Sequence[Sequence[str]], metric: Metric, played: Sequence[Rows]
    ) -> None:
        self.metric, self.runs = metric, len(played)
        self.place = {alias: number for number, place in enumerate(places) for alias in place}
        self.lines: list[list[str]] = []
        self.errors: list[str] = []
        together = [
            row._replace(block=f"{run} {row.block}")
            for run, rows in enumerate(played)
            for row in rows
        ]
        met = {frozenset((pair.a, pair.b)) for pair in self.pairs(together)}
        for a, b in combinations(self.place, 2):
            if {a, b} not in met:
                self.errors.append(f"{a} and {b} were never scored in the same block and role")
        self.differences(played, together)
        for place in places:
            if len(place) > 1:
                self.equals(place, played)

    def differences(self, played: Sequence[Rows], together: Rows) -> None:
        """Check planted differences: no more reversals than chance allows, and all found when runs
        are pooled."""
        right, wrong = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
        for rows in played:
            for role, ahead, behind, gap, p in self.compared(rows):
                (right if gap > 0 else wrong)[role, ahead, behind] += p is not None and p <= ALPHA
        for role, ahead, behind, gap, p in self.compared(together):
            truth, key = f"{ahead} > {behind}", (role, ahead, behind)
            shown = "–" if p is None else f"{p:.2g}"
            self.lines.append(
                [
                    role,
                    truth,
                    self.share(right[key]),
                    self.share(wrong[key]),
                    format_number(gap),
                    shown,
                ]
            )
            if more_than_chance(wrong[key], self.runs):
                self.errors.append(
                    f"{truth} ({role}): {self.share(wrong[key])} of the runs found the opposite "
                    "order"
                )
            if p is None or p > ALPHA or gap <= 0:
                self.errors.append(
                    f"{truth} ({role}): not found even when all runs are pooled (difference "
                    f"{format_number(gap)}, p {shown})"
                )

    def equals(self, place: Sequence[str], played: Sequence[Rows]) -> None:
        """Check equal bots, compared only with each other, so that no other pair weakens the
        correction."""
        different = Counter[str]()
        for rows in played:
            found = self.pairs([row for row in rows if row.alias in place])
            different.update(
                {pair.role for pair in found if pair.p is not None and pair.p <= ALPHA}
            )
        truth = " = ".join(place)
        for role in sorted({row.role for rows in played for row in rows if row.alias in place}):
            self.lines.append([role, truth, "", self.share(different[role]), "", ""])
            if more_than_chance(different[role], self.runs):
                self.errors.append(
                    f"{truth} ({role}): {self.share(different[role])} of the runs found a "
                    "difference"
                )

    def compared(self, rows: Rows) -> list[tuple[str, str, str, float, float | None]]:
        """Role, better, worse, difference and p of every pair that truly differs."""
        found = []
        for pair in self.pairs(rows):
            ahead, behind = sorted((pair.a, pair.b), key=self.place.__getitem__)
            if self.place[ahead] < self.place[behind]:
                sign = (1 if ahead == pair.a else -1) * (
                    1 if self.metric.better == "higher" else -1
                )
                found.append((pair.role, ahead, behind, sign * pair.difference, pair.p))
        return found

    def pairs(self, rows: Rows) -> list[estimates.PairedDifference]:
        return estimates.compare_models(
            estimates.block_means(ScoreTable.of(rows)),
            {self.metric.name: (self.metric.low, self.metric.high)},
        )

    def share(self, count: int) -> str:
        return f"{100 * count / self.runs:.1f}%"


def more_than_chance(count: int, runs: int) -> bool:
    """Whether this is more errors than chance explains if they happen in 5% of runs (exact binomial
    tail)."""
    return count > 0 and incomplete_beta(count, runs - count + 1, ALPHA) < FLUKE


def metric_of(task: Task, spec: MatchSpec, name: str | None) -> Metric:
    """The metric with this name, or the task's first."""
    known = {metric.name: metric for metric in task.metrics(seat_counts(spec.seats, task))}
    if name is not None and name not in known:
        raise unknown_name(f"metric of {task.name}:", name, known)
    return known[name or next(iter(known))]


async def play_models(
    task: Task,
    specs: Sequence[MatchSpec],
    bots: Mapping[str, Bot],
    items: Mapping[str, Any],
    metric: str,
    execute: Execute | None,
    works: Mapping[str, Any],
) -> Rows:
    """Play one run in memory."""
    rows: Rows = []
    for spec in specs:
        cast = {seat: bots[alias] for seat, alias in spec.seats.items()}
        item = None if spec.item is None else items[spec.item]
        outcome = await Match(
            task,
            cast,
            quotation_key=derive_match_key(QUOTATION_SECRET, spec.number),
            seed=spec.seed,
            item=item,
            execute=execute,
            works=works,
        ).play()
        for seat, scores in outcome.scores.items():
            if metric in scores:
                rows.append(
                    Observation(
                        spec.block, spec.number, spec.seats[seat], seat.role, metric, scores[metric]
                    )
                )
    return rows


def add_bot(task: Task, named: Named, bots: dict[str, Bot]) -> str:
    """Add a bot under a unique alias."""
    if isinstance(named, str):
        model, _, rest = named.partition(":")
        options: dict[str, Any] = dict(part.partition("=")[::2] for part in rest.split(",") if part)
    else:
        model, options = (
            str(named.get("model")),
            {name: value for name, value in named.items() if name != "model"},
        )
    family, _, name = model.partition("/")
    if family != "bot":
        raise UsageError(
            f"only bots have planted abilities: write bot/NAME or bot/NAME:option=value, "
            f"not {named!r}"
        )
    stem = ":".join([name, *(f"{option}={value}" for option, value in options.items())])
    alias = next(
        alias
        for alias in (stem, *(f"{stem} ({n})" for n in range(2, len(bots) + 3)))
        if alias not in bots
    )
    make(name, options, type(task))  # a wrong name or option fails here, as it would in a run
    decide = {**ANYWHERE, **task.bots}[name]

    def by_own_luck(bot: BotView, **given: Any) -> Any:
        """In a run, bots that sit alone at the same item draw alike; equals must not."""
        return decide(bot._replace(rng=Random(f"{alias}|{bot.rng.random()}")), **given)

    bots[alias] = Bot(
        name, by_own_luck, parse_keywords(decide, options, "option of", f"bot/{name}")
    )
    return alias
