"""`parley simulate`: how many matches each plan would need."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from parley.cli.progress_line import say
from parley.cli.shared_options import SectionedCommand, as_json, in_format, in_store
from parley.cli.simulate_advice import format_aim, recommend_plan, render_simulation
from parley.runs.progress_display import EVERY, SOON
from parley.runs.simulation_assumptions import (
    MOST,
    Assumptions,
    check_assumptions,
    estimate_from_run,
    with_models,
    with_scores,
    with_seats,
)

if TYPE_CHECKING:  # --help must not wait for numpy
    from parley.runs.simulated_models import SimulatedModels
    from parley.runs.simulation import SimulatedRun

FAR = 20_000  # blocks; hardly any real run is longer
SECTIONS = {
    "Common options": (
        "--abilities", "--models", "--best", "--worst", "--half-width", "--top", "--range",
        "--noise", "--seats", "--usd-per-match",
    ),
    "Matches": ("--roles", "--step"),
    "Simulation": ("--runs", "--seed", "--alpha", "--max-blocks"),
    "Store and output": ("--store", "--format", "--json", "--traceback", "-h"),
}  # fmt: skip


class Aim(NamedTuple):
    """A goal of a run, and the plans that can reach it; the plan that plays everything comes
    first."""

    kind: str  # half_width, ranking or top
    plans: tuple[str, ...]
    top: int | None = None


@click.command(cls=SectionedCommand, sections=SECTIONS)
@click.argument("run", required=False)
@click.option(
    "--half-width",
    type=float,
    metavar="X",
    help="Set the half-width that confidence intervals must reach, in points of the score "
    "(with RUN, the default comes from its task).",
)
@click.option(
    "--abilities",
    multiple=True,
    metavar="A,B,…",
    help="Set the mean score of each model, separated by commas (repeat the option for a "
    "second role).",
)
@click.option(
    "--models",
    type=click.IntRange(2, MOST),
    metavar="N",
    help="Assume N models with evenly spaced mean scores (instead of --abilities).",
)
@click.option(
    "--best", type=float, metavar="X", help="Set the mean score of the best model (with --models)."
)
@click.option(
    "--worst",
    type=float,
    metavar="X",
    help="Set the mean score of the worst model (with --models).",
)
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="K",
    help="Simulate also how many matches it takes to identify the top K models.",
)
@click.option(
    "--range", "bounds", metavar="LOW,HIGH", help="Set the range of scores (default: 1,10)."
)
@click.option(
    "--noise",
    metavar="ITEM,MODEL_ITEM,MATCH",
    help="Set the standard deviations of three kinds of noise: item difficulty, model by item, "
    "and single matches (default: 0.5,0.4,1 with --range 1,10; 8,8,18 with --range 0,100).",
)
@click.option(
    "--step",
    type=float,
    metavar="X",
    help="Round scores to multiples of X; 0 means no rounding (default: 1).",
)
@click.option(
    "--seats",
    type=click.IntRange(1, 2),
    metavar="1|2",
    help="Set the number of contestants in a match (default: 2).",
)
@click.option(
    "--roles",
    type=click.IntRange(1, 2),
    metavar="1|2",
    help="Set how many roles the contestants of a match play: 1 if both seats have the same role, "
    "2 if each has its own (default: one role per seat).",
)
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    metavar="X",
    help="Set the significance level.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    help="Simulate this many runs.",
)
@click.option(
    "--max-blocks",
    type=click.IntRange(1, 10**6),
    default=FAR,
    show_default=True,
    help="Stop a simulated run after this many blocks (a block is all matches on one item or "
    "repeat).",
)
@click.option(
    "--usd-per-match",
    type=float,
    metavar="X",
    help="Set the cost of one match in USD (default: unknown).",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Set the random seed.",
)
@in_store
@in_format
@as_json
def command(
    run: str | None,
    half_width: float | None,
    abilities: tuple[str, ...],
    models: int | None,
    best: float | None,
    worst: float | None,
    top: int | None,
    bounds: str | None,
    noise: str | None,
    step: float | None,
    seats: int | None,
    roles: int | None,
    alpha: float,
    runs: int,
    max_blocks: int,
    usd_per_match: float | None,
    seed: int,
    store: str | None,
    form: str,
    as_json: bool,
) -> None:
    """Simulate how many matches each plan needs to reach a precision or a ranking.

    Give the abilities (mean scores) and the noise as options, or let Parley estimate them from
    RUN, a run in the store. Options override these estimates. No model is called.

    \b
    parley simulate --abilities 9,8.8,8.7,8.5 --half-width 0.25
    parley simulate --models 10 --best 9 --worst 8.5 --half-width 0.25 --top 3 --usd-per-match 0.02
    parley simulate --abilities 70,60,55 --range 0,100 --seats 1 --half-width 5     (one model per match)
    parley simulate last
    """  # noqa: E501
    found = Assumptions() if run is None else estimate_from_run(run, store, seats)
    assumed = with_scores(found, bounds, step, noise)
    assumed = with_models(assumed, abilities, models, best, worst)
    assumed = with_seats(assumed, seats, roles, usual=found.roles or None)
    assumed = assumed if half_width is None else replace(assumed, half_width=half_width)
    check_assumptions(assumed, alpha, top, usd_per_match)
    rules = {"alpha": alpha, "max_blocks": max_blocks, "seed": seed, "usd_per_match": usd_per_match}
    data = simulate_plans(assumed, top, runs, rules)
    if as_json:
        import orjson

        click.echo(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
        return
    click.echo(render_simulation(data, form))


def simulate_plans(
    assumed: Assumptions, top: int | None, runs: int, rules: dict[str, Any]
) -> dict[str, Any]:
    """What `--json` prints (schema parley.simulation/1)."""
    import numpy as np

    from parley.runs.simulated_models import Design, SimulatedModels, fit_models
    from parley.runs.simulation import simulate_precision, simulate_ranking

    make = fit_models if assumed.fitted else SimulatedModels
    noise, epsilon = assumed.noise or (0.0, 0.0, 0.0), assumed.half_width or 0.0
    world = make(
        np.array(assumed.means), assumed.low, assumed.high, *noise, assumed.step, assumed.seats
    )
    results, watch = [], SimulationProgress(runs)
    for at, aim in enumerate(list_aims(assumed, top)):
        rows: list[dict[str, Any]] = []
        for place, plan in enumerate(aim.plans):
            rng = np.random.default_rng([rules["seed"], at, place])
            told = watch.about(f"{format_aim(aim.kind, aim.top, epsilon)}, {plan}")
            common: dict[str, Any] = {
                "alpha": rules["alpha"],
                "most": rules["max_blocks"],
                "runs": runs,
                "rng": rng,
                "watch": told,
            }
            design: Design = "round_robin" if plan == "round_robin" else "cycles"
            if aim.kind == "half_width":
                trials = simulate_precision(world, design, epsilon=epsilon, **common)
            else:
                trials = simulate_ranking(
                    world, design, epsilon=epsilon, racing=plan == "race", top=aim.top, **common
                )
            rows.append(summarise_trials(aim, plan, trials, rules["usd_per_match"]))
        results += [{**each, "ratio": compare_matches(each, rows[0])} for each in rows]
    return {
        "schema": "parley.simulation/1",
        "assumed": assumed_facts(world, assumed, rules),
        "results": results,
        "advice": recommend_plan(results, assumed, rules["max_blocks"]),
    }


def list_aims(assumed: Assumptions, top: int | None) -> list[Aim]:
    """The goals to simulate. With one model per match, all plans except a race are the same."""
    plain = ("each",) if assumed.seats == 1 else ("round_robin", "cycles")
    found = [Aim("half_width", plain), Aim("ranking", (*plain, "race"))]
    return (
        [*found, Aim("top", (*plain, "race"), top)]
        if top is not None and top < assumed.models
        else found
    )


class SimulationProgress:
    """Progress on stderr, for long simulations."""

    def __init__(self, runs: int) -> None:
        self._began, self._told, self._runs = time.monotonic(), 0.0, runs

    def about(self, what: str) -> Callable[[int, int], None]:
        def told(ended: int, block: int) -> None:
            now = time.monotonic()
            if now - self._began > SOON and now - self._told > EVERY:
                self._told = now
                say(
                    f"simulating {what}: {ended} of {self._runs} runs finished, now at block "
                    f"{block:,}"
                )

        return told


def summarise_trials(
    aim: Aim, plan: str, trials: Sequence[SimulatedRun], usd: float | None
) -> dict[str, Any]:
    """What simulated runs of a plan took; null if they were not decided or the cost is unknown."""
    mean = (
        fmean(trial.matches for trial in trials) if all(trial.decided for trial in trials) else None
    )
    matches = {
        "median": find_quantile(trials, 0.5, "matches"),
        "p90": find_quantile(trials, 0.9, "matches"),
        "mean": mean,
    }
    return {
        "aim": aim.kind,
        "top": aim.top,
        "plan": plan,
        "runs": len(trials),
        "decided": fmean(trial.decided for trial in trials),
        "wrong": fmean(trial.wrong for trial in trials),
        "blocks": {
            "median": find_quantile(trials, 0.5, "blocks"),
            "p90": find_quantile(trials, 0.9, "blocks"),
        },
        "matches": matches,
        "usd": {
            name: None if usd is None or value is None else usd * value
            for name, value in matches.items()
        },
        # the number of matches at which a run was given up
        "given_up": min((trial.matches for trial in trials if not trial.decided), default=None),
    }


def find_quantile(trials: Sequence[SimulatedRun], share: float, what: str) -> int | None:
    """A quantile over all runs; None if it falls among runs that were not decided."""
    found = sorted(getattr(trial, what) for trial in trials if trial.decided)
    place = math.ceil(share * len(trials)) - 1
    return int(found[place]) if place < len(found) else None


def compare_matches(row: dict[str, Any], first: dict[str, Any]) -> float | None:
    """Mean matches relative to the plan that plays everything."""
    ours, theirs = row["matches"]["mean"], first["matches"]["mean"]
    return ours / theirs if ours is not None and theirs else None


def assumed_facts(
    world: SimulatedModels, assumed: Assumptions, rules: dict[str, Any]
) -> dict[str, Any]:
    """The `assumed` object: the abilities and noise that repeat this simulation."""
    return {
        "run": assumed.run,
        "models": world.models,
        "roles": world.roles,
        "seats": world.seats,
        "abilities": world.abilities.tolist(),
        "means": world.truth.tolist(),
        "range": [world.low, world.high],
        "step": world.step,
        "noise": {"item": world.item, "model_item": world.model_item, "match": world.match},
        "half_width": assumed.half_width,
        "target": "new_items",
        **rules,
        "remarks": list(assumed.remarks),
    }
