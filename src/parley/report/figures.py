"""Figures drawn as self-contained SVG: no scripts, fonts or requests."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from parley.results.types import Bars, Dot, Figure, HeatMap, Intervals, Lines, Scatter, Series

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 400, 52, 16, 14, 44
LABELS = 180  # room for names at the left
LINE = 26  # height of a row
NAMED = 12  # dots up to which all are named, otherwise those that lie apart
KINDS = 6  # colours

Axis = Callable[[float], float]


def draw(figure: Figure, clean: Callable[[str], str] = str) -> str:
    """A figure as SVG; `clean` masks secrets in its text."""
    match figure:
        case Scatter():
            return draw_scatter(figure, clean)
        case Bars():
            return draw_bars(figure, clean)
        case Lines():
            return draw_lines(figure, clean)
        case Intervals():
            return draw_intervals(figure, clean)
        case HeatMap():
            return draw_heat_map(figure, clean)


def draw_scatter(figure: Scatter, clean: Callable[[str], str]) -> str:
    """A scatter plot; marked dots have a shape and a name."""
    line = figure.line
    ends = [end for end in (*line.low, *line.high) if end is not None] if line else []
    across = pad_range([dot.x for dot in figure.dots])
    up = pad_range([min(max(y, -5.0), 105.0) for y in [*(dot.y for dot in figure.dots), *ends]])
    x, y = make_axes(across, up)
    parts = [*draw_grid(across, up, x, y, clean(figure.x), clean(figure.y))]
    if line and line.low:
        edge = [(at, high) for at, high in zip(line.x, line.high, strict=True) if high is not None]
        back = [(at, low) for at, low in zip(line.x, line.low, strict=True) if low is not None]
        corners = [f"{x(at)},{y(value)}" for at, value in [*edge, *reversed(back)]]
        parts.append(f'<polygon class="band" points="{" ".join(corners)}"/>')
    if line:
        parts.append(draw_path(line, x, y, "line"))
    parts += [draw_dot(dot, x(dot.x), y(dot.y), clean) for dot in figure.dots]
    parts += draw_dot_names(figure.dots, x, y, clean)
    return wrap_svg(WIDTH, HEIGHT, clean(figure.alt), parts)


def draw_dot(dot: Dot, x: float, y: float, clean: Callable[[str], str]) -> str:
    """A dot; marked dots have another shape and colour."""
    title = f"<title>{escape(clean(dot.note or dot.label))}</title>"
    match dot.mark:
        case "suspected":
            corners = f"{x},{y - 7} {x + 7},{y} {x},{y + 7} {x - 7},{y}"
            return f'<polygon class="suspected" points="{corners}">{title}</polygon>'
        case "look":
            box = f'x="{x - 5}" y="{y - 5}" width="10" height="10"'
            return f'<rect class="look" {box}>{title}</rect>'
        case "above":
            corners = f"{x},{y - 7} {x + 6},{y + 5} {x - 6},{y + 5}"
            return f'<polygon class="above" points="{corners}">{title}</polygon>'
    return f'<circle class="point" cx="{x}" cy="{y}" r="4.5">{title}</circle>'


def draw_dot_names(dots: Sequence[Dot], x: Axis, y: Axis, clean: Callable[[str], str]) -> list[str]:
    """Names next to the dots, moved up where they would overlap."""
    named = [dot for dot in dots if len(dots) <= NAMED or dot.mark]
    parts, taken = [], list[tuple[float, float, float]]()
    for dot in sorted(named, key=lambda dot: (dot.y, dot.label)):
        label = shorten_label(clean(dot.label))
        wide, at = 7.0 * len(label), y(dot.y) + 4
        right = x(dot.x) + 10 + wide <= WIDTH
        begin = x(dot.x) + 10 if right else x(dot.x) - 10 - wide
        while any(
            abs(at - other) < 13 and begin < end and start < begin + wide
            for other, start, end in taken
        ):
            at -= 13
        taken.append((at, begin, begin + wide))
        place = f'x="{begin}"' if right else f'x="{x(dot.x) - 10}" text-anchor="end"'
        top = round(max(at, 10.0), 1)
        parts.append(f'<text class="name" {place} y="{top}">{escape(label)}</text>')
    return parts


def draw_bars(figure: Bars, clean: Callable[[str], str]) -> str:
    """Stacked bars, one under the other, with a legend of their pieces."""
    names = sorted({name for bar in figure.bars for name in bar.pieces})
    most = max((sum(bar.pieces.values()) for bar in figure.bars), default=0.0) or 1.0
    height = LINE * len(figure.bars) + 24 + 18 * math.ceil(len(names) / 3)
    parts = []
    for place, bar in enumerate(figure.bars):
        top, at = 4 + place * LINE, float(LABELS)
        parts.append(draw_row_label(clean(bar.label), top))
        for name, value in bar.pieces.items():
            wide = value / most * (WIDTH - LABELS - 95)
            if wide:
                said = escape(clean(f"{bar.label}, {name}: {value:.3g}"))
                box = f'x="{at:.1f}" y="{top}" width="{wide:.1f}" height="18"'
                kind = names.index(name) % KINDS
                parts.append(f'<rect class="kind{kind}" {box}><title>{said}</title></rect>')
            at += wide
        parts.append(f'<text x="{at + 6:.1f}" y="{top + 14}">{escape(clean(bar.note))}</text>')
    parts += draw_legend([clean(name) for name in names], LINE * len(figure.bars) + 16)
    return wrap_svg(WIDTH, height, clean(figure.alt), parts)


def draw_lines(figure: Lines, clean: Callable[[str], str]) -> str:
    """Lines over a common axis, with a legend; bars at the points where intervals are known."""
    points = [value for series in figure.series for value in series.x]
    values = [
        value
        for series in figure.series
        for value in (*series.y, *series.low, *series.high)
        if value is not None
    ]
    across, up = pad_range(points), pad_range(values)
    x, y = make_axes(across, up)
    parts = [*draw_grid(across, up, x, y, clean(figure.x), clean(figure.y))]
    for kind, series in enumerate(figure.series):
        parts.append(draw_path(series, x, y, f"stroke{kind % KINDS}"))
        for at, low, high in zip(series.x, series.low, series.high, strict=False):
            if low is not None and high is not None:
                ends = f'x1="{x(at)}" y1="{y(low)}" x2="{x(at)}" y2="{y(high)}"'
                parts.append(f'<line class="stroke{kind % KINDS}" {ends}/>')
    names = [clean(series.label) for series in figure.series]
    rows = math.ceil(len(names) / 3)
    parts += draw_legend(names, HEIGHT + 4)
    return wrap_svg(WIDTH, HEIGHT + 8 + 18 * rows, clean(figure.alt), parts)


def draw_intervals(figure: Intervals, clean: Callable[[str], str]) -> str:
    """Values with their intervals, one under the other."""
    ends = [
        end
        for point in figure.points
        for end in (point.low, point.value, point.high)
        if end is not None
    ]
    across = pad_range(ends)
    room = WIDTH - LABELS - RIGHT

    def x(value: float) -> float:
        return round(LABELS + (value - across[0]) / (across[1] - across[0]) * room, 1)

    height = LINE * len(figure.points) + 40
    bottom = LINE * len(figure.points) + 6
    parts = []
    for tick in choose_ticks(*across):
        parts.append(f'<line class="grid" x1="{x(tick)}" y1="0" x2="{x(tick)}" y2="{bottom}"/>')
        place = f'x="{x(tick)}" y="{bottom + 16}"'
        parts.append(f'<text {place} text-anchor="middle">{tick:g}</text>')
    groups = list(dict.fromkeys(point.group for point in figure.points))
    for row, point in enumerate(figure.points):
        middle = 4 + row * LINE + 9
        label = f"{point.label}, {point.group}" if len(groups) > 1 else point.label
        parts.append(draw_row_label(clean(label), 4 + row * LINE))
        kind = groups.index(point.group) % KINDS
        if point.low is not None and point.high is not None:
            line = f'x1="{x(point.low)}" y1="{middle}" x2="{x(point.high)}" y2="{middle}"'
            parts.append(f'<line class="stroke{kind}" {line}/>')
        if point.value is not None:
            said = escape(clean(f"{label}: {point.value:.3g}"))
            dot = f'cx="{x(point.value)}" cy="{middle}" r="4.5"'
            parts.append(f'<circle class="kind{kind}" {dot}><title>{said}</title></circle>')
    unit = f'<text x="{WIDTH - RIGHT}" y="{height - 6}" text-anchor="end">'
    parts.append(f"{unit}{escape(clean(figure.unit))}</text>")
    return wrap_svg(WIDTH, height, clean(figure.alt), parts)


def draw_heat_map(figure: HeatMap, clean: Callable[[str], str]) -> str:
    """A field for each value, with its number: colour is not the only sign."""
    known = [value for row in figure.values for value in row if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    wide = (WIDTH - LABELS) / max(len(figure.columns), 1)
    parts = []
    for at, column in enumerate(figure.columns):
        middle = LABELS + (at + 0.5) * wide
        name = escape(shorten_label(clean(column), max(3, int(wide / 7))))
        parts.append(f'<text x="{middle:.1f}" y="14" text-anchor="middle">{name}</text>')
    for row, (label, values) in enumerate(zip(figure.rows, figure.values, strict=True)):
        top = 22 + row * LINE
        parts.append(draw_row_label(clean(label), top))
        for at, value in enumerate(values):
            if value is None:
                continue
            share = (value - low) / (high - low) if high > low else 0.5
            box = f'x="{LABELS + at * wide:.1f}" y="{top}" width="{wide:.1f}" height="{LINE - 2}"'
            parts.append(f'<rect class="heat" style="--share:{share:.2f}" {box}/>')
            place = f'x="{LABELS + (at + 0.5) * wide:.1f}" y="{top + 16}" text-anchor="middle"'
            parts.append(f"<text {place}>{value:.2f}</text>")
    return wrap_svg(WIDTH, 30 + LINE * len(figure.rows), clean(figure.alt), parts)


def make_axes(across: tuple[float, float], up: tuple[float, float]) -> tuple[Axis, Axis]:
    """The coordinates of values in a figure with two axes."""

    def x(value: float) -> float:
        share = (value - across[0]) / (across[1] - across[0])
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        inside = min(max(value, up[0]), up[1])
        share = (inside - up[0]) / (up[1] - up[0])
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)

    return x, y


def draw_grid(
    across: tuple[float, float], up: tuple[float, float], x: Axis, y: Axis, below: str, beside: str
) -> list[str]:
    """Axes with their ticks and titles."""
    parts, foot = [], HEIGHT - BOTTOM
    for value in choose_ticks(*across):
        parts.append(f'<line class="grid" x1="{x(value)}" y1="{TOP}" x2="{x(value)}" y2="{foot}"/>')
        place = f'x="{x(value)}" y="{foot + 16}"'
        parts.append(f'<text {place} text-anchor="middle">{value:g}</text>')
    for value in choose_ticks(*up):
        ends = f'x1="{LEFT}" y1="{y(value)}" x2="{WIDTH - RIGHT}" y2="{y(value)}"'
        parts.append(f'<line class="grid" {ends}/>')
        place = f'x="{LEFT - 6}" y="{y(value) + 4}"'
        parts.append(f'<text {place} text-anchor="end">{value:g}</text>')
    middle, centre = (TOP + foot) / 2, (LEFT + WIDTH - RIGHT) / 2
    place = f'x="{centre}" y="{HEIGHT - 8}" text-anchor="middle"'
    parts.append(f"<text {place}>{escape(below)}</text>")
    turned = f'transform="translate(14 {middle}) rotate(-90)" text-anchor="middle"'
    parts.append(f"<text {turned}>{escape(beside)}</text>")
    return parts


def draw_path(series: Series, x: Axis, y: Axis, style: str) -> str:
    """A line through the points that have a value."""
    points = zip(series.x, series.y, strict=True)
    known = " ".join(f"{x(at)},{y(value)}" for at, value in points if value is not None)
    return f'<polyline class="{style}" points="{known}"/>'


def draw_legend(names: Sequence[str], top: int) -> list[str]:
    """A legend, three names per row."""
    parts = []
    for kind, name in enumerate(names):
        at, down = 10 + kind % 3 * 180, top + kind // 3 * 18
        box = f'x="{at}" y="{down}" width="12" height="12"'
        parts.append(f'<rect class="kind{kind % KINDS}" {box}/>')
        parts.append(f'<text x="{at + 18}" y="{down + 10}">{escape(shorten_label(name))}</text>')
    return parts


def draw_row_label(label: str, top: int) -> str:
    """The name of a row, at the left."""
    place = f'x="{LABELS - 8}" y="{top + 14}" text-anchor="end"'
    return f"<text {place}>{escape(shorten_label(label))}</text>"


def shorten_label(label: str, most: int = 24) -> str:
    """A label that fits."""
    return label if len(label) <= most else f"{label[: most - 1]}…"


def wrap_svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """A figure with an alternative text for screen readers."""
    body, said = "".join(parts), escape(title)
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{said}">'
    return f"{head}<title>{said}</title>{body}</svg>"


def pad_range(values: Sequence[float]) -> tuple[float, float]:
    """A range with a margin."""
    low, high = (min(values), max(values)) if values else (0.0, 100.0)
    room = (high - low) * 0.08 or 1.0
    return low - room, high + room


def choose_ticks(low: float, high: float) -> list[float]:
    """Round numbers within a range, four to ten of them."""
    size = 10.0 ** math.floor(math.log10((high - low) / 2))
    step = next(size * times for times in (0.5, 1, 2, 5, 10) if (high - low) / (size * times) <= 8)
    return [round(step * at, 6) for at in range(math.ceil(low / step), math.floor(high / step) + 1)]
