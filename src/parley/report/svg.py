"""Figures as SVG: each kind is drawn here, once, for pages, notebooks and files.

A figure is drawn twice, for a wide and for a narrow place; the style sheet shows one of the two.
Their units are chosen so that letters have at least 11 pixels wherever a drawing is shown.
To add a kind: its dataclass in `results/types.py`, and a function in `KINDS`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any, NamedTuple
from unicodedata import category, combining, east_asian_width

from parley.errors import ParleyError
from parley.report.model_signs import COLOURS, SHAPES, ModelSigns
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
from parley.tables import format_interval, format_number, format_signed, round_half_up

Clean = Callable[[str], str]
Range = tuple[float, float]

WIDE, NARROW = 696, 312  # units: the widths of the two drawings
MARGIN = 12  # units around the drawing in a file
LETTER = 13  # units: the size of all letters
LINE = 18  # units between lines of text
GAP = 10
COLUMN = 15  # units before a column of numbers
ROW = 30  # the height of the marks in a row
SIGN = 20  # the width of a sign and the room after it
PLOT = {WIDE: 150, NARROW: 96}  # the least width of the column with the marks
TALL = {WIDE: 280, NARROW: 220}  # the height of a figure with two axes
LOW = 96  # the height of one of several small figures
PANELS = {WIDE: 3, NARROW: 2}  # small figures in a row
SHADES = 5  # classes p0 … p4 of the style sheet, for the pieces of a bar
FIELDS = 9  # classes h0 … h8, for the fields of a heat map
TOGETHER = 2  # lines that share one drawing; more lines have one small drawing each
DOTTED = 16  # points of a line up to which each has a sign
MOST_POINTS, MOST_FAINT = 400, 40  # points of a line, and of a line behind others
SQUARE = '<rect x="-6" y="-6" width="12" height="12"/>'
DASHES = '<path class="target" d="M-7 0H7"/>'
NEGATIVE = re.compile(r"(?<![\w.])-(?=\d)")
NOT_IN_XML = dict.fromkeys((0xFFFE, 0xFFFF), "\ufffd")
FONTS = "Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif"


class DrawingError(ParleyError):
    """The data of a figure cannot be drawn."""


@contextmanager
def refuse_undrawable() -> Iterator[None]:
    """Raise one error for data that cannot be drawn, such as infinite numbers."""
    try:
        yield
    except (TypeError, ValueError, ArithmeticError, StopIteration, IndexError) as wrong:
        raise DrawingError(str(wrong)) from wrong


@refuse_undrawable()
def draw(figure: Figure, clean: Clean, signs: ModelSigns | None = None) -> str:
    """Both drawings of a figure, for a page. `clean` masks secrets and shows hidden characters."""
    wide = make_canvas(figure, WIDE, clean, signs)
    narrow = make_canvas(figure, NARROW, clean, signs)
    scrolls = wide.width > WIDE or narrow.width > NARROW
    title = clean(figure.title)
    group = f' tabindex="0" role="group" aria-label="{escape(title)}"' if scrolls else ""
    kind = "drawings scrolls" if scrolls else "drawings"
    drawn = (wide.to_svg(figure, "at-wide"), narrow.to_svg(figure, "at-narrow"))
    return f'<div class="{kind}"{group}>{"".join(drawn)}</div>'


@refuse_undrawable()
def draw_file(figure: Figure, style: str, clean: Clean, signs: ModelSigns | None = None) -> str:
    """The wide drawing on white, with its title, its legend and its style inside."""
    canvas = Canvas(WIDE, clean, signs or ModelSigns())
    canvas.write_lines(figure.title, "label")
    canvas.down(GAP)
    KINDS[type(figure)](canvas, figure)
    if figure.legend:
        canvas.down(GAP)
        canvas.write_lines(figure.legend.replace("`", ""))
    return canvas.to_file(figure, style)


def make_canvas(figure: Figure, width: int, clean: Clean, signs: ModelSigns | None) -> Canvas:
    canvas = Canvas(width, clean, signs or ModelSigns())
    KINDS[type(figure)](canvas, figure)
    return canvas


# What all kinds draw with.


class Canvas:
    """A drawing that grows downwards. All words from data pass `add_text` or `make_tooltip`,
    which mask secrets, show hidden characters and escape."""

    def __init__(self, width: int, clean: Clean, signs: ModelSigns) -> None:
        self.nominal = width
        self.width: float = width  # wider where the columns of a heat map need it
        self.height = 0.0
        self.clean = clean
        self.signs = signs
        self._parts: list[str] = []

    @property
    def is_narrow(self) -> bool:
        return self.nominal == NARROW

    def down(self, by: float) -> float:
        """Make room below; the old height."""
        top, self.height = self.height, self.height + by
        return top

    def add(self, markup: str) -> None:
        self._parts.append(markup)

    def add_text(
        self,
        x: float,
        y: float,
        words: str,
        kind: str = "",
        anchor: str = "start",
        room: float = math.inf,
    ) -> None:
        """Words on a baseline; what does not fit into `room` is cut, and a tooltip has all."""
        whole = self.clean(words)
        shown = cut_text(whole, room, is_bold(kind))
        title = f"<title>{escape(whole)}</title>" if shown != whole else ""
        attributes = f' class="{kind}"' if kind else ""
        attributes += f' text-anchor="{anchor}"' if anchor != "start" else ""
        self.add(f'<text x="{at(x)}" y="{at(y)}"{attributes}>{escape(shown)}{title}</text>')

    def measure(self, words: str, kind: str = "") -> float:
        """About how wide some words are drawn."""
        return max(measure_text(line, is_bold(kind)) for line in self.clean(words).split("\n"))

    def write_lines(self, words: str, kind: str = "") -> None:
        """A sentence below, on as many lines as it needs."""
        for line in wrap_text(self.clean(words), self.nominal):
            self.add_text(0, self.down(LINE) + LETTER, line, kind)

    def write_caption(self, words: str) -> None:
        """A sentence above a figure, if there is one."""
        if words:
            self.write_lines(words)
            self.down(4)

    def make_tooltip(self, words: str) -> str:
        return f"<title>{escape(self.clean(words))}</title>"

    def add_line(self, kind: str, x1: float, y1: float, x2: float, y2: float) -> None:
        ends = f'x1="{at(x1)}" y1="{at(y1)}" x2="{at(x2)}" y2="{at(y2)}"'
        self.add(f'<line class="{kind}" {ends}/>')

    def add_rect(
        self, kind: str, x: float, y: float, width: float, height: float, inside: str = ""
    ) -> None:
        size = f'x="{at(x)}" y="{at(y)}" width="{at(max(0.0, width))}" height="{at(height)}"'
        self.add(f'<rect class="{kind}" {size}>{inside}</rect>')

    def add_sign(self, x: float, y: float, colour: str, shape: str, inside: str = "") -> None:
        """A shape around a place."""
        where = f'transform="translate({at(x)} {at(y)})"'
        self.add(f'<g class="dot {colour}" {where}>{inside}{shape}</g>')

    def add_name(
        self, x: float, y: float, label: str, model: str = "", room: float = math.inf
    ) -> None:
        """A label on a baseline, after the sign of its model."""
        name = model or label
        if name in self.signs.places:
            sign = self.signs.colour(name), self.signs.shape(name)
            self.add_sign(x + 7, y - LETTER / 3, *sign)
            x, room = x + SIGN, room - SIGN
        self.add_text(x, y, label, "label", room=room)

    def measure_sign(self, label: str, model: str) -> float:
        """The room of the sign before a name."""
        return SIGN if (model or label) in self.signs.places else 0

    def measure_name(self, label: str, model: str = "") -> float:
        return self.measure_sign(label, model) + self.measure(label, "label")

    def to_svg(self, figure: Figure, kind: str) -> str:
        """The drawing for a page. One that is wider than its place keeps its size and scrolls."""
        if self.width > self.nominal:
            kind += " natural"
        box = f'viewBox="0 0 {at(self.width)} {at(self.height)}"'
        if self.width > self.nominal:
            box += f' width="{at(self.width)}" height="{at(self.height)}"'
        body = "".join(self._parts)
        return f'<svg class="drawing {kind}" role="img" {box}>{self._describe(figure)}{body}</svg>'

    def to_file(self, figure: Figure, style: str) -> str:
        """The drawing as a document of its own."""
        width, height = at(self.width + 2 * MARGIN), at(self.height + 2 * MARGIN)
        corner = f'x="-{MARGIN}" y="-{MARGIN}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" role="img" width="{width}" '
            f'height="{height}" viewBox="-{MARGIN} -{MARGIN} {width} {height}" '
            f'font-family="{FONTS}">{self._describe(figure)}<style>{style}</style>'
            f'<rect {corner} width="{width}" height="{height}" fill="#ffffff"/>'
            f"{''.join(self._parts)}</svg>\n"
        ).translate(NOT_IN_XML)

    def _describe(self, figure: Figure) -> str:
        words = f"<desc>{escape(self.clean(figure.alt))}</desc>" if figure.alt else ""
        return self.make_tooltip(figure.title) + words


@dataclass(frozen=True)
class Axis:
    """Where values lie on an axis, in units."""

    values: Range
    start: float
    end: float

    def place(self, value: float) -> float:
        """The place of a value; the nearer end for what lies beyond the axis."""
        low, high = self.values
        inside = min(max(value, low), high)
        return self.start + (self.end - self.start) * (inside - low) / (high - low)

    def ticks(self, apart: float, whole: bool = False) -> list[float]:
        """Round numbers that are at least so far apart."""
        most = max(2, int(abs(self.end - self.start) / apart))
        return choose_ticks(*self.values, most, whole)


class LegendEntry(NamedTuple):
    """A sign and its name."""

    colour: str
    shape: str
    name: str


def draw_legend(canvas: Canvas, entries: Sequence[LegendEntry]) -> None:
    """Names with their signs, in lines below the figure."""
    if not entries:
        return
    canvas.down(6)
    x, baseline = 0.0, canvas.down(LINE + 4) + LETTER + 2
    for entry in entries:
        need = min(SIGN + canvas.measure(entry.name), canvas.nominal)
        if x and x + need > canvas.nominal:
            x, baseline = 0.0, canvas.down(LINE + 4) + LETTER + 2
        canvas.add_sign(x + 7, baseline - LETTER / 3, entry.colour, entry.shape)
        canvas.add_text(x + SIGN, baseline, entry.name, room=canvas.nominal - x - SIGN)
        x += need + 2 * GAP


# Figures made of rows: a label, marks on a common scale, and columns of numbers.


class Row(NamedTuple):
    """A row. `draw_marks` gets the scale and the height of the middle."""

    label: str
    model: str
    cells: Sequence[str]  # a cell may have several lines
    draw_marks: Callable[[Axis, float], None]
    tall: float = ROW
    rank: str = ""
    detail: str = ""  # below the label


class Columns(NamedTuple):
    """Where the columns of rows are: ranks, names, marks, and numbers with their right ends."""

    ranks: float  # how wide
    names: float  # how wide
    axis: Axis
    widths: Sequence[float]
    ends: Sequence[float]


def draw_rows(
    canvas: Canvas,
    rows: Sequence[Row],
    values: Range,
    headings: Sequence[str] = (),
    has_scale: bool = True,
) -> None:
    """Rows with one column of marks. In a narrow drawing the marks stand below the words, unless
    everything fits into one line."""
    columns = place_columns(canvas, rows, values, headings)
    if columns is None:
        draw_stacked_rows(canvas, rows, values, headings, has_scale)
        return
    if has_scale or any(headings):
        baseline = canvas.down(LINE + 4) + LETTER
        if columns.ranks:
            canvas.add_text(0, baseline, "rank")
        if has_scale:
            write_scale(canvas, columns.axis, baseline)
        for heading, width, end in zip(headings, columns.widths, columns.ends, strict=True):
            canvas.add_text(end, baseline, heading, anchor="end", room=width)
    for row in rows:
        lines = max((cell.count("\n") + 1 for cell in row.cells), default=1)
        tall = max(row.tall, max(lines, 2 if row.detail else 1) * LINE + 8)
        top = canvas.down(tall)
        canvas.add_line("grid", 0, top, canvas.nominal, top)
        if has_scale:
            rule_scale(canvas, columns.axis, top, tall)
        write_row(canvas, row, columns, top + tall / 2)
        row.draw_marks(columns.axis, top + tall / 2)


def place_columns(
    canvas: Canvas, rows: Sequence[Row], values: Range, headings: Sequence[str]
) -> Columns | None:
    """The columns as wide as their words; None if a narrow drawing has no room for the marks."""
    most = 0.6 * canvas.nominal / max(1, len(headings))
    widths = [
        min(most, max(canvas.measure(words, "value bold") for words in (heading, *cells)))
        for heading, *cells in zip(headings, *(row.cells for row in rows), strict=True)
    ]
    ends, right = list[float](), float(canvas.nominal)
    for width in reversed(widths):
        ends.insert(0, right)
        right -= width + COLUMN if width else 0
    ranks = max((canvas.measure(row.rank, "value") for row in rows), default=0.0)
    if ranks:
        ranks = max(ranks, canvas.measure("rank")) + GAP
    names = max((measure_row_name(canvas, row) for row in rows), default=0.0)
    room = right - ranks - PLOT[canvas.nominal] - 2 * GAP
    if canvas.is_narrow and names > room:
        return None
    if not canvas.is_narrow:
        names = min(names, max(80.0, min(room, canvas.nominal / 3)))
    return Columns(ranks, names, Axis(values, ranks + names + 2 * GAP, right), widths, ends)


def measure_row_name(canvas: Canvas, row: Row) -> float:
    """The width of a label and of what stands below it."""
    detail = canvas.measure_sign(row.label, row.model) + canvas.measure(row.detail)
    return max(canvas.measure_name(row.label, row.model), detail)


def write_row(canvas: Canvas, row: Row, columns: Columns, middle: float) -> None:
    """The words of a row."""
    baseline = middle + LETTER / 3 - (LINE / 2 if row.detail else 0)
    if columns.ranks:
        canvas.add_text(0, baseline, row.rank, "value")
    canvas.add_name(columns.ranks, baseline, row.label, row.model, columns.names)
    if row.detail:
        sign = canvas.measure_sign(row.label, row.model)
        room = columns.names - sign
        canvas.add_text(columns.ranks + sign, baseline + LINE, row.detail, room=room)
    for place, cell in enumerate(row.cells):
        kind = "value bold" if place == 0 and len(row.cells) > 1 else "value"
        parts = cell.split("\n")
        first = middle + LETTER / 3 - LINE * (len(parts) - 1) / 2
        for line, part in enumerate(parts):
            end, room = columns.ends[place], columns.widths[place]
            canvas.add_text(end, first + LINE * line, part, kind, "end", room)


def draw_stacked_rows(
    canvas: Canvas,
    rows: Sequence[Row],
    values: Range,
    headings: Sequence[str],
    has_scale: bool,
) -> None:
    """Rows of a narrow drawing: label and first number, then details and second number, then the
    marks."""
    scale = Axis(values, 8, canvas.nominal - 8)
    if title := ", ".join(filter(None, headings[:2])):
        baseline = canvas.down(LINE) + LETTER
        canvas.add_text(canvas.nominal, baseline, title, anchor="end", room=canvas.nominal)
    if has_scale:
        write_scale(canvas, scale, canvas.down(LINE + 4) + LETTER)
    for row in rows:
        canvas.add_line("grid", 0, canvas.height, canvas.nominal, canvas.height)
        cells = [cell.replace("\n", " / ") for cell in row.cells]
        if not row.detail:
            cells = [", ".join(filter(None, cells[:2]))]
        baseline = canvas.down(LINE + 6) + LETTER + 6
        start = canvas.measure(row.rank, "value") + GAP if row.rank else 0.0
        if row.rank:
            canvas.add_text(0, baseline, row.rank, "value")
        taken = 0.0
        if cells and cells[0]:
            taken = min(canvas.measure(cells[0], "value bold"), canvas.nominal * 0.6)
            kind = "value bold" if len(cells) > 1 else "value"
            canvas.add_text(canvas.nominal, baseline, cells[0], kind, "end", taken)
        canvas.add_name(start, baseline, row.label, row.model, canvas.nominal - start - taken - GAP)
        if row.detail or len(cells) > 1:
            baseline = canvas.down(LINE) + LETTER + 6
            end = cells[1] if len(cells) > 1 else ""
            taken = canvas.measure(end, "value")
            canvas.add_text(canvas.nominal, baseline, end, "value", "end")
            start += canvas.measure_sign(row.label, row.model)
            canvas.add_text(start, baseline, row.detail, room=canvas.nominal - start - taken - GAP)
        top = canvas.down(row.tall)
        if has_scale:
            rule_scale(canvas, scale, top + 4, row.tall - 4)
        row.draw_marks(scale, top + row.tall / 2)


def write_scale(canvas: Canvas, scale: Axis, baseline: float) -> None:
    """The numbers of an axis, above the rows that share it; none covers another."""
    taken = -math.inf
    for tick in scale.ticks(48):
        words = minus(f"{tick:g}")
        width = measure_text(words)
        right = min(canvas.nominal, scale.end + COLUMN - 4)  # a heading follows
        x = min(max(scale.place(tick), width / 2), right - width / 2)
        if x - width / 2 < taken + 6:
            continue
        taken = x + width / 2
        canvas.add_text(x, baseline, words, anchor="middle")


def rule_scale(canvas: Canvas, scale: Axis, top: float, tall: float) -> None:
    """The grid lines behind a row."""
    for tick in scale.ticks(48):
        x = scale.place(tick)
        canvas.add_line("grid", x, top, x, top + tall)


def draw_intervals(canvas: Canvas, figure: Intervals) -> None:
    """Values with their intervals, one under the other; points with one label share a row. With
    several groups, the shape says the group and the colour says the model."""
    canvas.write_caption(figure.caption)
    signs = canvas.signs
    values = pad_range(list_known(end for p in figure.points for end in (p.low, p.value, p.high)))
    groups = list(dict.fromkeys(point.group for point in figure.points))
    several = len(groups) > 1

    def draw_marks(points: Sequence[Point], scale: Axis, middle: float) -> None:
        top = middle - 8 * (len(groups) - 1)
        for point in points:
            who, place = point.model or point.label, groups.index(point.group)
            colour, shape = signs.colour(who), signs.shape(who)
            if several:
                colour = colour if who in signs.places else "ink"
                shape = SHAPES[place % len(SHAPES)]
            draw_interval(canvas, point, scale, top + 16 * place, colour, shape)

    rows = []
    for label in dict.fromkeys(point.label for point in figure.points):
        points = [point for point in figure.points if point.label == label]
        models = {point.model for point in points}
        numbers = "\n".join(describe_point(point, figure.digits) for point in points)
        first = points[0]
        rows.append(
            Row(
                label,
                models.pop() if len(models) == 1 else label,
                (numbers, *(minus(canvas.clean(cell)) for cell in first.cells)),
                partial(draw_marks, points),
                max(ROW, 16 * len(groups) + 8),
                first.rank,
                first.detail,
            )
        )
    headings = [figure.heading or figure.unit or "value", *figure.columns]
    draw_rows(canvas, rows, values, headings)
    if several:
        coloured = all((point.model or point.label) in signs.places for point in figure.points)
        colour = "grey" if coloured else "ink"
        draw_legend(
            canvas,
            [
                LegendEntry(colour, SHAPES[place % len(SHAPES)], group)
                for place, group in enumerate(groups)
            ],
        )


def draw_interval(
    canvas: Canvas, point: Point, scale: Axis, middle: float, colour: str, shape: str
) -> None:
    """A line from the low to the high end, and a sign at the value; nothing where it is missing."""
    if point.low is not None and point.high is not None:
        ends = scale.place(point.low), scale.place(point.high)
        canvas.add_line(f"iv {colour}", ends[0], middle, ends[1], middle)
    if point.value is not None:
        canvas.add_sign(scale.place(point.value), middle, colour, shape)


def describe_point(point: Point, digits: int | None) -> str:
    if point.value is None or digits is not None:
        return minus(format_number(point.value, digits or 0)) + point.mark
    return minus(f"{point.value:.3g}") + point.mark


def draw_boxes(canvas: Canvas, figure: Boxes) -> None:
    """Distributions, one under the other: the middle half as a box, its median as a line, and every
    value as a dot unless they are too many."""
    values = pad_range([end for box in figure.boxes for end in (box.low, box.high)])
    rows = [
        Row(
            box.label,
            box.model,
            (minus(format_number(box.median, figure.digits)), f"{box.n:,}"),
            partial(draw_box, canvas, box),
        )
        for box in figure.boxes
    ]
    unit = f"median ({figure.unit})" if figure.unit else "median"
    draw_rows(canvas, rows, values, [unit, "n"])


def draw_box(canvas: Canvas, box: Box, scale: Axis, middle: float) -> None:
    """A box with its whiskers, which reach to the lowest and the highest value."""
    colour = canvas.signs.colour(box.model or box.label)
    low, first, median, third, high = map(
        scale.place, (box.low, box.first_quartile, box.median, box.third_quartile, box.high)
    )
    canvas.add_line(f"whisker {colour}", low, middle, first, middle)
    canvas.add_line(f"whisker {colour}", third, middle, high, middle)
    canvas.add_rect(f"box {colour}", first, middle - 9, third - first, 18)
    for place, value in enumerate(box.dots):
        y = middle + (place * 7 % 15 - 7)  # spread, so that equal values do not cover each other
        circle = f'cx="{at(scale.place(value))}" cy="{at(y)}" r="2.2"'
        canvas.add(f'<circle class="one {colour}" {circle}/>')
    canvas.add_line(f"median {colour}", median, middle - 11, median, middle + 11)


def draw_bars(canvas: Canvas, figure: Bars) -> None:
    """Stacked bars, one under the other, with a legend of their pieces. Pieces differ in shade: the
    colours belong to models."""
    names = list(dict.fromkeys(name for bar in figure.bars for name in bar.pieces))
    most = figure.most or max((sum(bar.pieces.values()) for bar in figure.bars), default=0) or 1.0
    rows = [
        Row(
            bar.label,
            bar.model,
            (bar.note,),
            partial(draw_bar, canvas, bar, names, figure.most is not None),
        )
        for bar in figure.bars
    ]
    draw_rows(canvas, rows, (0.0, most), [""], has_scale=False)
    if len(names) > 1 or figure.most is None:
        draw_legend(
            canvas,
            [
                LegendEntry(f"grey piece p{place % SHADES}", SQUARE, name)
                for place, name in enumerate(names)
            ],
        )


def draw_bar(
    canvas: Canvas,
    bar: Bar,
    names: Sequence[str],
    has_track: bool,
    scale: Axis,
    middle: float,
) -> None:
    """One bar; a track shows the whole scale behind it."""
    colour = canvas.signs.colour(bar.model or bar.label)
    top, tall = middle - 9, 18
    if has_track:
        canvas.add_rect("track", scale.start, top, scale.end - scale.start, tall)
    start = 0.0
    for name, value in bar.pieces.items():
        if not value:
            continue
        left, right = scale.place(start), scale.place(start + value)
        start += value
        shade, number = names.index(name) % SHADES, minus(format_amount(value))
        said = canvas.make_tooltip(f"{name}: {number}")
        canvas.add_rect(f"piece p{shade} {colour}", left, top, right - left, tall, said)
        if not has_track and measure_text(number) + 6 < right - left:
            kind = f"inside{' full' if shade == 0 else ''}"
            canvas.add_text((left + right) / 2, middle + LETTER / 3, number, kind, "middle")


# Heat maps.

MARKED = {  # by mark: its sign, its class, and what it means
    "better": ("▲", "up", "significantly better"),
    "worse": ("▼", "down", "significantly worse"),
    "even": ("≈", "even", "no significant difference"),
}


class Field(NamedTuple):
    """A field of a heat map: its class, its lines of text, and their class; all its words if some
    lines are left out."""

    kind: str
    lines: Sequence[str]
    words: str = "value"
    said: str = ""

    def shorten(self) -> Field:
        """The same on two lines; from two lines, only the first one."""
        two, said = len(self.lines) > 1, self.said or ", ".join(self.lines)
        lines = self.lines[:1] if two else self.lines[0].split(" ")
        return self._replace(lines=lines, said=said if lines != self.lines else self.said)


def draw_heat_map(canvas: Canvas, figure: HeatMap) -> None:
    """A field for each value, with its number and its interval: colour is not the only sign.
    Where they do not fit, intervals are left to tooltips, and on a phone the numbers beside marks.
    A map that needs more room than there is becomes wider."""
    canvas.write_caption(figure.caption)
    if figure.row_label:
        corner = f"{figure.row_label} ↓ {figure.column_label} →"
        canvas.add_text(0, canvas.down(LINE) + LETTER, corner, room=canvas.nominal)
    names = max((canvas.measure_name(row) for row in figure.rows), default=0.0)
    names = min(0.38 * canvas.nominal, names) + GAP
    columns = max(1, len(figure.columns))
    width = (canvas.nominal - names) / columns
    fields = make_fields(figure)
    for _ in range(2 if figure.marks and canvas.is_narrow else 1):
        if width < measure_fields(canvas, fields):
            fields = [[field.shorten() for field in row] for row in fields]
    width = max(width, measure_fields(canvas, fields))
    if canvas.is_narrow and columns <= 2:
        width = min(width, 120.0)
    canvas.width = max(canvas.nominal, names + width * columns)
    write_columns(canvas, figure.columns, names, width)
    tall = max(ROW, LINE * max((len(f.lines) for row in fields for f in row), default=1) + 12)
    for name, row in zip(figure.rows, fields, strict=True):
        top = canvas.down(tall)
        canvas.add_name(0, top + tall / 2 + LETTER / 3, name, room=names - GAP)
        for place, field in enumerate(row):
            draw_field(canvas, field, (names + width * place, top, width, tall))
    used = {mark for row in figure.marks for mark in row}
    said = [f"{sign} {means}" for mark, (sign, _, means) in MARKED.items() if mark in used]
    if said:
        canvas.down(4)
        canvas.write_lines(", ".join(said))


def make_fields(figure: HeatMap) -> list[list[Field]]:
    """The fields: a number, and a mark beside it or its interval below it."""
    known = list_known(value for row in figure.values for value in row)
    low, high = (min(known), max(known)) if known else (0.0, 0.0)

    def make_field(row: int, column: int) -> Field:
        value = figure.values[row][column]
        mark = figure.marks[row][column] if figure.marks else ""
        if value is None or (figure.marks and not mark):
            return Field("field empty", ["·" if figure.marks else "–"], "")
        if mark:
            sign, kind, _ = MARKED[mark]
            number = minus(format_signed(value, figure.digits))
            return Field(f"field {kind}", [f"{sign} {number}"], f"words-{kind}")
        lines = [minus(round_half_up(value, figure.digits))]
        if figure.low and figure.high:
            ends = figure.low[row][column], figure.high[row][column]
            if ends[0] is not None and ends[1] is not None:
                lines.append(minus(format_interval(ends[0], ends[1], figure.digits)))
        share = (value - low) / (high - low) if high > low else 0.5
        return Field(f"field h{round(share * (FIELDS - 1))}", lines)

    columns = range(len(figure.columns))
    return [[make_field(row, column) for column in columns] for row in range(len(figure.rows))]


def measure_fields(canvas: Canvas, fields: Sequence[Sequence[Field]]) -> float:
    """The width that every field needs."""
    known = (canvas.measure(line, f.words) for row in fields for f in row for line in f.lines)
    return max(known, default=0.0) + 6


def draw_field(canvas: Canvas, field: Field, box: tuple[float, float, float, float]) -> None:
    """A field within a box (left, top, width, height)."""
    left, top, width, tall = box
    if field.said:
        canvas.add(f"<g>{canvas.make_tooltip(field.said)}")
    canvas.add_rect(field.kind, left + 1, top + 1, width - 2, tall - 2)
    first = top + tall / 2 + LETTER / 3 - LINE * (len(field.lines) - 1) / 2
    for place, line in enumerate(field.lines):
        canvas.add_text(left + width / 2, first + LINE * place, line, field.words, "middle")
    if field.said:
        canvas.add("</g>")


def write_columns(canvas: Canvas, columns: Sequence[str], start: float, width: float) -> None:
    """The names of columns, on several lines where they need them; upright where a word has too
    little room."""
    signs, room = canvas.signs, width - 6
    if not columns:
        return
    middles = [start + width * (place + 0.5) for place in range(len(columns))]
    # the name of a model stays on one line
    words = [[each] if each in signs.places else each.split() or [""] for each in columns]
    if max(canvas.measure_name(word) for each in words for word in each) <= room:
        wrapped = [
            [each] if each in signs.places else wrap_text(canvas.clean(each), room, True)
            for each in columns
        ]
        lines_tall = LINE * max(map(len, wrapped))
        bottom = canvas.down(lines_tall + 4) + lines_tall
        for lines, middle in zip(wrapped, middles, strict=True):
            for above, line in enumerate(reversed(lines)):
                left = middle - canvas.measure_name(line) / 2
                canvas.add_name(left, bottom - 5 - LINE * above, line)
        return
    longest = max(canvas.measure_name(column) for column in columns)
    tall = min(longest, 120.0 if canvas.is_narrow else 160.0)
    bottom = canvas.down(tall + 8) + tall + 4
    for column, middle in zip(columns, middles, strict=True):
        x, foot = middle + LETTER / 3, bottom
        if column in signs.places:
            canvas.add_sign(middle, bottom - 7, signs.colour(column), signs.shape(column))
            foot -= SIGN
        canvas.add(f'<g transform="translate({at(x)} {at(foot)}) rotate(-90)">')
        canvas.add_text(0, 0, column, "label", room=tall - bottom + foot)
        canvas.add("</g>")


# Figures with two axes.


@dataclass(frozen=True)
class Plane:
    """The axes of a figure."""

    x: Axis
    y: Axis

    def place(self, x: float, y: float) -> tuple[float, float]:
        return self.x.place(x), self.y.place(y)


def draw_plane(
    canvas: Canvas,
    across: Range,
    up: Range,
    box: tuple[float, float, float, float],
    whole: bool = False,
) -> Plane:
    """Grid and numbers of a plane within a box (left, top, width, height); `whole`: whole numbers
    only across."""
    left, top, width, tall = box
    low = tall - LINE - 4
    y = Axis(up, top + low, top + 6)
    heights = y.ticks(34)
    gutter = max(measure_text(minus(f"{tick:g}")) for tick in heights) if heights else 0.0
    x = Axis(across, left + gutter + 8, left + width - 14)
    for tick in heights:
        height = y.place(tick)
        canvas.add_line("grid", x.start, height, x.end, height)
        canvas.add_text(x.start - 6, height + LETTER / 3, minus(f"{tick:g}"), anchor="end")
    taken = -math.inf
    for tick in x.ticks(26, whole):
        place, words = x.place(tick), minus(f"{tick:g}")
        canvas.add_line("grid", place, y.end, place, y.start)
        half = measure_text(words) / 2
        if place - half > taken + 6 and place + half <= left + width:
            canvas.add_text(place, top + tall - 2, words, anchor="middle")
            taken = place + half
    return Plane(x, y)


def write_x_title(canvas: Canvas, words: str, plane: Plane) -> None:
    """What the axis across shows, below a plane."""
    canvas.add_text(
        (plane.x.start + plane.x.end) / 2,
        canvas.down(LINE + 4) + LETTER + 2,
        words,
        anchor="middle",
        room=plane.x.end - plane.x.start,
    )


def draw_lines(canvas: Canvas, figure: Lines) -> None:
    """Lines over a common axis, with bands where intervals are known. Up to two share a plane;
    more have a small plane each, in which the others are faint."""
    signs = canvas.signs
    ordered = sorted(figure.series, key=lambda series: signs.place(series.model or series.label))
    lines = [(series, *choose_line_sign(series, n, signs)) for n, series in enumerate(ordered)]
    whole = all(value == round(value) for series in figure.series for value in series.x)
    across, up = choose_ranges(figure)
    if len(lines) <= TOGETHER:
        canvas.write_lines(figure.y)
        tall = TALL[canvas.nominal]
        top = canvas.down(tall)
        plane = draw_plane(canvas, across, up, (0, top, canvas.nominal, tall), whole)
        draw_target(canvas, figure, plane)
        for series, colour, shape in lines:
            draw_line(canvas, series, colour, plane)
            draw_line_signs(canvas, series, colour, shape, plane)
        write_x_title(canvas, figure.x, plane)
        entries = [LegendEntry(colour, shape, series.label) for series, colour, shape in lines]
        draw_legend(canvas, [*entries, *name_target(figure)])
        return
    canvas.write_lines(f"{figure.y} (up) by {figure.x} (across); the other lines are grey")
    number = PANELS[canvas.nominal]
    width = (canvas.nominal - 2 * GAP * (number - 1)) / number
    top = canvas.height
    for place, (own, colour, shape) in enumerate(lines):
        if place % number == 0:
            top = canvas.down(LOW + 2 * LINE + 18) + 6
        left = (width + 2 * GAP) * (place % number)
        canvas.add_sign(left + 7, top + LETTER - LETTER / 3, colour, shape)
        canvas.add_text(left + SIGN, top + LETTER, own.label, "label", room=width - SIGN)
        box = (left, top + LINE, width, LOW + LINE + 4)
        plane = draw_plane(canvas, across, up, box, whole)
        for series, *_ in lines:
            if series is not own:
                draw_line(canvas, drop_band(series), "faint", plane, MOST_FAINT)
        draw_target(canvas, figure, plane)
        draw_line(canvas, own, colour, plane)
        draw_line_signs(canvas, own, colour, shape, plane)
        if all(value is None for value in own.y):
            middle = (plane.x.start + plane.x.end) / 2
            canvas.add_text(middle, plane.y.end + LETTER + 4, "no value", anchor="middle")
    draw_legend(canvas, name_target(figure))


def drop_band(series: Series) -> Series:
    """A line without its band."""
    return Series(series.label, series.x, series.y)


def choose_ranges(figure: Lines) -> tuple[Range, Range]:
    """The ranges that hold all lines, bands and the target."""
    heights = [end for each in figure.series for end in (*each.y, *each.low, *each.high)]
    up = pad_range(list_known([*heights, figure.target]))
    across = pad_range([value for series in figure.series for value in series.x])
    return across, bound_range(up, figure.y_bounds)


def choose_line_sign(series: Series, place: int, signs: ModelSigns) -> tuple[str, str]:
    """The colour and the shape of a line: those of its model, else by its place."""
    who = series.model or series.label
    if who in signs.places:
        return signs.colour(who), signs.shape(who)
    colour = "grey" if signs.places else f"c{place % COLOURS}"
    return colour, SHAPES[place % len(SHAPES)]


def draw_line(
    canvas: Canvas, series: Series, colour: str, plane: Plane, most: int = MOST_POINTS
) -> None:
    """A line and its band. A missing value interrupts them."""
    points = pad_bands(series.x, series.y, series.low, series.high)
    points = list(pick_points(points, most))
    for piece in split_at_gaps([(x, low, high) for x, _, low, high in points]):
        corners = [plane.place(x, high) for x, _, high in piece]
        corners += [plane.place(x, low) for x, low, _ in reversed(piece)]
        canvas.add(f'<polygon class="bd {colour}" points="{write_places(corners)}"/>')
    for piece in split_at_gaps([(x, y, y) for x, y, *_ in points]):
        places = write_places([plane.place(x, y) for x, y, _ in piece])
        canvas.add(f'<polyline class="ln {colour}" points="{places}"/>')


def pad_bands(
    x: Sequence[float], *others: Sequence[float | None]
) -> list[tuple[float, float | None, float | None, float | None]]:
    """The points of a line; a band that is shorter than its line has no more values."""
    columns = [[*other, *[None] * (len(x) - len(other))] for other in others]
    return list(zip(x, *columns, strict=False))


def draw_line_signs(canvas: Canvas, series: Series, colour: str, shape: str, plane: Plane) -> None:
    """The signs of a line: at every point, or only at the last of many."""
    known = [(x, y) for x, y in zip(series.x, series.y, strict=True) if y is not None]
    for x, y in known if len(known) <= DOTTED else known[-1:]:
        said = canvas.make_tooltip(f"{series.label}, {x:g}: {y:.3g}")
        canvas.add_sign(*plane.place(x, y), colour, shape, said)


def draw_target(canvas: Canvas, figure: Lines, plane: Plane) -> None:
    """A dashed line at the target; the legend has its name, which would cover the lines here."""
    if figure.target is not None:
        height = plane.y.place(figure.target)
        canvas.add_line("target", plane.x.start, height, plane.x.end, height)


def name_target(figure: Lines) -> list[LegendEntry]:
    """The target in the legend."""
    if figure.target is None:
        return []
    return [LegendEntry("ink", DASHES, figure.target_label or f"target: {figure.target:g}")]


MARKS = {"suspected": "suspected", "look": "worth a look", "above": "above the line"}
BESIDE = 9  # units between dots that have the same place
NEAR = 9  # units around a dot that no name may cover


def draw_scatter(canvas: Canvas, figure: Scatter) -> None:
    """Points in the plane with their intervals; those that lie apart are named with their mark."""
    line, dots, signs = figure.line, figure.dots, canvas.signs
    beside: list[float | None] = [end for dot in dots for end in (dot.x_low, dot.x, dot.x_high)]
    heights: list[float | None] = [end for dot in dots for end in (dot.y_low, dot.y, dot.y_high)]
    if line:
        beside += line.x
        heights += [*line.low, *line.y, *line.high]
    across = bound_range(pad_range(list_known(beside)), figure.x_bounds)
    up = bound_range(pad_range(list_known(heights)), figure.y_bounds)
    canvas.write_lines(figure.y)
    tall = TALL[canvas.nominal] + 40
    plane = draw_plane(canvas, across, up, (0, canvas.down(tall), canvas.nominal, tall))
    if line:
        draw_line(canvas, line, "accent", plane)
    for dot in dots:
        draw_cross(canvas, dot, plane)
    seen = Counter[tuple[int, int]]()
    for dot in dots:
        x, y = plane.place(dot.x, dot.y)
        place = round(x / 3), round(y / 3)
        draw_dot(canvas, dot, x + BESIDE * seen[place], y)
        seen[place] += 1
    draw_dot_names(canvas, dots, plane)
    write_x_title(canvas, figure.x, plane)
    models = sorted({dot.model or dot.label for dot in dots} & signs.places.keys(), key=signs.place)
    draw_legend(
        canvas, [LegendEntry(signs.colour(name), signs.shape(name), name) for name in models]
    )


def draw_cross(canvas: Canvas, dot: Dot, plane: Plane) -> None:
    """The intervals of a dot: lines across and up."""
    (x, y), kind = plane.place(dot.x, dot.y), f"thin {choose_dot_colour(dot, canvas.signs)}"
    if dot.x_low is not None and dot.x_high is not None:
        canvas.add_line(kind, plane.x.place(dot.x_low), y, plane.x.place(dot.x_high), y)
    if dot.y_low is not None and dot.y_high is not None:
        canvas.add_line(kind, x, plane.y.place(dot.y_low), x, plane.y.place(dot.y_high))


def draw_dot(canvas: Canvas, dot: Dot, x: float, y: float) -> None:
    """A dot with the sign of its model, and a ring in the colour of its mark."""
    who, signs = dot.model or dot.label, canvas.signs
    if who in signs.places:
        shape = signs.shape(who)
    else:
        shape = SHAPES[{"suspected": 2, "look": 1, "above": 3}.get(dot.mark, 0)]
    said = canvas.make_tooltip(dot.note or dot.label)
    canvas.add_sign(x, y, choose_dot_colour(dot, signs), shape, said)
    if dot.mark:
        canvas.add(f'<circle class="ring {dot.mark}" cx="{at(x)}" cy="{at(y)}" r="9"/>')


def choose_dot_colour(dot: Dot, signs: ModelSigns) -> str:
    who = dot.model or dot.label
    return signs.colour(who) if who in signs.places else dot.mark or "accent"


class Label(NamedTuple):
    """The place of a name: its left end, its width and its baseline."""

    left: float
    width: float
    baseline: float


def draw_dot_names(canvas: Canvas, dots: Sequence[Dot], plane: Plane) -> None:
    """Names beside the dots where they cover no dot, no interval and no other name. Marked dots
    come first; a name without room is left to the legend."""
    taken = list[Label]()
    for dot in sorted(dots, key=lambda dot: (not dot.mark, dot.y, dot.label)):
        name = cut_text(canvas.clean(dot.label), 170)
        said = f"{name}, {MARKS[dot.mark]}" if dot.mark else name
        kind = f"name {dot.mark}".strip()
        label = place_name(dot, measure_text(said, is_bold(kind)), dots, taken, plane)
        if label is not None:
            taken.append(label)
            canvas.add_text(label.left, label.baseline, said, kind)


def place_name(
    dot: Dot, width: float, dots: Sequence[Dot], taken: Sequence[Label], plane: Plane
) -> Label | None:
    """The first free place beside, above or below a dot."""
    x, y = plane.place(dot.x, dot.y)
    starts = (x + 12, x - 12 - width, x - width / 2)
    for step in (0, -18, 18, -31, 31, -44, 44):
        for left in starts[2:] + starts[:2] if step else starts[:2]:
            label = Label(left, width, y + 4 + step)
            if is_place_free(label, dots, taken, plane):
                return label
    return None


def is_place_free(label: Label, dots: Sequence[Dot], taken: Sequence[Label], plane: Plane) -> bool:
    """Whether a name lies within the plane and covers nothing."""
    left, right = label.left, label.left + label.width
    top, bottom = label.baseline - LETTER + 2, label.baseline + 3
    if left < plane.x.start or right > plane.x.end + 12:
        return False
    if top < plane.y.end - 6 or bottom > plane.y.start:
        return False
    for other in taken:
        if (
            other.left < right + 4
            and left < other.left + other.width + 4
            and abs(label.baseline - other.baseline) < LETTER + 2
        ):
            return False
    for dot in dots:
        x, y = plane.place(dot.x, dot.y)
        if left - NEAR < x < right + NEAR and top - NEAR < y < bottom + NEAR:
            return False
        if dot.x_low is not None and dot.x_high is not None and top < y < bottom:
            ends = plane.x.place(dot.x_low), plane.x.place(dot.x_high)
            if ends[0] < right and left < ends[1]:
                return False
        if dot.y_low is not None and dot.y_high is not None and left < x < right:
            ends = plane.y.place(dot.y_high), plane.y.place(dot.y_low)
            if ends[0] < bottom and top < ends[1]:
                return False
    return True


KINDS: Mapping[type, Callable[[Canvas, Any], None]] = {
    Intervals: draw_intervals,
    Bars: draw_bars,
    Boxes: draw_boxes,
    Lines: draw_lines,
    Scatter: draw_scatter,
    HeatMap: draw_heat_map,
}


# Numbers and places.


def at(place: float) -> str:
    """A number as SVG writes it."""
    if not math.isfinite(place):
        raise ValueError(f"{place} has no place in a drawing")
    return f"{place:.1f}".removesuffix(".0")


def write_places(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{at(x)},{at(y)}" for x, y in places)


def minus(text: str) -> str:
    """A text whose negative numbers have a true minus sign; hyphens inside words stay."""
    return NEGATIVE.sub("−", text)


def format_amount(value: float) -> str:
    """A number with three significant digits; large ones are whole."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def list_known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def pick_points(points: Sequence[Any], most: int) -> Iterator[Any]:
    """At most `most` points, evenly spread, including the first and the last."""
    if len(points) <= most:
        yield from points
        return
    for place in range(most):
        yield points[round(place * (len(points) - 1) / (most - 1))]


def split_at_gaps(
    points: Iterable[tuple[float, float | None, float | None]],
) -> Iterator[list[tuple[float, float, float]]]:
    """Runs of points without a missing value."""
    piece: list[tuple[float, float, float]] = []
    for x, low, high in points:
        if low is not None and high is not None:
            piece.append((x, low, high))
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


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
    """Round numbers within a range, as many as fit; `whole`: whole numbers only."""
    power = math.floor(math.log10((high - low) / 2))
    steps = [10.0**power * times for times in (0.5, 1, 2, 5, 10, 20, 50)]
    if whole:
        steps = [step for step in steps if step >= 1 and step == round(step)] or [1.0]
    step = next((step for step in steps if (high - low) / step <= most), steps[-1])
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(step * place, max(0, 2 - power)) for place in range(first, last + 1)]


# Words. The widths are those of a wide font, because nobody knows the fonts of a reader.


def is_bold(kind: str) -> bool:
    return not {"label", "bold", "words-up", "suspected", "look", "above"}.isdisjoint(kind.split())


def measure_text(text: str, bold: bool = False) -> float:
    """About how wide a text is drawn, in units."""
    return sum(map(measure_letter, text)) * LETTER * (1.1 if bold else 1.0)


def measure_letter(letter: str) -> float:
    """The width of a letter as a share of its height."""
    if letter in "ijlI.,:;'|! ()[]/":
        return 0.36
    if letter in "mwMW@%—…":
        return 0.95
    if east_asian_width(letter) in "WF":
        return 1.1
    if category(letter)[0] == "S":  # + − ≈ ▲ →
        return 0.85
    if letter.isascii():
        return 0.72 if letter.isupper() else 0.63
    return 0.0 if combining(letter) else 0.7


def cut_text(text: str, room: float, bold: bool = False) -> str:
    """A text that fits: the middle of a longer one is left out, because names differ at the end."""
    if measure_text(text, bold) <= room + 0.1:
        return text
    keep = len(text) - 1
    while keep > 1:
        head, tail = (keep + 1) // 2, keep // 2
        shown = f"{text[:head].rstrip()}…{text[-tail:].lstrip()}"
        if (width := measure_text(shown, bold)) <= room:
            return shown
        keep = min(keep - 1, int(keep * room / width) + 1)
    return f"{text[:1]}…"


def wrap_text(text: str, room: float, bold: bool = False) -> list[str]:
    """The lines of a text; a word that is longer than a line is cut."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if measure_text(longer, bold) <= room:
            lines[-1] = longer
        elif lines[-1]:
            lines.append(cut_text(word, room, bold))
        else:
            lines[-1] = cut_text(word, room, bold)
    return lines
