"""Figures of the page as SVG that needs nothing else: a scatter plot with its line and band, bars
of stop reasons."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from parley.statistics.contamination import LOOK, SUSPECTED, Fit, Position
from parley.tasks.kieval.analysis import NONE

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 400, 52, 16, 14, 44
NAMED = 12  # models up to which all are named, otherwise those that lie apart
KINDS = 6  # colours of the bars


def scatter(fit: Fit) -> str:
    """Score against accuracy on one dataset; who lies apart has a sign of its own and a name."""
    band = fit.band or []
    across = span([one.accuracy for one in fit.positions])
    heights = [one.score for one in fit.positions] + [
        end for step in band for end in (step.low, step.high)
    ]
    up = span([min(max(value, -5.0), 105.0) for value in heights])

    def x(value: float) -> float:
        return round(
            LEFT + (value - across[0]) / (across[1] - across[0]) * (WIDTH - LEFT - RIGHT), 1
        )

    def y(value: float) -> float:
        inside = min(max(value, up[0]), up[1])
        return round(
            HEIGHT - BOTTOM - (inside - up[0]) / (up[1] - up[0]) * (HEIGHT - TOP - BOTTOM), 1
        )

    parts = [*grid(across, up, x, y)]
    if band:
        edge = [f"{x(step.x)},{y(step.high)}" for step in band] + [
            f"{x(step.x)},{y(step.low)}" for step in reversed(band)
        ]
        parts.append(f'<polygon class="band" points="{" ".join(edge)}"/>')
        parts.append(
            f'<polyline class="line" '
            f'points="{" ".join(f"{x(step.x)},{y(step.y)}" for step in band)}"/>'
        )
    parts += [sign(one, x(one.accuracy), y(one.score)) for one in fit.positions]
    parts += names(fit.positions, x, y)
    return svg(WIDTH, HEIGHT, f"KIEval score against accuracy on {fit.dataset}", parts)


def grid(across: tuple[float, float], up: tuple[float, float], x: Any, y: Any) -> list[str]:
    """Axes with their ticks and titles."""
    parts = []
    for value in ticks(*across):
        parts.append(
            f'<line class="grid" x1="{x(value)}" y1="{TOP}" x2="{x(value)}" '
            f'y2="{HEIGHT - BOTTOM}"/>'
        )
        parts.append(
            f'<text x="{x(value)}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{value:g}</text>'
        )
    for value in ticks(*up):
        parts.append(
            f'<line class="grid" x1="{LEFT}" y1="{y(value)}" x2="{WIDTH - RIGHT}" y2="{y(value)}"/>'
        )
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4}" text-anchor="end">{value:g}</text>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" '
        f'text-anchor="middle">accuracy, %</text>'
    )
    parts.append(
        f'<text transform="translate(14 {middle}) '
        f'rotate(-90)" text-anchor="middle">KIEval score</text>'
    )
    return parts


def sign(one: Position, x: float, y: float) -> str:
    """A model: a circle, and if it lies apart a form and a colour of its own."""
    level = one.below.level or one.above.level
    said = f"{one.model}: accuracy {one.accuracy:.1f}, KIEval {one.score:.1f}" + (
        f", {level}" if level else ""
    )
    title = f"<title>{escape(said)}</title>"
    if one.below.level == SUSPECTED:
        corners = f"{x},{y - 7} {x + 7},{y} {x},{y + 7} {x - 7},{y}"
        return f'<polygon class="suspected" points="{corners}">{title}</polygon>'
    if one.below.level == LOOK:
        return f'<rect class="look" x="{x - 5}" y="{y - 5}" width="10" height="10">{title}</rect>'
    if one.above.level is not None:
        return (
            f'<polygon class="above" points="{x},{y - 7} {x + 6},{y + 5} '
            f'{x - 6},{y + 5}">{title}</polygon>'
        )
    return f'<circle class="point" cx="{x}" cy="{y}" r="4.5">{title}</circle>'


def names(positions: Sequence[Position], x: Any, y: Any) -> list[str]:
    """Names beside the signs, moved up or down where they would cover each other."""
    shown = [
        one for one in positions if len(positions) <= NAMED or one.below.level or one.above.level
    ]
    parts, taken = [], list[tuple[float, float, float]]()
    for one in sorted(shown, key=lambda one: (one.score, one.model)):
        label = one.model if len(one.model) <= 24 else f"{one.model[:23]}…"
        wide, at = 7.0 * len(label), y(one.score) + 4
        right = x(one.accuracy) + 10 + wide <= WIDTH
        begin = x(one.accuracy) + 10 if right else x(one.accuracy) - 10 - wide
        while any(
            abs(at - other) < 13 and begin < end and start < begin + wide
            for other, start, end in taken
        ):
            at -= 13
        taken.append((at, begin, begin + wide))
        place = f'x="{begin}"' if right else f'x="{x(one.accuracy) - 10}" text-anchor="end"'
        parts.append(
            f'<text class="name" {place} y="{round(max(at, 10.0), 1)}">{escape(label)}</text>'
        )
    return parts


def stop_bars(rows: Sequence[Mapping[str, Any]]) -> str:
    """Interviews that ended early, by model and reason, all datasets together (KIEval, figure
    4)."""
    models: dict[str, Counter[str]] = {}
    held: Counter[str] = Counter()
    for row in rows:
        held[row["alias"]] += row["interviews"]
        models.setdefault(row["alias"], Counter()).update(
            {r: n for r, n in row["reasons"].items() if r != NONE}
        )
    reasons = sorted({reason for found in models.values() for reason in found})
    most = max(
        (found.total() / held[model] for model, found in models.items() if held[model]), default=0.0
    )
    if not most:
        return ""
    left, line = 180, 26
    height = line * len(models) + 24 + 18 * math.ceil(len(reasons) / 3)
    parts = []
    for place, (model, found) in enumerate(models.items()):
        top, at = 4 + place * line, float(left)
        label = model if len(model) <= 24 else f"{model[:23]}…"
        parts.append(
            f'<text x="{left - 8}" y="{top + 14}" text-anchor="end">{escape(label)}</text>'
        )
        for kind, reason in enumerate(reasons):
            share = found[reason] / held[model]
            wide = share / most * (WIDTH - left - 95)
            if wide:
                said = escape(
                    f"{model}, {reason.replace('_', ' ')}: "
                    f"{found[reason]} of {held[model]} interviews"
                )
                box = f'x="{at:.1f}" y="{top}" width="{wide:.1f}" height="18"'
                parts.append(f'<rect class="kind{kind % KINDS}" {box}><title>{said}</title></rect>')
            at += wide
        early = f"{100 * found.total() / held[model]:.0f}% of {held[model]}"
        parts.append(f'<text x="{at + 6:.1f}" y="{top + 14}">{early}</text>')
    for kind, reason in enumerate(reasons):
        at, down = 10 + kind % 3 * 180, line * len(models) + 16 + kind // 3 * 18
        parts.append(
            f'<rect class="kind{kind % KINDS}" x="{at}" y="{down}" width="12" height="12"/>'
        )
        parts.append(
            f'<text x="{at + 18}" y="{down + 10}">{escape(reason.replace("_", " "))}</text>'
        )
    return svg(
        WIDTH, height, "Why interviews ended early, as a share of all interviews of a model", parts
    )


def svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """A figure with words for those who do not see it."""
    body, said = "".join(parts), escape(title)
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{said}"><title>{said}</title>{body}</svg>'
    )


def span(values: Sequence[float]) -> tuple[float, float]:
    """A range with a little room around it."""
    low, high = (min(values), max(values)) if values else (0.0, 100.0)
    room = (high - low) * 0.08 or 1.0
    return low - room, high + room


def ticks(low: float, high: float) -> list[float]:
    """Round numbers within a range, four to ten of them."""
    size = 10.0 ** math.floor(math.log10((high - low) / 2))
    step = next(size * times for times in (0.5, 1, 2, 5, 10) if (high - low) / (size * times) <= 8)
    return [round(step * at, 6) for at in range(math.ceil(low / step), math.floor(high / step) + 1)]
