"""What came of a simulation, for people: the table, what was assumed, and which plan to take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from parley.runs.simulation_assumptions import Assumptions
from parley.tables import Table, format_number, terminal_width

LITTLE = 0.8  # of the matches of cycles: a race that needs more saves little
FEW = 6  # models


def format_aim(kind: str, top: int | None, epsilon: float) -> str:
    """An aim as tables name it."""
    return {
        "half_width": f"half-width {epsilon:g}",
        "ranking": "full ranking",
        "top": f"top {top}",
    }[kind]


def recommend_plan(results: Sequence[dict[str, Any]], assumed: Assumptions, most: int) -> str:
    """Which plan to take, in one sentence."""
    said = []
    for aim in dict.fromkeys(each["aim"] for each in results):
        rows = [each for each in results if each["aim"] == aim]
        best = (
            rows[-1]
            if aim != "half_width"
            else min(rows, key=lambda each: each["matches"]["mean"] or math.inf)
        )
        what = format_aim(aim, best["top"], assumed.half_width or 0.0)
        what = (
            what.replace("half-width", "a half-width of") if aim == "half_width" else f"the {what}"
        )
        if best["matches"]["mean"] is None:
            said.append(
                f"{what} is not sure within {most:,} blocks, so raise --max-blocks or --half-width"
            )
            continue
        about = (
            []
            if best["ratio"] in (None, 1)
            else [f"{best['ratio']:.2f} of the matches of {rows[0]['plan']}"]
        )
        if aim == "ranking" and saves_little(rows):
            few = (
                "with few models and a full ranking"
                if assumed.models < FEW
                else "for the full ranking of these"
            )
            about.append(f"{few} a race saves little over {rows[-2]['plan']}")
        said.append(
            f"for {what} play `{format_flags(best)}`" + (f" ({'; '.join(about)})" if about else "")
        )
    return ", ".join(said)


def format_flags(row: dict[str, Any]) -> str:
    """How a plan is asked for."""
    stop = {"half_width": " --until-stable", "ranking": "", "top": f" --top {row['top']}"}
    return f"--plan {row['plan']}{stop[row['aim']]}"


def saves_little(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether the race, which stands last, needs nearly as many matches as the same plan without
    it."""
    race, plain = rows[-1]["matches"]["mean"], rows[-2]["matches"]["mean"]
    return race is not None and plain is not None and race > LITTLE * plain


def render_simulation(data: dict[str, Any], form: str) -> str:
    """The table, and below it what was assumed and what to do; CSV has every number unrounded."""
    if form == "csv":
        return number_table(data).render("csv")
    most, epsilon = data["assumed"]["max_blocks"], data["assumed"]["half_width"]

    def count(value: int | None, bound: int | None) -> str:
        return f"{value:,}" if value is not None else f"> {bound:,}" if bound is not None else "–"

    lines = []
    for each in data["results"]:
        blocks, matches, usd, bound = each["blocks"], each["matches"], each["usd"], each["given_up"]
        cells = [count(blocks["median"], most), count(blocks["p90"], most)]
        cells += [
            count(matches["median"], bound),
            count(matches["p90"], bound),
            format_number(usd["median"]),
            format_number(usd["p90"]),
        ]
        cells += [
            f"{each['decided']:.0%}",
            f"{each['wrong']:.0%}",
            format_number(each["ratio"]),
            str(each["runs"]),
        ]
        lines.append([format_aim(each["aim"], each["top"], epsilon), each["plan"], *cells])
    header = [
        "aim",
        "plan",
        "blocks",
        "90%",
        "matches",
        "90%",
        "usd",
        "90%",
        "decided",
        "wrong",
        "ratio",
        "runs",
    ]
    return Table(header, lines, left=2, note="\n".join(list_remarks(data))).render(
        form, terminal_width()
    )


def number_table(data: dict[str, Any]) -> Table:
    """One column for every number."""
    names = [
        (what, name)
        for what in ("blocks", "matches", "usd")
        for name in ("median", "p90", "mean")
        if (what, name) != ("blocks", "mean")
    ]
    single = ("aim", "top", "plan", "runs", "decided", "wrong", "ratio")
    rows = [
        [*(each[name] for name in single), *(each[what][name] for what, name in names)]
        for each in data["results"]
    ]
    header = [*single, *(f"{what}_{name}" for what, name in names)]
    return Table(header, [["" if value is None else str(value) for value in line] for line in rows])


def list_remarks(data: dict[str, Any]) -> list[str]:
    """What stands below the table."""
    assumed, first = data["assumed"], data["results"][0]["plan"]
    noise, (low, high), step = assumed["noise"], assumed["range"], assumed["step"]
    source = f"estimated from {assumed['run']}" if assumed["run"] else "assumed"
    seats = (
        "alone in a match"
        if assumed["seats"] == 1
        else f"2 in a match, {assumed['roles']} role{'s' * (assumed['roles'] > 1)}"
    )
    said = [
        f"median and 90% point of {data['results'][0]['runs']} simulated runs, for new items, "
        f"alpha {assumed['alpha']:g}; wrong: something that a run said was not so; ratio: mean "
        f"matches, {first} = 1",
        f"ranking: every two models are told apart, or known to lie less than "
        f"{assumed['half_width']:g} apart; "
        "only a race stops by it, other plans stand for comparison",
        f"{source}: {assumed['models']} models, {seats}; scores {low:g} to {high:g}"
        + (f" in steps of {step:g}" if step else "")
        + (
            f"; noise {noise['item']:.3g} by item, {noise['model_item']:.3g} by model × item, "
            f"{noise['match']:.3g} by match"
        ),
        *format_mean_scores(assumed["means"]),
        *assumed["remarks"],
    ]
    if assumed["usd_per_match"] is None:
        said.append("what a match costs is unknown: give --usd-per-match X")
    return [*said, f"advice: {data['advice']}"]


def format_mean_scores(means: Sequence[Sequence[float]]) -> list[str]:
    """What scores come to on average, rounding and bounds included."""
    rows = []
    for row in means:
        shown = [f"{mean:.4g}" for mean in row]
        rows.append(", ".join(shown if len(shown) <= 10 else [*shown[:3], "…", *shown[-3:]]))
    if len(set(rows)) == 1:
        return [f"mean scores{' in both roles' if len(rows) > 1 else ''}: {rows[0]}"]
    return [f"mean scores in role {role}: {row}" for role, row in enumerate(rows, 1)]
