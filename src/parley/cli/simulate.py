"""`parley simulate`: what each plan would need, before anything is paid."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from parley.cli.assumed import MOST, Assumed, estimated, refuse, with_models, with_scores, with_seats
from parley.cli.options import as_json, in_format, in_store
from parley.cli.progress import EVERY, SOON, say
from parley.tables import Table, number

if TYPE_CHECKING:  # numpy is not waited for by who only asks for help
    from parley.simulation import Trial, World

FAR = 20_000  # blocks; hardly anybody pays for more
LITTLE = 0.8  # of the matches of cycles: a race that needs more saves little
FEW = 6  # models


class Aim(NamedTuple):
    """What is to be reached, and the plans that may get there; the one that plays everything comes first."""

    kind: str  # half_width, ranking or top
    plans: tuple[str, ...]
    top: int | None = None


@click.command()
@click.argument("run", required=False)
@click.option("--half-width", type=float, metavar="X", help="How precise, in the units of the scores (RUN: as its task says).")
@click.option("--abilities", multiple=True, metavar="A,B,…", help="Every model's mean score; repeat it for a second role.")
@click.option("--models", type=click.IntRange(2, MOST), metavar="N", help="Or so many models, evenly spread …")
@click.option("--best", type=float, metavar="X", help="… from this ability …")
@click.option("--worst", type=float, metavar="X", help="… to this one.")
@click.option("--top", type=click.IntRange(1), metavar="K", help="Also what it takes to know only the first K.")
@click.option("--range", "bounds", metavar="LOW,HIGH", help="Between which scores lie (default: 1,10).")
@click.option(
    "--noise", metavar="ITEM,MODEL_ITEM,MATCH", help="Standard deviations (default: 0.5,0.4,1 for 1,10; 8,8,18 for 0,100)."
)
@click.option("--step", type=float, metavar="X", help="What scores are rounded to, 0: nothing (default: 1).")
@click.option("--seats", type=click.IntRange(1, 2), metavar="1|2", help="Contestants in a match (default: 2).")
@click.option("--roles", type=click.IntRange(1, 2), metavar="1|2", help="Roles that they sit in (default: as many as seats).")
@click.option("--alpha", type=float, default=0.05, show_default=True, metavar="X", help="The chance that any of it is wrong.")
@click.option("--runs", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many runs are simulated.")
@click.option("--max-blocks", type=click.IntRange(1, 10**6), default=FAR, show_default=True, help="Where a run gives up.")
@click.option("--usd-per-match", type=float, metavar="X", help="What a match costs (default: unknown).")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Where all chance comes from.")
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
    """Simulate how many matches each plan needs for a wanted precision or ranking; no model is called.

    Abilities and noise are assumed, or estimated from RUN, a run in the store; options override what it says.

    \b
    parley simulate --abilities 9,8.8,8.7,8.5 --half-width 0.25
    parley simulate --models 10 --best 9 --worst 8.5 --half-width 0.25 --top 3 --usd-per-match 0.02
    parley simulate --abilities 70,60,55 --range 0,100 --seats 1 --half-width 5     (every model plays alone)
    parley simulate last
    """
    found = Assumed() if run is None else estimated(run, store, seats)
    assumed = with_scores(found, bounds, step, noise)
    assumed = with_models(assumed, abilities, models, best, worst)
    assumed = with_seats(assumed, seats, roles, usual=found.roles or None)
    assumed = assumed if half_width is None else replace(assumed, half_width=half_width)
    refuse(assumed, alpha, top, usd_per_match)
    rules = {"alpha": alpha, "max_blocks": max_blocks, "seed": seed, "usd_per_match": usd_per_match}
    data = simulated(assumed, top, runs, rules)
    if as_json:
        import orjson

        click.echo(orjson.dumps(data, option=orjson.OPT_INDENT_2).decode())
        return
    click.echo(rendered(data, form))


def simulated(assumed: Assumed, top: int | None, runs: int, rules: dict[str, Any]) -> dict[str, Any]:
    """What `--json` prints (schema parley.simulation/1)."""
    import numpy as np

    from parley import simulation

    make = simulation.alike if assumed.fitted else simulation.World
    noise, epsilon = assumed.noise or (0.0, 0.0, 0.0), assumed.half_width or 0.0
    world = make(np.array(assumed.means), assumed.low, assumed.high, *noise, assumed.step, assumed.seats)
    results, watch = [], Watch(runs)
    for at, aim in enumerate(aims(assumed, top)):
        rows: list[dict[str, Any]] = []
        for place, plan in enumerate(aim.plans):
            rng = np.random.default_rng([rules["seed"], at, place])
            told = watch.about(f"{words(aim.kind, aim.top, epsilon)}, {plan}")
            common: dict[str, Any] = {
                "alpha": rules["alpha"],
                "most": rules["max_blocks"],
                "runs": runs,
                "rng": rng,
                "watch": told,
            }
            design: simulation.Design = "round_robin" if plan == "round_robin" else "cycles"
            if aim.kind == "half_width":
                trials = simulation.stable(world, design, epsilon=epsilon, **common)
            else:
                trials = simulation.ranked(world, design, epsilon=epsilon, racing=plan == "race", top=aim.top, **common)
            rows.append(row(aim, plan, trials, rules["usd_per_match"]))
        results += [{**each, "ratio": ratio(each, rows[0])} for each in rows]
    return {
        "schema": "parley.simulation/1",
        "assumed": facts(world, assumed, rules),
        "results": results,
        "advice": advice(results, assumed, rules["max_blocks"]),
    }


def aims(assumed: Assumed, top: int | None) -> list[Aim]:
    """What is simulated. Who plays alone meets nobody, so that all plans but a race are one."""
    plain = ("each",) if assumed.seats == 1 else ("round_robin", "cycles")
    found = [Aim("half_width", plain), Aim("ranking", (*plain, "race"))]
    return [*found, Aim("top", (*plain, "race"), top)] if top is not None and top < assumed.models else found


def words(kind: str, top: int | None, epsilon: float) -> str:
    """An aim as tables name it."""
    return {"half_width": f"half-width {epsilon:g}", "ranking": "full ranking", "top": f"top {top}"}[kind]


class Watch:
    """Progress on stderr, for what takes long."""

    def __init__(self, runs: int) -> None:
        self._began, self._told, self._runs = time.monotonic(), 0.0, runs

    def about(self, what: str) -> Callable[[int, int], None]:
        def told(ended: int, block: int) -> None:
            now = time.monotonic()
            if now - self._began > SOON and now - self._told > EVERY:
                self._told = now
                say(f"simulating {what}: {ended} of {self._runs} runs have ended, block {block:,}")

        return told


def row(aim: Aim, plan: str, trials: Sequence[Trial], usd: float | None) -> dict[str, Any]:
    """What simulated runs of a plan took; null where they were not decided, or money is unknown."""
    mean = fmean(trial.matches for trial in trials) if all(trial.decided for trial in trials) else None
    matches = {"median": point(trials, 0.5, "matches"), "p90": point(trials, 0.9, "matches"), "mean": mean}
    return {
        "aim": aim.kind,
        "top": aim.top,
        "plan": plan,
        "runs": len(trials),
        "decided": fmean(trial.decided for trial in trials),
        "wrong": fmean(trial.wrong for trial in trials),
        "blocks": {"median": point(trials, 0.5, "blocks"), "p90": point(trials, 0.9, "blocks")},
        "matches": matches,
        "usd": {name: None if usd is None or value is None else usd * value for name, value in matches.items()},
        "given_up": min((trial.matches for trial in trials if not trial.decided), default=None),  # after so many matches
    }


def point(trials: Sequence[Trial], share: float, what: str) -> int | None:
    """What so large a share of the runs did with; None if fewer were decided."""
    found = sorted(getattr(trial, what) for trial in trials if trial.decided)
    place = math.ceil(share * len(trials)) - 1
    return int(found[place]) if place < len(found) else None


def ratio(row: dict[str, Any], first: dict[str, Any]) -> float | None:
    """Mean matches against those of the plan that plays everything."""
    ours, theirs = row["matches"]["mean"], first["matches"]["mean"]
    return ours / theirs if ours is not None and theirs else None


def facts(world: World, assumed: Assumed, rules: dict[str, Any]) -> dict[str, Any]:
    """The `assumed` object: with these abilities and this noise the same can be simulated again."""
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


def advice(results: Sequence[dict[str, Any]], assumed: Assumed, most: int) -> str:
    """Which plan to take, in one sentence."""
    said = []
    for aim in dict.fromkeys(each["aim"] for each in results):
        rows = [each for each in results if each["aim"] == aim]
        best = rows[-1] if aim != "half_width" else min(rows, key=lambda each: each["matches"]["mean"] or math.inf)
        what = words(aim, best["top"], assumed.half_width or 0.0)
        what = what.replace("half-width", "a half-width of") if aim == "half_width" else f"the {what}"
        if best["matches"]["mean"] is None:
            said.append(f"{what} is not sure within {most:,} blocks, so raise --max-blocks or --half-width")
            continue
        about = [] if best["ratio"] in (None, 1) else [f"{best['ratio']:.2f} of the matches of {rows[0]['plan']}"]
        if aim == "ranking" and saves_little(rows):
            few = "with few models and a full ranking" if assumed.models < FEW else "for the full ranking of these"
            about.append(f"{few} a race saves little over {rows[-2]['plan']}")
        said.append(f"for {what} play `{flags(best)}`" + (f" ({'; '.join(about)})" if about else ""))
    return ", ".join(said)


def flags(row: dict[str, Any]) -> str:
    """How a plan is asked for."""
    stop = {"half_width": " --until-stable", "ranking": "", "top": f" --top {row['top']}"}
    return f"--plan {row['plan']}{stop[row['aim']]}"


def saves_little(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether the race, which stands last, needs nearly as many matches as the same plan without it."""
    race, plain = rows[-1]["matches"]["mean"], rows[-2]["matches"]["mean"]
    return race is not None and plain is not None and race > LITTLE * plain


def rendered(data: dict[str, Any], form: str) -> str:
    """The table, and below it what was assumed and what to do; CSV has every number unrounded."""
    if form == "csv":
        return plain(data).render("csv")
    most, epsilon = data["assumed"]["max_blocks"], data["assumed"]["half_width"]

    def count(value: int | None, bound: int | None) -> str:
        return f"{value:,}" if value is not None else f"> {bound:,}" if bound is not None else "–"

    lines = []
    for each in data["results"]:
        blocks, matches, usd, bound = each["blocks"], each["matches"], each["usd"], each["given_up"]
        cells = [count(blocks["median"], most), count(blocks["p90"], most)]
        cells += [count(matches["median"], bound), count(matches["p90"], bound), number(usd["median"]), number(usd["p90"])]
        cells += [f"{each['decided']:.0%}", f"{each['wrong']:.0%}", number(each["ratio"]), str(each["runs"])]
        lines.append([words(each["aim"], each["top"], epsilon), each["plan"], *cells])
    header = ["aim", "plan", "blocks", "90%", "matches", "90%", "usd", "90%", "decided", "wrong", "ratio", "runs"]
    return Table(header, lines, left=2, note="\n".join(notes(data))).render(form)


def plain(data: dict[str, Any]) -> Table:
    """One column for every number."""
    names = [
        (what, name)
        for what in ("blocks", "matches", "usd")
        for name in ("median", "p90", "mean")
        if (what, name) != ("blocks", "mean")
    ]
    single = ("aim", "top", "plan", "runs", "decided", "wrong", "ratio")
    rows = [[*(each[name] for name in single), *(each[what][name] for what, name in names)] for each in data["results"]]
    header = [*single, *(f"{what}_{name}" for what, name in names)]
    return Table(header, [["" if value is None else str(value) for value in line] for line in rows])


def notes(data: dict[str, Any]) -> list[str]:
    """What stands below the table."""
    assumed, first = data["assumed"], data["results"][0]["plan"]
    noise, (low, high), step = assumed["noise"], assumed["range"], assumed["step"]
    source = f"estimated from {assumed['run']}" if assumed["run"] else "assumed"
    seats = (
        "alone in a match" if assumed["seats"] == 1 else f"2 in a match, {assumed['roles']} role{'s' * (assumed['roles'] > 1)}"
    )
    said = [
        f"median and 90% point of {data['results'][0]['runs']} simulated runs, for new items, alpha {assumed['alpha']:g}; "
        f"wrong: something that a run said was not so; ratio: mean matches, {first} = 1",
        f"ranking: every two models are told apart, or known to lie less than {assumed['half_width']:g} apart; "
        "only a race stops by it, other plans stand for comparison",
        f"{source}: {assumed['models']} models, {seats}; scores {low:g} to {high:g}"
        + (f" in steps of {step:g}" if step else "")
        + f"; noise {noise['item']:.3g} by item, {noise['model_item']:.3g} by model × item, {noise['match']:.3g} by match",
        *mean_scores(assumed["means"]),
        *assumed["remarks"],
    ]
    if assumed["usd_per_match"] is None:
        said.append("what a match costs is unknown: give --usd-per-match X")
    return [*said, f"advice: {data['advice']}"]


def mean_scores(means: Sequence[Sequence[float]]) -> list[str]:
    """What scores come to on average, rounding and bounds included."""
    rows = []
    for row in means:
        shown = [f"{mean:.4g}" for mean in row]
        rows.append(", ".join(shown if len(shown) <= 10 else [*shown[:3], "…", *shown[-3:]]))
    if len(set(rows)) == 1:
        return [f"mean scores{' in both roles' if len(rows) > 1 else ''}: {rows[0]}"]
    return [f"mean scores in role {role}: {row}" for role, row in enumerate(rows, 1)]
