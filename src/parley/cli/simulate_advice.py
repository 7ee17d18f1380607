"""The result of a simulation as text: the table, the assumptions and the recommended plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from parley.runs.simulation_assumptions import Assumptions
from parley.tables import Table, format_number, plural, terminal_width

LITTLE = 0.8  # a race that needs a larger share of the matches of cycles saves little
FEW = 6  # models


def format_aim(kind: str, top: int | None, epsilon: float) -> str:
    """The name of an aim in tables."""
    return {
        "half_width": f"half-width {epsilon:g}",
        "ranking": "full ranking",
        "top": f"top {top}",
    }[kind]


def recommend_plan(results: Sequence[dict[str, Any]], assumed: Assumptions, most: int) -> str:
    """The recommended plan for each aim, in one sentence."""
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
                f"not every simulated run reached {what} within {most:,} blocks: raise "
                "--max-blocks or --half-width"
            )
            continue
        about = (
            []
            if best["ratio"] in (None, 1)
            else [
                f"it needs {best['ratio']:.2f} times as many matches as `--plan {rows[0]['plan']}`"
            ]
        )
        if aim == "ranking" and saves_little(rows):
            few = "with few models" if assumed.models < FEW else "with these abilities"
            about.append(
                f"{few}, `--plan race` needs almost as many matches as `--plan {rows[-2]['plan']}`"
            )
        said.append(
            f"for {what}, use `{format_flags(best)}`" + (f" ({'; '.join(about)})" if about else "")
        )
    return ", ".join(said)


def format_flags(row: dict[str, Any]) -> str:
    """The flags that choose a plan."""
    stop = {"half_width": " --until-stable", "ranking": "", "top": f" --top {row['top']}"}
    return f"--plan {row['plan']}{stop[row['aim']]}"


def saves_little(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether the race, in the last row, needs nearly as many matches as the plan before it."""
    race, plain = rows[-1]["matches"]["mean"], rows[-2]["matches"]["mean"]
    return race is not None and plain is not None and race > LITTLE * plain


def render_simulation(data: dict[str, Any], form: str) -> str:
    """The table, with assumptions and advice below it; CSV has all numbers, unrounded."""
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
    """The notes below the table."""
    assumed, first = data["assumed"], data["results"][0]["plan"]
    noise, (low, high), step = assumed["noise"], assumed["range"], assumed["step"]
    source = f"estimated from {assumed['run']}" if assumed["run"] else "assumed"
    seats = (
        "1 per match"
        if assumed["seats"] == 1
        else f"2 per match, {plural(assumed['roles'], 'role')}"
    )
    said = [
        f"each number is the median over {plural(data['results'][0]['runs'], 'simulated run')}, "
        "and `90%` after it is the 90% quantile; the results hold for new items, at "
        f"significance level {assumed['alpha']:g}",
        "`decided` is the share of simulated runs that reached the aim; `wrong` is the share "
        "that drew a false conclusion; `ratio` is the mean number of matches, relative to plan "
        f"`{first}`",
        "a ranking is full when every pair of models is either separated or known to differ by "
        f"less than {assumed['half_width']:g}; only `--plan race` stops at that point, and the "
        "other plans are shown for comparison",
        f"{source}: {plural(assumed['models'], 'model')}, {seats}; scores from {low:g} to {high:g}"
        + (f" in steps of {step:g}" if step else "")
        + (
            f"; standard deviations of the noise: {noise['item']:.3g} between items, "
            f"{noise['model_item']:.3g} of a model on an item, {noise['match']:.3g} between "
            "matches"
        ),
        *format_mean_scores(assumed["means"]),
        *assumed["remarks"],
    ]
    if assumed["usd_per_match"] is None:
        said.append("the cost is unknown: set the cost of one match with --usd-per-match X")
    return [*said, f"advice: {data['advice']}"]


def format_mean_scores(means: Sequence[Sequence[float]]) -> list[str]:
    """Mean scores after rounding and clipping to the range."""
    rows = []
    for row in means:
        shown = [f"{mean:.4g}" for mean in row]
        rows.append(", ".join(shown if len(shown) <= 10 else [*shown[:3], "…", *shown[-3:]]))
    if len(set(rows)) == 1:
        return [f"mean scores{' in both roles' if len(rows) > 1 else ''}: {rows[0]}"]
    return [f"mean scores in role {role}: {row}" for role, row in enumerate(rows, 1)]
