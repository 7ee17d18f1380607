"""Figures as HTML and SVG that need no script, no font and no request.

Horizontal positions are percentages and heights are pixels, so one drawing fits every width and its
text keeps its size. Labels are HTML: a chart of rows is a table whose cells hold marks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from parley.report.looks import COLOURS, SHAPES, Looks
from parley.results.types import (
    Bar,
    Bars,
    Box,
    Boxes,
    Dot,
    Figure,
    HeatMap,
    Intervals,
    Lines,
    Point,
    Scatter,
    Series,
)
from parley.tables import format_interval, format_number, round_half_up

Clean = Callable[[str], str]
Range = tuple[float, float]

ROW = 30  # pixels: the height of a row
TALL = 260  # pixels: the height of a figure with two axes
LOW = 120  # pixels: the height of one of several small figures
SHADES = 5  # --p0 … --p4 of the style sheet, for the pieces of a bar
TOGETHER = 2  # lines that share one drawing; more lines have one small drawing each
DOTTED = 16  # points of a line up to which each has a sign
LABELLED = 0.09  # the share of a bar above which a piece has its number inside


def draw(figure: Figure, clean: Clean = str, looks: Looks | None = None) -> str:
    """A figure as HTML; `clean` removes secrets from its words."""
    known = looks or Looks()
    match figure:
        case Scatter():
            return draw_scatter(figure, clean, known)
        case Bars():
            return draw_bars(figure, clean, known)
        case Boxes():
            return draw_boxes(figure, clean, known)
        case Lines():
            return draw_lines(figure, clean, known)
        case Intervals():
            return draw_intervals(figure, clean, known)
        case HeatMap():
            return draw_heat_map(figure, clean, known)


# Figures made of rows.


def draw_intervals(figure: Intervals, clean: Clean, looks: Looks) -> str:
    """Values with their intervals, one under the other; points with one label share a row."""
    across = pad_range(
        [
            end
            for point in figure.points
            for end in (point.low, point.value, point.high)
            if end is not None
        ]
    )
    groups = list(dict.fromkeys(point.group for point in figure.points))
    several = len(groups) > 1
    rows = []
    for label in dict.fromkeys(point.label for point in figure.points):
        points = [point for point in figure.points if point.label == label]
        drawn = draw_interval_marks(points, groups, across, looks)
        numbers = "<br>".join(minus(describe_point(point, figure.digits)) for point in points)
        models = {point.model or label for point in points}
        model = models.pop() if len(models) == 1 else label
        rows.append(
            f'<tr><th scope="row">{name_model(model, label, clean, looks)}</th>'
            f'<td class="plot">{drawn}</td><td class="nw">{numbers}</td></tr>'
        )
    body = draw_rows(figure.title, figure.alt, across, rows, figure.unit, clean)
    if not several:
        return body
    coloured = all(point.model or point.label in looks.places for point in figure.points)
    return body + draw_group_legend(groups, coloured, clean)


def draw_interval_marks(
    points: Sequence[Point], groups: Sequence[str], across: Range, looks: Looks
) -> str:
    """The intervals of one row: one under the other, in the order of the groups. With several
    groups, the shape says the group and the colour says the model."""
    parts = []
    for point in points:
        who, at = point.model or point.label, groups.index(point.group)
        if len(groups) == 1:
            colour, shape = looks.colour(who), looks.shape(who)
        else:
            colour = looks.colour(who) if who in looks.places else f"p{at % SHADES}"
            shape = SHAPES[at % len(SHAPES)]
        middle = ROW / 2 if len(groups) == 1 else 10 + 16 * at
        marks = mark_interval(point.low, point.value, point.high, across, shape, middle)
        parts.append(f'<g class="{colour}">{marks}</g>')
    tall = ROW if len(groups) == 1 else 4 + 16 * len(groups)
    grid = draw_row_grid(across, tall)
    svg = f'<svg width="100%" height="{tall}" overflow="visible" aria-hidden="true">'
    return f"{svg}{grid}{''.join(parts)}</svg>"


def draw_group_legend(groups: Sequence[str], coloured: bool, clean: Clean) -> str:
    """The shape of each group; its colour as well, unless colours say the model."""
    entries = [
        LegendEntry("grey" if coloured else f"p{at % SHADES}", SHAPES[at % len(SHAPES)], group)
        for at, group in enumerate(groups)
    ]
    return draw_legend(entries, clean)


def describe_point(point: Point, digits: int | None) -> str:
    if point.value is None or digits is not None:
        return format_number(point.value, digits or 0)
    return f"{point.value:.3g}"


def draw_interval_row(
    low: float | None, value: float | None, high: float | None, across: Range, shape: str
) -> str:
    """One interval and its value, with the grid behind it."""
    marks = mark_interval(low, value, high, across, shape, ROW / 2)
    svg = f'<svg width="100%" height="{ROW}" overflow="visible" aria-hidden="true">'
    return f"{svg}{draw_row_grid(across, ROW)}{marks}</svg>"


def mark_interval(
    low: float | None,
    value: float | None,
    high: float | None,
    across: Range,
    shape: str,
    middle: float,
) -> str:
    """A line from the low to the high end, and a sign at the value; nothing where it is missing."""
    parts = []
    if low is not None and high is not None:
        ends = f'x1="{place_across(low, across)}" x2="{place_across(high, across)}"'
        parts.append(f'<line class="iv" {ends} y1="{middle:g}" y2="{middle:g}"/>')
    if value is not None:
        place = f'x="{place_across(value, across)}" y="{middle:g}"'
        parts.append(f'<svg {place} overflow="visible"><g class="dot">{shape}</g></svg>')
    return "".join(parts)


def draw_row_grid(across: Range, tall: float) -> str:
    """The grid lines behind a row."""
    return "".join(
        f'<line class="grid" x1="{at}" x2="{at}" y1="0" y2="{tall:g}"/>'
        for at in (place_across(tick, across) for tick in choose_ticks(*across))
    )


def draw_scale(across: Range) -> str:
    """The numbers of an axis, above the rows that share it."""
    ticks = choose_ticks(*across)
    parts = []
    for tick in ticks:
        kind = "" if tick in (ticks[0], ticks[-1]) else ' class="between"'  # hidden on a phone
        place = f'x="{place_across(tick, across)}" y="12" text-anchor="middle"'
        parts.append(f"<text{kind} {place}>{minus(f'{tick:g}')}</text>")
    svg = '<svg width="100%" height="16" overflow="visible" aria-hidden="true">'
    return f"{svg}{''.join(parts)}</svg>"


def draw_rows(
    title: str, alt: str, across: Range, rows: Sequence[str], unit: str, clean: Clean
) -> str:
    """A chart of rows: a table with one column that is drawn."""
    head = (
        f'<thead><tr><td></td><th scope="col" class="plot">{draw_scale(across)}'
        f'<span class="vh">drawn</span></th><th scope="col">{escape(clean(unit or "value"))}</th>'
        "</tr></thead>"
    )
    caption = f'<caption class="vh">{escape(clean(alt or title))}</caption>'
    return f'<table class="chart">{caption}{head}<tbody>{"".join(rows)}</tbody></table>'


def draw_boxes(figure: Boxes, clean: Clean, looks: Looks) -> str:
    """Distributions, one under the other: the middle half as a box, its median as a line, and every
    value as a dot unless they are too many."""
    across = pad_range([end for box in figure.boxes for end in (box.low, box.high)])
    rows = [
        f'<tr><th scope="row">{name_model(box.model or box.label, box.label, clean, looks)}</th>'
        f'<td class="plot {looks.colour(box.model or box.label)}">{draw_box(box, across)}</td>'
        f"<td>{minus(format_number(box.median, figure.digits))}"
        f'<span class="sub">n = {box.n:,}</span></td></tr>'
        for box in figure.boxes
    ]
    unit = f"median ({figure.unit})" if figure.unit else "median"
    return draw_rows(figure.title, figure.alt, across, rows, unit, clean)


def draw_box(box: Box, across: Range) -> str:
    """A box with its whiskers, which reach to the lowest and the highest value."""
    middle, upper, tall = ROW / 2, 6, ROW - 12

    def line(kind: str, start: float, end: float, top: float, bottom: float) -> str:
        ends = f'x1="{place_across(start, across)}" x2="{place_across(end, across)}"'
        return f'<line class="{kind}" {ends} y1="{top:g}" y2="{bottom:g}"/>'

    width = f"{100 * (box.third_quartile - box.first_quartile) / (across[1] - across[0]):.2f}%"
    start = place_across(box.first_quartile, across)
    parts = [
        draw_row_grid(across, ROW),
        line("whisker", box.low, box.first_quartile, middle, middle),
        line("whisker", box.third_quartile, box.high, middle, middle),
        f'<rect class="box" x="{start}" y="{upper}" width="{width}" height="{tall}"/>',
    ]
    for at, value in enumerate(box.dots):
        down = middle + (at * 7 % 15 - 7)  # spread, so that equal values do not cover each other
        parts.append(
            f'<circle class="one" cx="{place_across(value, across)}" cy="{down:g}" r="2.2"/>'
        )
    parts.append(line("median", box.median, box.median, upper - 2, upper + tall + 2))
    svg = f'<svg width="100%" height="{ROW}" overflow="visible" aria-hidden="true">'
    return f"{svg}{''.join(parts)}</svg>"


def draw_bars(figure: Bars, clean: Clean, looks: Looks) -> str:
    """Stacked bars, one under the other, with a legend of their pieces. Pieces differ in shade: the
    colours belong to models."""
    names = list(dict.fromkeys(name for bar in figure.bars for name in bar.pieces))
    most = max((sum(bar.pieces.values()) for bar in figure.bars), default=0.0) or 1.0
    rows = [draw_bar(bar, names, most, clean, looks) for bar in figure.bars]
    caption = f'<caption class="vh">{escape(clean(figure.alt or figure.title))}</caption>'
    body = f'<table class="chart">{caption}<tbody>{"".join(rows)}</tbody></table>'
    if len(names) < 2:
        return body
    square = '<rect x="-6" y="-6" width="12" height="12"/>'
    entries = [
        LegendEntry(f"grey p{at % SHADES}", f'<g class="piece">{square}</g>', name)
        for at, name in enumerate(names)
    ]
    return body + draw_legend(entries, clean)


def draw_bar(bar: Bar, names: Sequence[str], most: float, clean: Clean, looks: Looks) -> str:
    parts, at = list[str](), 0.0
    for name, value in bar.pieces.items():
        wide = 100 * value / most
        if not wide:
            continue
        shade = names.index(name) % SHADES
        number = format_amount(value)
        parts.append(
            f'<g class="p{shade}"><rect class="piece" x="{at:.2f}%" y="6" width="{wide:.2f}%" '
            f'height="{ROW - 12}"/>'
        )
        if wide > 100 * LABELLED:
            parts.append(
                f'<text class="inside" x="{at + wide / 2:.2f}%" y="{ROW / 2 + 4:g}" '
                f'text-anchor="middle">{minus(number)}</text>'
            )
        parts.append(f"<title>{escape(clean(f'{name}: {number}'))}</title></g>")
        at += wide
    pieces = bar.pieces.items()
    said = ", ".join(f"{name} {format_amount(value)}" for name, value in pieces if value)
    who = bar.model or bar.label
    svg = f'<svg width="100%" height="{ROW}" role="img" aria-label="{escape(clean(said or "0"))}">'
    return (
        f'<tr><th scope="row">{name_model(who, bar.label, clean, looks)}</th>'
        f'<td class="plot {looks.colour(who)}">{svg}{"".join(parts)}</svg></td>'
        f"<td>{escape(clean(bar.note))}</td></tr>"
    )


def draw_heat_map(figure: HeatMap, clean: Clean, looks: Looks) -> str:
    """A field for each value, with its number and its interval: colour is not the only sign."""
    known = [value for row in figure.values for value in row if value is not None]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    head = "".join(
        f'<th scope="col">{name_model(column, column, clean, looks)}</th>'
        for column in figure.columns
    )
    rows = []
    for at, (label, values) in enumerate(zip(figure.rows, figure.values, strict=True)):
        cells = []
        for place, value in enumerate(values):
            if value is None:
                cells.append('<td class="cell">–</td>')
                continue
            share = (value - low) / (high - low) if high > low else 0.5
            number = minus(round_half_up(value, figure.digits))
            ends = format_field_interval(figure, at, place)
            cells.append(f'<td class="cell h{round(share * 8)}">{number}{ends}</td>')
        name = name_model(label, label, clean, looks)
        rows.append(f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>')
    caption = f'<caption class="vh">{escape(clean(figure.alt or figure.title))}</caption>'
    corner = f"{figure.row_label} ↓ {figure.column_label} →" if figure.row_label else ""
    table = (
        f'<table class="heat">{caption}<thead><tr><td class="l corner">{escape(clean(corner))}</td>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    return scrollable(table, clean(figure.title))


def format_field_interval(figure: HeatMap, row: int, column: int) -> str:
    """The interval of a field, under its number."""
    if not figure.low or not figure.high:
        return ""
    low, high = figure.low[row][column], figure.high[row][column]
    if low is None or high is None:
        return ""
    return f'<span class="ends">{minus(format_interval(low, high, figure.digits))}</span>'


# Figures with two axes.


@dataclass(frozen=True)
class Plane:
    """The ranges of a figure with two axes, and its height in pixels."""

    across: Range
    up: Range
    tall: int = TALL

    def x(self, value: float) -> float:
        """The place of a value in per cent of the width."""
        return 100 * (value - self.across[0]) / (self.across[1] - self.across[0])

    def y(self, value: float) -> float:
        """The place of a value in pixels from the top; the edge for what lies beyond it."""
        inside = min(max(value, self.up[0]), self.up[1])
        return self.tall - self.tall * (inside - self.up[0]) / (self.up[1] - self.up[0])


def draw_scatter(figure: Scatter, clean: Clean, looks: Looks) -> str:
    """Points in the plane with their intervals; those that lie apart are named with their mark."""
    line, dots = figure.line, figure.dots
    beside = [end for dot in dots for end in (dot.x_low, dot.x, dot.x_high) if end is not None]
    heights = [end for dot in dots for end in (dot.y_low, dot.y, dot.y_high) if end is not None]
    if line:
        beside += line.x
        heights += [end for end in (*line.low, *line.y, *line.high) if end is not None]
    plane = Plane(
        bound_range(pad_range(beside), figure.x_bounds),
        bound_range(pad_range(heights), figure.y_bounds),
    )
    parts = draw_grid(plane)
    if line:
        parts.append(draw_stretched([(line, "accent")], plane))
    parts += [draw_cross(dot, plane, looks) for dot in dots]
    seen = Counter[tuple[int, int]]()
    for dot in dots:
        place = round(plane.x(dot.x) * 2), round(plane.y(dot.y) / 3)
        parts.append(draw_dot(dot, plane, clean, looks, aside=BESIDE * seen[place]))
        seen[place] += 1
    parts += draw_dot_names(dots, plane, clean)
    body = draw_plane(figure.title, figure.alt, figure.x, figure.y, parts, plane, clean)
    models = sorted({dot.model or dot.label for dot in dots} & looks.places.keys(), key=looks.place)
    entries = [LegendEntry.of_model(model, looks) for model in models]
    return body + draw_legend(entries, clean)


def draw_cross(dot: Dot, plane: Plane, looks: Looks) -> str:
    """The intervals of a dot: lines across and up."""
    x, y, parts = f"{plane.x(dot.x):.2f}%", f"{plane.y(dot.y):.1f}", []
    if dot.x_low is not None and dot.x_high is not None:
        left, right = (keep_inside(plane.x(end)) for end in (dot.x_low, dot.x_high))
        ends = f'x1="{left:.2f}%" x2="{right:.2f}%"'
        parts.append(f'<line class="thin" {ends} y1="{y}" y2="{y}"/>')
    if dot.y_low is not None and dot.y_high is not None:
        ends = f'y1="{plane.y(dot.y_low):.1f}" y2="{plane.y(dot.y_high):.1f}"'
        parts.append(f'<line class="thin" x1="{x}" x2="{x}" {ends}/>')
    return f'<g class="{choose_dot_colour(dot, looks)}">{"".join(parts)}</g>' if parts else ""


def draw_dot(dot: Dot, plane: Plane, clean: Clean, looks: Looks, aside: int = 0) -> str:
    """A dot with the sign of its model, and a ring in the colour of its mark. It is moved `aside`
    by some pixels if another dot is in the same place and would be covered."""
    title = f"<title>{escape(clean(dot.note or dot.label))}</title>"
    who = dot.model or dot.label
    if who in looks.places:
        shape = looks.shape(who)
    else:
        shape = SHAPES[{"suspected": 2, "look": 1, "above": 3}.get(dot.mark, 0)]
    ring = f'<circle class="ring {dot.mark}" r="9"/>' if dot.mark else ""
    mark = f'<g class="dot {choose_dot_colour(dot, looks)}">{title}{shape}</g>{ring}'
    if aside:
        mark = f'<svg x="{aside}" overflow="visible">{mark}</svg>'
    place = f'x="{plane.x(dot.x):.2f}%" y="{plane.y(dot.y):.1f}"'
    return f'<svg {place} overflow="visible">{mark}</svg>'


def choose_dot_colour(dot: Dot, looks: Looks) -> str:
    who = dot.model or dot.label
    return looks.colour(who) if who in looks.places else dot.mark or "accent"


MARKS = {"suspected": "suspected", "look": "worth a look", "above": "above the line"}
LETTER, LINE = 7.2, 13  # pixels: the width of a letter and the height of a line, at most
WIDTHS = (270, 340, 430, 530, 640)  # pixels: between a phone and the widest figure
BESIDE = 9  # pixels between dots that have the same place
NEAR = 9  # pixels around a dot that no name may cover


class Label(NamedTuple):
    """A name beside a dot: from `start` pixels right of it, at `down` pixels from the top."""

    at: float  # per cent: the place of the dot
    start: float
    width: float
    down: float


def draw_dot_names(dots: Sequence[Dot], plane: Plane, clean: Clean) -> list[str]:
    """Names beside the dots where they cover no dot, no interval and no other name at any width of
    the page. Marked dots come first; a name without room is left to the legend."""
    parts, taken = [], list[Label]()
    for dot in sorted(dots, key=lambda dot: (not dot.mark, dot.y, dot.label)):
        name = shorten_label(clean(dot.label))
        said = f"{name}, {MARKS[dot.mark]}" if dot.mark else name
        label = place_name(dot, said, dots, taken, plane)
        if label is None:
            continue
        taken.append(label)
        parts.append(
            f'<svg x="{label.at:.2f}%" y="{label.down:.1f}" overflow="visible">'
            f'<text class="name {dot.mark}" x="{label.start:.1f}">{escape(said)}</text></svg>'
        )
    return parts


def place_name(
    dot: Dot, said: str, dots: Sequence[Dot], taken: Sequence[Label], plane: Plane
) -> Label | None:
    """The first free place beside, above or below a dot."""
    at, middle, width = plane.x(dot.x), plane.y(dot.y) + 4, LETTER * len(said)
    starts = (12.0, -12 - width, -width / 2)
    for step in (0, -18, 18, -31, 31, -44, 44):
        for start in starts[2:] + starts[:2] if step else starts[:2]:
            label = Label(at, start, width, middle + step)
            if is_place_free(label, dots, taken, plane):
                return label
    return None


def is_place_free(label: Label, dots: Sequence[Dot], taken: Sequence[Label], plane: Plane) -> bool:
    """Whether a name lies within the figure and covers nothing, at any width."""
    if not LINE <= label.down <= plane.tall:
        return False
    top, bottom = label.down - LINE + 2, label.down + 3
    for width in WIDTHS:
        left = label.at * width / 100 + label.start
        right = left + label.width
        if left < 0 or right > width + 12:
            return False
        for other in taken:
            start = other.at * width / 100 + other.start
            if (
                start < right + 4
                and left < start + other.width + 4
                and abs(label.down - other.down) < LINE
            ):
                return False
        for dot in dots:
            x, y = plane.x(dot.x) * width / 100, plane.y(dot.y)
            if left - NEAR < x < right + NEAR and top - NEAR < y < bottom + NEAR:
                return False
            if dot.x_low is not None and dot.x_high is not None and top < y < bottom:
                ends = plane.x(dot.x_low) * width / 100, plane.x(dot.x_high) * width / 100
                if ends[0] < right and left < ends[1]:
                    return False
            if dot.y_low is not None and dot.y_high is not None and left < x < right:
                ends = plane.y(dot.y_high), plane.y(dot.y_low)
                if ends[0] < bottom and top < ends[1]:
                    return False
    return True


def draw_lines(figure: Lines, clean: Clean, looks: Looks) -> str:
    """Lines over a common axis, with bands where intervals are known. Up to two share a drawing;
    more have a small drawing each, in which the others are faint."""
    ordered = sorted(figure.series, key=lambda series: looks.place(series.model or series.label))
    looked = [(series, *choose_line_look(series, at, looks)) for at, series in enumerate(ordered)]
    whole = all(value == round(value) for series in figure.series for value in series.x)
    plane = choose_line_plane(figure)
    if len(looked) <= TOGETHER:
        parts = draw_grid(plane, whole)
        parts.append(draw_stretched([(series, colour) for series, colour, _ in looked], plane))
        parts += draw_target(figure, plane)
        parts += [dot for each in looked for dot in draw_line_dots(*each, plane, clean)]
        body = draw_plane(figure.title, figure.alt, figure.x, figure.y, parts, plane, clean)
        entries = [LegendEntry(colour, shape, series.label) for series, colour, shape in looked]
        return body + draw_legend([*entries, *name_target(figure)], clean)
    small = Plane(plane.across, plane.up, LOW)
    panels = []
    for own, colour, shape in looked:
        others = [(drop_band(series), "faint") for series, *_ in looked if series is not own]
        parts = draw_grid(small, whole, most=6)
        parts.append(draw_stretched([*others, (own, colour)], small))
        parts += draw_target(figure, small)
        parts += draw_line_dots(own, colour, shape, small, clean)
        if all(value is None for value in own.y):
            parts.append('<text x="50%" y="20" text-anchor="middle">no value</text>')
        sign = f'<svg class="{colour}" viewBox="-7 -7 14 14" aria-hidden="true">'
        name = f'{sign}<g class="dot">{shape}</g></svg><bdi>{escape(clean(own.label))}</bdi>'
        svg = (
            f'<svg width="100%" height="{LOW + 18}" overflow="visible" role="img" '
            f'aria-label="{escape(clean(describe_series(own, figure)))}">{"".join(parts)}</svg>'
        )
        panels.append(f'<div><p class="who">{name}</p><div class="inner">{svg}</div></div>')
    words = f"{figure.y} (up) by {figure.x} (across); the other lines are grey"
    name = escape(clean(figure.alt or figure.title))
    return (
        f'<p class="axis">{escape(clean(words))}</p>'
        f'<div class="panels" role="group" aria-label="{name}">{"".join(panels)}</div>'
        f"{draw_legend(name_target(figure), clean)}"
    )


def describe_series(series: Series, figure: Lines) -> str:
    """A line in words."""
    points = ", ".join(
        f"{at:g}: {'no value' if value is None else f'{value:.3g}'}"
        for at, value in pick_points(list(zip(series.x, series.y, strict=True)), DOTTED)
    )
    return f"{series.label}, {figure.y} by {figure.x}: {points}"


def pick_points(
    points: Sequence[tuple[float, float | None]], most: int
) -> Iterator[tuple[float, float | None]]:
    """At most `most` points, evenly spread, including the first and the last."""
    if len(points) <= most:
        yield from points
        return
    for at in range(most):
        yield points[round(at * (len(points) - 1) / (most - 1))]


def drop_band(series: Series) -> Series:
    """A line without its band."""
    return Series(series.label, series.x, series.y)


def choose_line_plane(figure: Lines) -> Plane:
    """The ranges that hold all lines, bands and the target."""
    values = [
        value
        for series in figure.series
        for value in (*series.y, *series.low, *series.high)
        if value is not None
    ]
    if figure.target is not None:
        values.append(figure.target)
    points = [value for series in figure.series for value in series.x]
    return Plane(pad_range(points), bound_range(pad_range(values), figure.y_bounds))


def choose_line_look(series: Series, at: int, looks: Looks) -> tuple[str, str]:
    """The colour and the shape of a line: those of its model, else by its place."""
    who = series.model or series.label
    if who in looks.places:
        return looks.colour(who), looks.shape(who)
    colour = "grey" if looks.places else f"c{at % COLOURS}"
    return colour, SHAPES[at % len(SHAPES)]


def draw_line_dots(
    series: Series, colour: str, shape: str, plane: Plane, clean: Clean
) -> list[str]:
    """The signs of a line: at every point, or only at the last of many."""
    known = [(at, y) for at, y in zip(series.x, series.y, strict=True) if y is not None]
    shown = known if len(known) <= DOTTED else known[-1:]
    return [
        f'<svg class="{colour}" x="{plane.x(at):.2f}%" y="{plane.y(value):.1f}" overflow="visible">'
        f'<g class="dot">{shape}<title>{escape(clean(f"{series.label}, {at:g}: {value:.3g}"))}'
        "</title></g></svg>"
        for at, value in shown
    ]


def draw_target(figure: Lines, plane: Plane) -> list[str]:
    """A dashed line at the target; the legend has its name, which would cover the lines here."""
    if figure.target is None:
        return []
    at = f"{plane.y(figure.target):.1f}"
    return [f'<line class="target" x1="0" x2="100%" y1="{at}" y2="{at}"/>']


def name_target(figure: Lines) -> list[LegendEntry]:
    """The target in the legend."""
    if figure.target is None:
        return []
    dashes = '<line class="target" x1="-7" x2="7" y1="0" y2="0"/>'
    return [LegendEntry("grey", dashes, figure.target_label or f"target: {figure.target:g}")]


def draw_stretched(lines: Iterable[tuple[Series, str]], plane: Plane) -> str:
    """Lines and bands, which may be stretched with the figure; their strokes keep their width. A
    missing value interrupts them."""
    up = plane.up

    def place(at: float, value: float) -> str:
        inside = min(max(value, up[0]), up[1])
        return f"{plane.x(at):.2f},{100 - 100 * (inside - up[0]) / (up[1] - up[0]):.2f}"

    parts = []
    for line, colour in lines:
        for piece in split_at_gaps(line.x, line.low, line.high):
            corners = [place(at, high) for at, _, high in piece]
            corners += [place(at, low) for at, low, _ in reversed(piece)]
            parts.append(f'<polygon class="bd {colour}" points="{" ".join(corners)}"/>')
        for piece in split_at_gaps(line.x, line.y, line.y):
            path = " ".join(place(at, value) for at, value, _ in piece)
            parts.append(f'<polyline class="ln {colour}" points="{path}"/>')
    size = f'width="100%" height="{plane.tall}" viewBox="0 0 100 100"'
    return f'<svg {size} preserveAspectRatio="none" aria-hidden="true">{"".join(parts)}</svg>'


def split_at_gaps(
    x: Sequence[float], low: Sequence[float | None], high: Sequence[float | None]
) -> Iterator[list[tuple[float, float, float]]]:
    """Runs of points without a missing value."""
    piece: list[tuple[float, float, float]] = []
    for at, lower, upper in zip(x, low, high, strict=False):
        if lower is not None and upper is not None:
            piece.append((at, lower, upper))
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def draw_plane(
    title: str,
    alt: str,
    below: str,
    beside: str,
    parts: Sequence[str],
    plane: Plane,
    clean: Clean,
) -> str:
    """A figure with two axes, with its titles as text around it."""
    svg = (
        f'<svg width="100%" height="{plane.tall + 18}" overflow="visible" role="img" '
        f'aria-label="{escape(clean(alt or title))}">'
    )
    return (
        f'<div class="plane"><p class="axis">{escape(clean(beside))}</p>'
        f'<div class="inner">{svg}{"".join(parts)}</svg></div>'
        f'<p class="axis below">{escape(clean(below))}</p></div>'
    )


def draw_grid(plane: Plane, whole: bool = False, most: int = 8) -> list[str]:
    """Grid lines with their numbers; `whole`: whole numbers only across."""
    parts, tall = [], plane.tall
    for value in choose_ticks(*plane.across, most, whole):
        at = f"{plane.x(value):.2f}%"
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="0" y2="{tall}"/>')
        parts.append(
            f'<text x="{at}" y="{tall + 15}" text-anchor="middle">{minus(f"{value:g}")}</text>'
        )
    for value in choose_ticks(*plane.up, most):
        at = f"{plane.y(value):.1f}"
        parts.append(f'<line class="grid" x1="0" x2="100%" y1="{at}" y2="{at}"/>')
        parts.append(
            f'<text x="-6" y="{plane.y(value) + 4:.1f}" text-anchor="end">{minus(f"{value:g}")}'
            "</text>"
        )
    return parts


# What figures share.


class LegendEntry(NamedTuple):
    """A sign and its name."""

    colour: str
    shape: str
    name: str

    @classmethod
    def of_model(cls, model: str, looks: Looks) -> LegendEntry:
        return cls(looks.colour(model), looks.shape(model), model)


def draw_legend(entries: Sequence[LegendEntry], clean: Clean) -> str:
    """Names with their signs."""
    if not entries:
        return ""
    items = "".join(
        f'<li><svg class="{entry.colour}" viewBox="-7 -7 14 14" aria-hidden="true">'
        f'<g class="dot">{entry.shape}</g></svg><bdi>{escape(clean(entry.name))}</bdi></li>'
        for entry in entries
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


def format_amount(value: float) -> str:
    """A number with three significant digits; large ones are whole."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def shorten_label(label: str, most: int = 24) -> str:
    """A label that fits."""
    return label if len(label) <= most else f"{label[: most - 1]}…"


def place_across(value: float, across: Range) -> str:
    """The place of a value in a range, as SVG writes it."""
    return f"{100 * (value - across[0]) / (across[1] - across[0]):.2f}%"


def keep_inside(place: float) -> float:
    """A place within the figure."""
    return min(max(place, 0.0), 100.0)


def pad_range(values: Sequence[float]) -> Range:
    """A range with a margin."""
    low, high = (min(values), max(values)) if values else (0.0, 100.0)
    room = (high - low) * 0.08 or 1.0
    return low - room, high + room


def bound_range(across: Range, bounds: Sequence[float]) -> Range:
    """A range within bounds, if there are any: no scale shows values that cannot occur."""
    if len(bounds) != 2 or bounds[0] >= bounds[1]:
        return across
    low, high = max(across[0], bounds[0]), min(across[1], bounds[1])
    return (low, high) if low < high else (bounds[0], bounds[1])


def choose_ticks(low: float, high: float, most: int = 8, whole: bool = False) -> list[float]:
    """Round numbers within a range, two to ten of them; `whole`: whole numbers only."""
    size = 10.0 ** math.floor(math.log10((high - low) / 2))
    steps = [size * times for times in (0.5, 1, 2, 5, 10, 20, 50)]
    if whole:
        steps = [step for step in steps if step >= 1 and step == round(step)] or [1.0]
    step = next((step for step in steps if (high - low) / step <= most), steps[-1])
    return [round(step * at, 6) for at in range(math.ceil(low / step), math.floor(high / step) + 1)]
