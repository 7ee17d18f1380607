"""Parts of a result as tables: differences, role tables, positions, ratings, the way to
stability."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from parley.money import COUNTS, total
from parley.results.parts.courses import (
    aspects,
    fixed,
    judges,
    outcomes,
    partners,
    passes,
    rejudged,
    rounds,
    stops,
)
from parley.results.parts.external import external_tables
from parley.results.parts.roles import corpus, flat, roles
from parley.results.parts.topics import topic_tables
from parley.tables import Table, between, nothing, number, signed
from parley.tasks.word_guessing.analysis import guessing_rows, guessing_tables

Data = Mapping[str, Any]
BARS = "▁▂▃▄▅▆▇█"


def pairs(data: Data) -> list[Table]:
    """All differences, with their intervals and adjusted p."""
    stability = data["stability"]
    level = f"{100 * (1 - stability['alpha']):g}%" if stability else "95%"
    header = ["role", "metric", "a", "b", "a − b", f"{level} interval", "p", "blocks"]
    sure = (
        (
            "intervals and p are adjusted for all pairs and hold at every look; no p: blocks "
            "contradict each other"
        )
        if stability
        else "intervals are for each pair by itself, p is Holm-adjusted within role and metric"
    )
    rows = [
        [
            pair["role"],
            pair["metric"],
            pair["a"],
            pair["b"],
            signed(pair["difference"], data["digits"][pair["metric"]]),
        ]
        + [between(pair["low"], pair["high"], data["digits"][pair["metric"]])]
        + [
            "–" if pair["p"] is None else "<0.001" if pair["p"] < 0.001 else f"{pair['p']:.3f}",
            str(pair["blocks"]),
        ]
        for pair in data["pairs"]
    ]
    new = "; for new items like these" if stability and stability["target"] == "these_items" else ""
    return [Table(header, rows, left=4, note=f"on the blocks that both played{new}; {sure}")]


def positions(data: Data) -> list[Table]:
    """What a position in a role was worth."""
    rows = [
        [each["role"], str(each["position"]), each["metric"], signed(each["effect"])]
        + [between(each["low"], each["high"]), str(each["blocks"])]
        for each in data["positions"]
    ]
    if not rows:
        return [nothing("no role has several positions")]
    header = ["role", "position", "metric", "effect", "95% interval", "blocks"]
    return [
        Table(
            header, rows, left=3, note=f"compared with all positions of the role alike{fixed(data)}"
        )
    ]


def ratings(data: Data) -> list[Table]:
    """Bradley-Terry ratings on Elo's scale."""
    found = []
    for table in data["ratings"]:
        rows = [
            [
                each["alias"],
                *(
                    ["–"] * 2
                    if each["elo"]["value"] is None
                    else [f"{each['elo']['value']:.0f}", elo(each["elo"])]
                ),
            ]
            + [str(each["blocks"]), str(each["matches"])]
            for each in table["models"]
        ]
        first = table["first_mover"]
        notes = [
            f"Bradley-Terry ratings from {table['metric']}, Elo's scale, mean 1500{fixed(data)}"
        ]
        if first["value"] is not None:
            notes.append(
                f"moving first: {first['value']:+.2f} logits, "
                f"{between(first['low'], first['high'])}"
            )
        if len({each["group"] for each in table["models"]}) > 1:
            notes.append("models of different groups never met, and do not compare")
        found.append(
            Table(
                ["model", "rating", "95% interval", "blocks", "matches"],
                rows,
                note="\n".join(notes),
            )
        )
    return found or [nothing("ratings are for matches of two that one wins")]


def elo(found: Data) -> str:
    """The interval of a rating."""
    return "–" if found["low"] is None else f"{found['low']:.0f} to {found['high']:.0f}"


def stability(data: Data) -> list[Table]:
    """Half-widths by the number of blocks, look by look."""
    if data["stability"] is None:
        return [
            nothing(
                "the run played a fixed plan: `--until-stable` and `--plan race` look "
                "at what was played"
            )
        ]
    found = []
    for path in data["stability"]["paths"]:
        cells = (
            [(each["role"], each["alias"]) for each in path["points"][-1]["half_widths"]]
            if path["points"]
            else []
        )
        rows = []
        for point in path["points"]:
            widths = {
                (each["role"], each["alias"]): each["half_width"] for each in point["half_widths"]
            }
            rows.append(
                [
                    str(point["blocks"]),
                    str(point["matches"]),
                    *(f"{number(widths.get(cell), 3)}" for cell in cells),
                ]
            )
        header = ["blocks", "matches", *(f"{alias}, {role}" for role, alias in cells)]
        found.append(
            Table(
                header,
                rows,
                left=0,
                note=f"half-widths of {path['metric']}; {aim(data['stability'], path)}",
            )
        )
    return found


def paths(stability: Data | None) -> list[str]:
    """The way of the widest interval, drawn in one line."""
    if stability is None:
        return []
    lines = []
    for path in stability["paths"]:
        known = [[each["half_width"] for each in point["half_widths"]] for point in path["points"]]
        widest = [max(widths) for widths in known if widths and None not in widths]
        if any(None in widths for widths in known):
            lines.append(
                f"{path['metric']}: no mean fits all blocks of a model: they were not alike"
            )
        elif widest:
            drawn = "".join(
                BARS[round((len(BARS) - 1) * width / max(widest))] for width in thinned(widest, 24)
            )
            now = (
                f"{widest[-1]:.3g} after {path['points'][-1]['blocks']} blocks "
                f"({aim(stability, path)})"
            )
            lines.append(f"widest half-width of {path['metric']}: {drawn} {now}")
    return lines


def aim(stability: Data, path: Data) -> str:
    """What a run went for: intervals so narrow, or differences so small."""
    width = f"{path['half_width']:g}"
    return (
        f"a race decides differences of {width}"
        if stability["plan"] == "race"
        else f"wanted {width}"
    )


def rows_of(part: str, data: Data) -> list[dict[str, Any]]:
    """A part as flat rows, every number as it is: for machines."""
    match part:
        case (
            "cost"
            | "external"
            | "pairs"
            | "partners"
            | "passes"
            | "positions"
            | "rounds"
            | "topics"
        ):
            found = list(data[part])
        case "guessing":
            found = guessing_rows(data["guessing"]) if data["guessing"] else []
        case "roles" | "corpus":
            found = [
                row
                for table in data["tables" if part == "roles" else "corpus"]
                for row in flat(table)
            ]
        case "ratings":
            found = [
                {"metric": table["metric"], "alias": each["alias"], "group": each["group"]}
                | {f"elo_{end}": value for end, value in each["elo"].items()}
                | {"blocks": each["blocks"], "matches": each["matches"]}
                for table in data["ratings"]
                for each in table["models"]
            ]
        case "outcomes":
            ends = dict.fromkeys(end for row in data["outcomes"] for end in row["by"])
            found = [
                {name: value for name, value in row.items() if name != "by"}
                | {f"lost_by_{end.replace(' ', '_')}": row["by"].get(end, 0) for end in ends}
                for row in data["outcomes"]
            ]
        case "aspects":
            names = (
                "alias",
                "role",
                "metric",
                "mean",
                "low",
                "high",
                "blocks",
                "matches",
                "missing",
            )
            found = [{name: row[name] for name in names} for row in data["results"]]
        case "stops":
            ends = dict.fromkeys(end for row in data["stops"] for end in row["reasons"])
            found = [
                {name: row[name] for name in ("alias", "role", "interviews")}
                | {f"stop_{end}": row["reasons"].get(end, 0) for end in ends}
                | {
                    f"{kind}_{name}": value
                    for kind in ("early", "unreadable")
                    for name, value in row[kind].items()
                }
                for row in data["stops"]
            ]
        case "rejudged":
            found = list((data["rejudged"] or {"models": []})["models"])
        case "judges":
            found = judged(data["judges"]) if data["judges"] else []
        case _:
            found = [
                {
                    "metric": path["metric"],
                    "blocks": point["blocks"],
                    "matches": point["matches"],
                    **each,
                }
                for path in (data["stability"] or {"paths": []})["paths"]
                for point in path["points"]
                for each in point["half_widths"]
            ]
    signature = data["results"][0]["signature"] if data["results"] else None
    return [{**row, "signature": signature} for row in found]


def judged(found: Data) -> list[dict[str, Any]]:
    """All about judges in rows of one form: the mean of each one's votes, their agreement, what
    they follow and favour."""
    names = ("judge", "role", "measured", "over", "value", "low", "high", "n", "asked", "blocks")
    votes = [{**each, "value": each["mean"], "n": each["votes"]} for each in found["panel"]]
    bias = [{**each, "over": each["about"]} for each in found["bias"]]
    kinds = {
        "votes": votes,
        "agreement": found["agreement"],
        "validity": found["validity"],
        "bias": bias,
    }
    return [
        {"about": kind} | {name: row.get(name) for name in names}
        for kind, rows in kinds.items()
        for row in rows
    ]


def thinned(values: list[float], most: int) -> Iterable[float]:
    """At most so many of them, evenly spread, first and last among them."""
    if len(values) <= most:
        return values
    return [values[round(at * (len(values) - 1) / (most - 1))] for at in range(most)]


def cost(data: Data) -> list[Table]:
    """Calls, tokens and money, by model and role and in all."""
    rows = [
        [row["alias"], row["role"], str(row["calls"])]
        + ["–" if row[name] is None else str(row[name]) for name in COUNTS]
        + [str(row["lost"]), str(total([row]))]
        for row in data["cost"]
    ]
    whole = total(data["cost"])
    header = [
        "model",
        "role",
        "calls",
        "tokens in",
        "cached",
        "written",
        "tokens out",
        "reasoning",
        "lost",
        "usd",
    ]
    rows.append(
        [
            "all",
            "",
            str(whole.calls),
            *[""] * len(COUNTS),
            str(sum(row["lost"] for row in data["cost"])),
            str(whole),
        ]
    )
    parts = (
        "cached and written (read from a cache, and written to one) are part of tokens in, "
        "reasoning of tokens out"
    )
    lost = "lost: requests that broke off on the way and may have been paid without a reply"
    said = [f"{parts}; {lost}; ≥: not all of it is known", *prices(data)]
    return [Table(header, rows, left=2, note="\n".join(said))]


def prices(data: Data) -> list[str]:
    """At what the tokens of each model were taken, in a line each."""
    long = {
        (row["alias"], row["model_served"]): row["above"]
        for row in data["prices"]
        if row["above"] > 0
    }
    lines = []
    for row in data["prices"]:
        if row["above"] > 0:
            continue
        served = f" as {row['model_served']}" if row["model_served"] else ""
        kinds = {"cached_input": "cached", "written_input": "written"}
        apart = [
            f"{row[kind]:g} {word}"
            for kind, word in kinds.items()
            if row[kind] not in (None, row["input"])
        ]
        paid = ", ".join([f"{row['input']:g} in", *apart, f"{row['output']:g} out"])
        above = long.get((row["alias"], row["model_served"]))
        more = f" (calls of more than {above:,} tokens have prices of their own)" if above else ""
        known = ", ".join(filter(None, [row["source"], row["as_of"]]))
        lines.append(f"{row['alias']}{served}: {paid} USD per million tokens{more} [{known}]")
    return lines


PARTS: dict[str, Callable[[Data], list[Table]]] = {
    "aspects": aspects,
    "corpus": corpus,
    "cost": cost,
    "external": external_tables,
    "guessing": guessing_tables,
    "judges": judges,
    "outcomes": outcomes,
    "pairs": pairs,
    "partners": partners,
    "passes": passes,
    "positions": positions,
    "ratings": ratings,
    "rejudged": rejudged,
    "roles": roles,
    "rounds": rounds,
    "stability": stability,
    "stops": stops,
    "topics": topic_tables,
}
