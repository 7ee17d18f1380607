"""Figures as HTML and SVG that need no script, no font and no request.

Horizontal positions are percentages and heights are pixels, so one drawing fits every width and its
text keeps its size. Labels are HTML: a chart of rows is a table whose cells hold marks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from parley.report.looks import COLOURS, SHAPES, Looks
from parley.results.types import Bars, Dot, Figure, HeatMap, Intervals, Lines, Scatter, Series

Clean = Callable[[str], str]
Axis = Callable[[float], float]

ROW = 30  # pixels: the height of a row
TALL = 260  # pixels: the height of a figure with two axes
NAMED = 12  # dots up to which all are named, otherwise those that lie apart


def draw(figure: Figure, clean: Clean = str, looks: Looks | None = None) -> str:
    """A figure as HTML; `clean` removes secrets from its words."""
    known = looks or Looks()
    match figure:
        case Scatter():
            return draw_scatter(figure, clean)
        case Bars():
            return draw_bars(figure, clean, known)
        case Lines():
            return draw_lines(figure, clean, known)
        case Intervals():
            return draw_intervals(figure, clean, known)
        case HeatMap():
            return draw_heat_map(figure, clean, known)


# Figures made of rows.


def draw_intervals(figure: Intervals, clean: Clean, looks: Looks) -> str:
    """Values with their intervals, one under the other."""
    across = pad_range(
        [
            end
            for point in figure.points
            for end in (point.low, point.value, point.high)
            if end is not None
        ]
    )
    groups = list(dict.fromkeys(point.group for point in figure.points))
    rows = []
    for point in figure.points:
        label = f"{point.label}, {point.group}" if len(groups) > 1 else point.label
        colour = looks.colour(point.label)
        if len(groups) > 1:
            colour = f"c{groups.index(point.group) % COLOURS}"
        drawn = draw_interval_row(
            point.low, point.value, point.high, across, looks.shape(point.label)
        )
        number = "–" if point.value is None else f"{point.value:.3g}"
        rows.append(
            f'<tr><th scope="row">{name_model(point.label, label, clean, looks)}</th>'
            f'<td class="plot {colour}">{drawn}</td><td>{minus(number)}</td></tr>'
        )
    return draw_rows(figure.title, figure.alt, across, rows, figure.unit, clean)


def draw_interval_row(
    low: float | None,
    value: float | None,
    high: float | None,
    across: tuple[float, float],
    shape: str,
) -> str:
    """One interval and its value, with the grid behind it."""

    def x(at: float) -> str:
        return f"{100 * (at - across[0]) / (across[1] - across[0]):.2f}%"

    parts = [
        f'<line class="grid" x1="{x(tick)}" x2="{x(tick)}" y1="0" y2="{ROW}"/>'
        for tick in choose_ticks(*across)
    ]
    middle = ROW / 2
    if low is not None and high is not None:
        parts.append(f'<line class="iv" x1="{x(low)}" x2="{x(high)}" y1="{middle}" y2="{middle}"/>')
    if value is not None:
        parts.append(
            f'<svg x="{x(value)}" y="{middle}" overflow="visible"><g class="dot">{shape}</g></svg>'
        )
    svg = f'<svg width="100%" height="{ROW}" overflow="visible" aria-hidden="true">'
    return f"{svg}{''.join(parts)}</svg>"


def draw_scale(across: tuple[float, float]) -> str:
    """The numbers of an axis, above the rows that share it."""
    low, high = across
    ticks = choose_ticks(low, high)
    parts = []
    for tick in ticks:
        kind = "" if tick in (ticks[0], ticks[-1]) else ' class="between"'  # hidden on a phone
        place = f'x="{100 * (tick - low) / (high - low):.2f}%" y="12" text-anchor="middle"'
        parts.append(f"<text{kind} {place}>{minus(f'{tick:g}')}</text>")
    svg = '<svg width="100%" height="16" overflow="visible" aria-hidden="true">'
    return f"{svg}{''.join(parts)}</svg>"


def draw_rows(
    title: str, alt: str, across: tuple[float, float], rows: Sequence[str], unit: str, clean: Clean
) -> str:
    """A chart of rows: a table with one column that is drawn."""
    head = (
        f'<thead><tr><td></td><th scope="col" class="plot">{draw_scale(across)}'
        f'<span class="vh">drawn</span></th><th scope="col">{escape(clean(unit or "value"))}</th>'
        "</tr></thead>"
    )
    caption = f'<caption class="vh">{escape(clean(alt or title))}</caption>'
    return f'<table class="chart">{caption}{head}<tbody>{"".join(rows)}</tbody></table>'


def draw_bars(figure: Bars, clean: Clean, looks: Looks) -> str:
    """Stacked bars, one under the other, with a legend of their pieces."""
    names = sorted({name for bar in figure.bars for name in bar.pieces})
    most = max((sum(bar.pieces.values()) for bar in figure.bars), default=0.0) or 1.0
    rows = []
    for bar in figure.bars:
        parts, at = list[str](), 0.0
        for name, value in bar.pieces.items():
            wide = 100 * value / most
            if wide:
                parts.append(
                    f'<rect class="dot c{names.index(name) % COLOURS}" x="{at:.2f}%" y="6" '
                    f'width="{wide:.2f}%" height="{ROW - 12}">'
                    f"<title>{escape(clean(f'{name}: {value:.3g}'))}</title></rect>"
                )
            at += wide
        said = ", ".join(f"{name} {value:.3g}" for name, value in bar.pieces.items() if value)
        svg = f'<svg width="100%" height="{ROW}" role="img" aria-label="{escape(clean(said))}">'
        rows.append(
            f'<tr><th scope="row">{name_model(bar.label, bar.label, clean, looks)}</th>'
            f'<td class="plot">{svg}{"".join(parts)}</svg></td><td>{escape(clean(bar.note))}</td>'
            "</tr>"
        )
    caption = f'<caption class="vh">{escape(clean(figure.alt or figure.title))}</caption>'
    body = f'<table class="chart">{caption}<tbody>{"".join(rows)}</tbody></table>'
    return body + draw_legend([(f"c{at % COLOURS}", name) for at, name in enumerate(names)], clean)


def draw_heat_map(figure: HeatMap, clean: Clean, looks: Looks) -> str:
    """A field for each value, with its number: colour is not the only sign."""
    known = [value for row in figure.values for value in row if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    head = "".join(f'<th scope="col">{escape(clean(column))}</th>' for column in figure.columns)
    rows = []
    for label, values in zip(figure.rows, figure.values, strict=True):
        cells = []
        for value in values:
            if value is None:
                cells.append('<td class="cell">–</td>')
                continue
            share = (value - low) / (high - low) if high > low else 0.5
            step = round(share * 8)
            cells.append(f'<td class="cell h{step}">{minus(f"{value:.2f}")}</td>')
        name = name_model(label, label, clean, looks)
        rows.append(f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>')
    caption = f'<caption class="vh">{escape(clean(figure.alt or figure.title))}</caption>'
    table = (
        f'<table class="heat">{caption}<thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
    return scrollable(table, clean(figure.title))


# Figures with two axes.


def draw_scatter(figure: Scatter, clean: Clean) -> str:
    """Points in the plane; those that lie apart have their own sign and name."""
    line = figure.line
    ends = [end for end in (*line.low, *line.high) if end is not None] if line else []
    across = pad_range([dot.x for dot in figure.dots])
    up = pad_range([min(max(y, -5.0), 105.0) for y in [*(dot.y for dot in figure.dots), *ends]])
    x, y = make_axes(across, up)
    parts = draw_grid(across, up, x, y)
    if line:
        parts.append(draw_stretched([line], across, up, ["c7"]))
    parts += [draw_dot(dot, x(dot.x), y(dot.y), clean) for dot in figure.dots]
    parts += draw_dot_names(figure.dots, x, y, clean)
    return draw_plane(figure.title, figure.alt, figure.x, figure.y, parts, clean)


def draw_dot(dot: Dot, x: float, y: float, clean: Clean) -> str:
    """A circle; a dot that lies apart has its own shape and colour."""
    title = f"<title>{escape(clean(dot.note or dot.label))}</title>"
    kind, shape = {
        "suspected": ("suspected", SHAPES[2]),
        "look": ("look", SHAPES[1]),
        "above": ("above", SHAPES[3]),
    }.get(dot.mark, ("point", SHAPES[0]))
    mark = f'<g class="{kind}">{title}{shape}</g>'
    return f'<svg x="{x:.2f}%" y="{y:.1f}" overflow="visible">{mark}</svg>'


def draw_dot_names(dots: Sequence[Dot], x: Axis, y: Axis, clean: Clean) -> list[str]:
    """Names beside the dots, moved up where they would cover each other or a dot."""
    named = [dot for dot in dots if len(dots) <= NAMED or dot.mark]
    parts, taken = [], [(x(dot.x), y(dot.y) + 4) for dot in dots]
    for dot in sorted(named, key=lambda dot: (dot.y, dot.label)):
        label = shorten_label(clean(dot.label))
        right = x(dot.x) < 70
        step = 10 if right else -10
        at = y(dot.y) + 4
        middle = x(dot.x) + (len(label) * 0.6 + 2) * (1 if right else -1)
        while any(
            abs(at - other) < 13 and abs(middle - place) < 14
            for place, other in taken
            if (place, other) != (x(dot.x), y(dot.y) + 4)
        ):
            at -= 13
        taken.append((middle, at))
        anchor = "start" if right else "end"
        parts.append(
            f'<svg x="{x(dot.x):.2f}%" y="{max(at, 10.0):.1f}" overflow="visible">'
            f'<text class="name" x="{step}" text-anchor="{anchor}">{escape(label)}</text></svg>'
        )
    return parts


def draw_lines(figure: Lines, clean: Clean, looks: Looks) -> str:
    """Lines over a common axis, with bands where intervals are known, and a legend."""
    points = [value for series in figure.series for value in series.x]
    values = [
        value
        for series in figure.series
        for value in (*series.y, *series.low, *series.high)
        if value is not None
    ]
    across, up = pad_range(points), pad_range(values)
    x, y = make_axes(across, up)
    colours = [
        looks.colour(series.label) if series.label in looks.places else f"c{at % COLOURS}"
        for at, series in enumerate(figure.series)
    ]
    parts = draw_grid(across, up, x, y)
    parts.append(draw_stretched(figure.series, across, up, colours))
    for series, colour in zip(figure.series, colours, strict=True):
        shape = looks.shape(series.label) if series.label in looks.places else SHAPES[0]
        parts += [
            f'<svg class="{colour}" x="{x(at):.2f}%" y="{y(value):.1f}" overflow="visible">'
            f'<g class="dot">{shape}<title>{escape(clean(f"{series.label}: {value:.3g}"))}</title>'
            "</g></svg>"
            for at, value in zip(series.x, series.y, strict=True)
            if value is not None
        ]
    body = draw_plane(figure.title, figure.alt, figure.x, figure.y, parts, clean)
    names = [series.label for series in figure.series]
    return body + draw_legend(list(zip(colours, names, strict=True)), clean)


def draw_stretched(
    lines: Sequence[Series],
    across: tuple[float, float],
    up: tuple[float, float],
    colours: Sequence[str],
) -> str:
    """Lines and bands, which may be stretched with the figure; their strokes keep their width."""

    def place(at: float, value: float) -> str:
        inside = min(max(value, up[0]), up[1])
        return (
            f"{100 * (at - across[0]) / (across[1] - across[0]):.2f},"
            f"{100 - 100 * (inside - up[0]) / (up[1] - up[0]):.2f}"
        )

    parts = []
    for line, colour in zip(lines, colours, strict=True):
        edge = [
            (at, low, high)
            for at, low, high in zip(line.x, line.low, line.high, strict=False)
            if low is not None and high is not None
        ]
        if edge:
            corners = [place(at, high) for at, _, high in edge]
            corners += [place(at, low) for at, low, _ in reversed(edge)]
            parts.append(f'<polygon class="bd {colour}" points="{" ".join(corners)}"/>')
        known = [(at, value) for at, value in zip(line.x, line.y, strict=True) if value is not None]
        path = " ".join(place(at, value) for at, value in known)
        parts.append(f'<polyline class="ln {colour}" points="{path}"/>')
    return (
        f'<svg width="100%" height="{TALL}" viewBox="0 0 100 100" preserveAspectRatio="none">'
        f"{''.join(parts)}</svg>"
    )


def draw_plane(
    title: str, alt: str, below: str, beside: str, parts: Sequence[str], clean: Clean
) -> str:
    """A figure with two axes, with its titles as text around it."""
    svg = (
        f'<svg width="100%" height="{TALL + 18}" overflow="visible" role="img" '
        f'aria-label="{escape(clean(alt or title))}">'
    )
    return (
        f'<div class="plane"><p class="axis">{escape(clean(beside))}</p>'
        f'<div class="inner">{svg}{"".join(parts)}</svg></div>'
        f'<p class="axis below">{escape(clean(below))}</p></div>'
    )


def make_axes(across: tuple[float, float], up: tuple[float, float]) -> tuple[Axis, Axis]:
    """The places of values: per cent across, pixels down."""

    def x(value: float) -> float:
        return 100 * (value - across[0]) / (across[1] - across[0])

    def y(value: float) -> float:
        inside = min(max(value, up[0]), up[1])
        return TALL - TALL * (inside - up[0]) / (up[1] - up[0])

    return x, y


def draw_grid(across: tuple[float, float], up: tuple[float, float], x: Axis, y: Axis) -> list[str]:
    """Grid lines with their numbers."""
    parts = []
    for value in choose_ticks(*across):
        at = f"{x(value):.2f}%"
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="0" y2="{TALL}"/>')
        parts.append(
            f'<text x="{at}" y="{TALL + 15}" text-anchor="middle">{minus(f"{value:g}")}</text>'
        )
    for value in choose_ticks(*up):
        at = f"{y(value):.1f}"
        parts.append(f'<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>')
        parts.append(
            f'<text x="-6" y="{y(value) + 4:.1f}" text-anchor="end">{minus(f"{value:g}")}</text>'
        )
    return parts


# What figures share.


def draw_legend(entries: Sequence[tuple[str, str]], clean: Clean) -> str:
    """Names with their colours."""
    items = "".join(
        f'<li><svg class="{colour}" viewBox="-7 -7 14 14" aria-hidden="true"><g class="dot">'
        f'<rect x="-5" y="-5" width="10" height="10"/></g></svg>{escape(clean(name))}</li>'
        for colour, name in entries
    )
    return f'<ul class="legend">{items}</ul>'


def name_model(alias: str, label: str, clean: Clean, looks: Looks) -> str:
    """A label, with the sign of the model that it names."""
    text = f"<bdi>{escape(clean(label))}</bdi>"
    return f'<span class="who">{looks.sign(alias)}{text}</span>' if alias in looks.places else text


def scrollable(body: str, name: str) -> str:
    """What may be wider than the page: it scrolls by itself, and the keyboard reaches it.

    A group, not a region: landmarks need unique names, and tables of one part share theirs.
    """
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{escape(name)}">{body}</div>'


def minus(number: str) -> str:
    """A number with a true minus sign."""
    return number.replace("-", "−")


def shorten_label(label: str, most: int = 24) -> str:
    """A label that fits."""
    return label if len(label) <= most else f"{label[: most - 1]}…"


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
