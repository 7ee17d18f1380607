"""Turns a figure of a page into one SVG with fixed sizes and colours, for papers.

Figures on pages are HTML around small drawings that stretch with the page. Here they are laid out
once: tables, legends, axis titles and panels become text and lines at fixed places. The style sheet
is the one of the pages, in its light form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from html.parser import HTMLParser
from unicodedata import combining, east_asian_width

from parley.report.style_rules import Element, compute_style, read_length, root_style
from parley.report.svg_shapes import Place, Style, draw_children, weigh

WIDTH = 720  # pixels; a table with many columns is wider
MARGIN = 12
LINE = 1.4  # the height of a line of text, in font sizes
PLOT = 260  # pixels: the least width of a column that is drawn
GAP = 8  # pixels around the words of a cell
PANELS = 3  # small figures in a row
FONTS = "Helvetica, Arial, Liberation Sans, DejaVu Sans, sans-serif"
VOID = frozenset(["br", "hr", "img", "input", "meta", "col"])
BLOCKS = frozenset(["div", "p", "ul", "ol", "figure", "section", "h2", "h3", "table", "figcaption"])
HIDDEN = frozenset(["vh", "visually-hidden"])
# widths of the printable ASCII letters of Helvetica, in thousandths of the font size
HELVETICA = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
)  # fmt: skip


def make_svg(body: str, title: str, words: str = "") -> str:
    """A figure as a file: `body` is its HTML, `title` and `words` describe it."""
    root = parse_html(body)
    drawing = Drawing()
    width = max(float(WIDTH), measure_block(root, root_style()) + 2 * MARGIN)
    inside = width - 2 * MARGIN
    height = drawing.lay_children(root, root_style(), MARGIN, MARGIN, inside) + 2 * MARGIN
    described = f"<title>{escape(title)}</title>" + (
        f"<desc>{escape(words)}</desc>" if words else ""
    )
    size = f'width="{width:g}" height="{height:.0f}" viewBox="0 0 {width:g} {height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONTS}">{described}'
        f'<rect width="{width:g}" height="{height:.0f}" fill="#ffffff"/>'
        f"{''.join(drawing.parts)}</svg>\n"
    )


class TreeBuilder(HTMLParser):
    """Builds elements from the HTML of a figure."""

    def __init__(self) -> None:
        super().__init__()
        self.root = self.at = Element("main")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs}, self.at)
        self.at.children.append(made)
        if tag not in VOID:
            self.at = made

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.at.children.append(Element(tag, {name: value or "" for name, value in attrs}, self.at))

    def handle_endtag(self, tag: str) -> None:
        if self.at.tag == tag and self.at.parent is not None:
            self.at = self.at.parent

    def handle_data(self, data: str) -> None:
        self.at.children.append(data)


def parse_html(body: str) -> Element:
    builder = TreeBuilder()
    builder.feed(body)
    builder.close()
    return builder.root


# Text.


@dataclass(frozen=True)
class Run:
    """A piece of a line: words, or a small drawing."""

    style: Style
    text: str = ""
    drawing: Element | None = None

    @property
    def size(self) -> float:
        return read_length(self.style["font-size"])

    @property
    def width(self) -> float:
        if self.drawing is not None:
            return read_size(self.drawing, self.style, "width", 14.0) + 6
        return measure_text(self.text, self.size, self.style.get("font-weight", "400"))


def measure_text(text: str, size: float, weight: str = "400") -> float:
    """About how wide a text is."""
    total = 0.0
    for letter in text:
        code = ord(letter)
        if 32 <= code < 127:
            total += HELVETICA[code - 32]
        elif not combining(letter):
            total += 1000 if east_asian_width(letter) in "WF" else 600
    return total * size / 1000 * (1.07 if weight >= "600" else 1.02)


def is_hidden(element: Element, style: Style) -> bool:
    """Whether the page shows an element only to screen readers, or not at all."""
    hidden = not HIDDEN.isdisjoint(element.classes) or element.tag in (
        "caption",
        "details",
        "title",
    )
    return hidden or style.get("display") == "none"


def is_stretched(element: Element) -> bool:
    """Whether a drawing takes the width of what it stands in."""
    return element.tag == "svg" and element.attributes.get("width") == "100%"


def list_lines(element: Element, style: Style) -> list[list[Run]]:
    """The words and small drawings of an element, by lines."""
    lines: list[list[Run]] = [[]]
    for child in element.children:
        if isinstance(child, str):
            words = re.sub(r"\s+", " ", child)
            if words.strip() or (words and lines[-1]):
                lines[-1].append(Run(style, words))
            continue
        own = compute_style(child, style)
        if is_hidden(child, own) or is_stretched(child):
            continue
        if child.tag == "br":
            lines.append([])
        elif child.tag == "svg":
            lines[-1].append(Run(own, drawing=child))
        else:
            if child.tag in ("strong", "b"):
                own["font-weight"] = "600"
            inner = list_lines(child, own)
            apart = own.get("display") == "block" or child.tag in BLOCKS
            if apart and lines[-1]:
                lines.append([])
            lines[-1] += inner[0]
            lines += inner[1:]
            if apart:
                lines.append([])
    return [line for line in lines if line] or [[]]


def wrap_lines(lines: Sequence[Sequence[Run]], width: float) -> list[list[Run]]:
    """Lines that fit a width, broken between words."""
    found = list[list[Run]]()
    for line in lines:
        found.append([])
        used = 0.0
        for run in line:
            for piece in re.findall(r"\S+\s*|\s+", run.text) if run.drawing is None else [""]:
                part = replace(run, text=piece)
                if used and used + part.width > width:
                    found.append([])
                    used = 0.0
                found[-1].append(part)
                used += part.width
    return [join_runs(line) for line in found]


def join_runs(line: Sequence[Run]) -> list[Run]:
    """A line with the words of one style together."""
    found = list[Run]()
    for run in line:
        if (
            found
            and run.drawing is None
            and found[-1].drawing is None
            and run.style is found[-1].style
        ):
            found[-1] = replace(run, text=found[-1].text + run.text)
        else:
            found.append(run)
    return found


def measure_line(line: Sequence[Run]) -> float:
    return sum(run.width for run in line)


def measure_height(line: Sequence[Run]) -> float:
    return max((run.size * LINE for run in line), default=0.0)


# Tables.


@dataclass(frozen=True)
class TableCell:
    """A cell of a table with its style and its lines."""

    element: Element
    style: Style
    lines: Sequence[Sequence[Run]]
    span: int = 1
    drawings: tuple[Element, ...] = ()

    @property
    def width(self) -> float:
        """The width that it needs."""
        words = max((measure_line(line) for line in self.lines), default=0.0) + 2 * GAP
        return max(words, PLOT if self.drawings else 0.0)

    @property
    def height(self) -> float:
        drawn = sum(read_size(each, self.style, "height", 16.0) for each in self.drawings)
        words = sum(measure_height(line) for line in self.lines)
        return drawn + words + (0 if self.drawings else GAP)


@dataclass(frozen=True)
class TableRow:
    """A row of a table; `ruled`: a line stands above it."""

    cells: tuple[TableCell, ...]
    ruled: bool

    @property
    def height(self) -> float:
        return max((cell.height for cell in self.cells), default=0.0) + 2


def find_inside(element: Element, tag: str) -> Iterator[Element]:
    """The elements of a type inside another, outermost first."""
    for child in element.elements:
        if child.tag == tag:
            yield child
        else:
            yield from find_inside(child, tag)


def read_table(table: Element, style: Style) -> list[TableRow]:
    rows = list[TableRow]()
    for row in find_inside(table, "tr"):
        parent = row.parent or table
        around = compute_style(row, compute_style(parent, style) if parent is not table else style)
        cells = []
        for cell in row.elements:
            own = compute_style(cell, around)
            if is_hidden(cell, own):
                continue
            drawings = tuple(each for each in find_inside(cell, "svg") if is_stretched(each))
            span = int(cell.attributes.get("colspan", "1"))
            cells.append(TableCell(cell, own, list_lines(cell, own), span, drawings))
        rows.append(TableRow(tuple(cells), parent.tag != "thead" and bool(rows)))
    return rows


def measure_columns(rows: Sequence[TableRow]) -> tuple[list[float], list[bool]]:
    """The widths that columns need, and which of them are drawn."""
    count = max((sum(cell.span for cell in row.cells) for row in rows), default=0)
    widths, drawn = [0.0] * count, [False] * count
    for row in rows:
        at = 0
        for cell in row.cells:
            if cell.span == 1:
                widths[at] = max(widths[at], cell.width)
                drawn[at] = drawn[at] or bool(cell.drawings)
            at += cell.span
    return widths, drawn


def measure_block(element: Element, style: Style) -> float:
    """The least width of an element: that of its widest table."""
    widest = 0.0
    for child in element.elements:
        own = compute_style(child, style)
        if child.tag == "table":
            widest = max(widest, sum(measure_columns(read_table(child, own))[0]))
        elif child.tag != "svg" and not is_hidden(child, own):
            widest = max(widest, measure_block(child, own))
    return widest


# Layout.


@dataclass
class Drawing:
    """The parts of a file, as they are laid out."""

    parts: list[str] = field(default_factory=list)

    def lay_children(
        self, element: Element, style: Style, x: float, y: float, width: float
    ) -> float:
        """Lay out what an element holds, block by block; returns the height."""
        top, words = y, Element(element.tag, dict(element.attributes), element.parent)
        for child in [*element.children, None]:
            block = isinstance(child, Element) and (child.tag in BLOCKS or is_stretched(child))
            if child is not None and not block:
                words.children.append(child)
                continue
            y += self.lay_words(words, style, x, y, width)
            words = Element(element.tag, dict(element.attributes), element.parent)
            if isinstance(child, Element):
                y += self.lay_block(child, style, x, y, width)
        return y - top

    def lay_block(self, element: Element, around: Style, x: float, y: float, width: float) -> float:
        style = compute_style(element, around)
        if is_hidden(element, style):
            return 0.0
        if element.tag == "svg":
            tall = read_size(element, style, "height", 16.0)
            self.draw_svg(element, around, Place(x, y, width, tall))
            return tall
        if element.tag == "table":
            return self.lay_table(element, style, x, y, width)
        if style.get("display") == "grid":
            return self.lay_panels(element, style, x, y, width)
        if style.get("display") in ("flex", "inline-flex"):
            return self.lay_legend(element, style, x, y, width)
        left, right, top, bottom = read_padding(style)
        inner = self.lay_children(element, style, x + left, y + top, width - left - right)
        return inner + top + bottom + (4 if element.tag == "p" else 0)

    def lay_words(self, element: Element, style: Style, x: float, y: float, width: float) -> float:
        """Lay out words, broken into lines."""
        top = y
        for line in wrap_lines(list_lines(element, style), width):
            y += self.lay_line(line, x, y, width, style.get("text-align", "left"))
        return y - top

    def lay_line(
        self, line: Sequence[Run], x: float, y: float, width: float, align: str = "left"
    ) -> float:
        tall, used = measure_height(line), measure_line(line)
        x += {"right": width - used, "center": (width - used) / 2}.get(align, 0.0)
        for run in line:
            if run.drawing is not None:
                size = run.width - 6
                middle = y + (tall - size) / 2
                self.draw_svg(run.drawing, run.style, Place(x, middle, size, size), own=run.style)
            elif run.text.strip():
                base = y + tall / 2 + 0.35 * run.size
                self.parts.append(
                    f'<text x="{x:.1f}" y="{base:.1f}" font-size="{run.size:g}"'
                    f'{weigh(run.style)} fill="{escape(run.style["color"])}" '
                    f'xml:space="preserve">{escape(run.text)}</text>'
                )
            x += run.width
        return tall

    def lay_table(self, table: Element, style: Style, x: float, y: float, width: float) -> float:
        """Lay out a table: drawn columns share what the others leave."""
        rows = read_table(table, style)
        widths, drawn = measure_columns(rows)
        spare = max(0.0, width - sum(widths))
        share = [at for at, is_drawn in enumerate(drawn) if is_drawn] or (
            list(range(1, len(widths))) if "cell" in table_classes(table) else []
        )
        for at in share:
            widths[at] += spare / len(share)
        top = y
        for row in rows:
            if row.ruled and not any("cell" in cell.element.classes for cell in row.cells):
                line = style["--rule"]
                self.parts.append(
                    f'<line x1="{x:.1f}" x2="{x + sum(widths):.1f}" y1="{y:.1f}" y2="{y:.1f}" '
                    f'stroke="{line}"/>'
                )
            left, at = x, 0
            for cell in row.cells:
                wide = sum(widths[at : at + cell.span])
                self.lay_cell(cell, left, y, wide, row.height)
                left, at = left + wide, at + cell.span
            y += row.height
        return y - top + 6

    def lay_cell(self, cell: TableCell, x: float, y: float, width: float, height: float) -> None:
        fill = cell.style.get("background", "")
        if fill.startswith("#") and fill != cell.style["--card"]:
            size = f'width="{width - 2:.1f}" height="{height - 2:.1f}"'
            self.parts.append(f'<rect x="{x + 1:.1f}" y="{y + 1:.1f}" {size} fill="{fill}"/>')
        at = y + (height - cell.height + (0 if cell.drawings else GAP)) / 2
        for drawing in cell.drawings:
            tall = read_size(drawing, cell.style, "height", 16.0)
            around = cell.style
            place = Place(x + 2 * GAP, at, width - 4 * GAP, tall)
            self.draw_svg(drawing, around, place)
            at += tall
        for line in cell.lines:
            align = cell.style.get("text-align", "left")
            at += self.lay_line(line, x + GAP, at, width - 2 * GAP, align)

    def lay_panels(self, element: Element, style: Style, x: float, y: float, width: float) -> float:
        """Lay out small figures in rows."""
        top, panels = y, element.elements
        step = width / min(PANELS, max(1, len(panels)))
        for at in range(0, len(panels), PANELS):
            heights = [
                self.lay_block(panel, style, x + place * step, y, step - 2 * GAP)
                for place, panel in enumerate(panels[at : at + PANELS])
            ]
            y += max(heights) + GAP
        return y - top

    def lay_legend(self, element: Element, style: Style, x: float, y: float, width: float) -> float:
        """Lay out entries beside each other, in as many rows as they need."""
        if element.tag != "ul":
            return self.lay_words(element, style, x, y, width)
        top, left, tall = y + 4, x, 0.0
        y = top
        for entry in element.elements:
            for line in list_lines(entry, compute_style(entry, style)):
                if left > x and left + measure_line(line) > x + width:
                    left, y = x, y + tall
                tall = self.lay_line(line, left, y, width)
                left += measure_line(line) + 2 * GAP
        return y + tall - top + 4

    def draw_svg(
        self, element: Element, around: Style, place: Place, own: Style | None = None
    ) -> None:
        style = own or compute_style(element, around)
        self.parts += draw_children(element, style, place.inside(element))


def table_classes(table: Element) -> set[str]:
    return {name for cell in find_inside(table, "td") for name in cell.classes}


def read_padding(style: Style) -> tuple[float, float, float, float]:
    """Left, right, top and bottom."""
    given = [read_length(each) for each in style.get("padding", "0").split()] or [0.0]
    top, right = given[0], given[1 % len(given)]
    bottom = given[2] if len(given) > 2 else top
    return (given[3] if len(given) > 3 else right), right, top, bottom


def read_size(element: Element, style: Style, name: str, otherwise: float) -> float:
    text = element.attributes.get(name, "") or style.get(name, "")
    return otherwise if not text or text.endswith("%") else read_length(text)
