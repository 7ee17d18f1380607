"""Tables as text, markdown, LaTeX, CSV and HTML: one content, five faces."""

from __future__ import annotations

import csv
import html
import io
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import TypeVar

from parley.errors import unknown_name

FORMATS = ("text", "markdown", "latex", "csv", "html")
JOINERS = "\u200c\u200d"  # which scripts and pictures need; they only join their neighbours
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Table:
    """Rows under a header; numbers come as text, already rounded."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1  # how many columns are words, and stand at the left
    note: str = ""  # lines that belong to the table; every form but CSV carries them

    def render(self, form: str = "text") -> str:
        """The table in one of its forms. In those that people read on a terminal, nothing in it
        can steer the terminal."""
        match form:
            case "text":
                return self._visible()._text()
            case "markdown":
                return self._visible()._markdown()
            case "latex":
                return self._visible()._latex()
            case "csv":
                out = io.StringIO()
                csv.writer(out, lineterminator="\n").writerows([self.header, *self.rows])
                return out.getvalue().rstrip("\n")
            case "html":
                return self._html()
        raise unknown_name("format", form, FORMATS)

    def __str__(self) -> str:
        return self.render()

    def _repr_html_(self) -> str:
        return self._html()

    def _visible(self) -> Table:
        """The same table without any character that acts."""

        def clean(line: Sequence[str]) -> list[str]:
            return [make_visible(cell).replace("\n", "␊") for cell in line]

        return replace(
            self,
            header=clean(self.header),
            rows=[clean(row) for row in self.rows],
            note=make_visible(self.note),
        )

    def _markdown(self) -> str:
        marks = [":--" if at < self.left else "--:" for at in range(len(self.header))]
        rows = [[cell.replace("|", "\\|") for cell in row] for row in self.rows]
        body = "\n".join(f"| {' | '.join(line)} |" for line in [self.header, marks, *rows])
        return body + "".join(f"\n\n{line}" for line in self.note.splitlines())

    def _text(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(text_width(line[at]) for line in lines) for at in range(len(self.header))]

        def aligned(line: Sequence[str]) -> str:
            cells = [
                pad_cell(cell, width, at < self.left)
                for at, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            return "  ".join(cells).rstrip()

        rule = "  ".join("─" * width for width in widths)
        return "\n".join(
            [
                aligned(self.header),
                rule,
                *map(aligned, self.rows),
                *([f"\n{self.note}"] if self.note else []),
            ]
        )

    def _latex(self) -> str:
        def escaped(cell: str) -> str:
            for mark in "&%$#_{}":
                cell = cell.replace(mark, f"\\{mark}")
            for mark, written in {
                "↓": r"$\downarrow$",
                "→": r"$\rightarrow$",
                "−": "$-$",
                "–": "--",
                "<": "$<$",
            }.items():
                cell = cell.replace(mark, written)
            return cell

        columns = "l" * self.left + "r" * (len(self.header) - self.left)
        body = [" & ".join(map(escaped, row)) + r" \\" for row in self.rows]
        head = " & ".join(map(escaped, self.header)) + r" \\"
        notes = [f"% {line}" for line in self.note.splitlines()]
        table = [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join([*table, *notes])

    def _html(self) -> str:
        def line(cells: Sequence[str], tag: str) -> str:
            return (
                "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
            )

        notes = "".join(f"<p>{html.escape(line)}</p>" for line in self.note.splitlines())
        return (
            f"<table>{line(self.header, 'th')}{''.join(line(row, 'td') for row in self.rows)}</"
            f"table>{notes}"
        )


def text_width(text: str) -> int:
    """How many columns a text takes on a terminal."""
    return sum(2 if unicodedata.east_asian_width(mark) in "WF" else 1 for mark in text)


def pad_cell(text: str, width: int, left: bool) -> str:
    """A cell filled up to its column's width."""
    space = " " * (width - text_width(text))
    return text + space if left else space + text


def format_number(value: float | None, digits: int = 2) -> str:
    """A number for a table, half rounded up as the papers do; unknown is a dash, never zero."""
    return "–" if value is None else round_half_up(value, digits)


def draw_interval(
    low: float | None,
    mean: float | None,
    high: float | None,
    span: tuple[float, float],
    width: int = 24,
) -> str:
    """An interval drawn in one line of text, on a scale shared by all rows."""
    if mean is None or span[1] <= span[0]:
        return ""

    def place(value: float) -> int:
        return round((value - span[0]) / (span[1] - span[0]) * (width - 1))

    line = [" "] * width
    if low is not None and high is not None:
        for at in range(place(low), place(high) + 1):
            line[at] = "─"
        line[place(low)], line[place(high)] = "├", "┤"
    line[place(mean)] = "●"
    return "".join(line)


def format_interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """An interval as text."""
    return (
        "–"
        if low is None or high is None
        else f"{format_number(low, digits)} to {format_number(high, digits)}"
    )


def format_estimate(
    value: float | None, low: float | None, high: float | None, digits: int = 2
) -> str:
    """A number with its interval in brackets, in one cell."""
    return f"{format_number(value, digits)} ({format_interval(low, high, digits)})"


def format_p_value(value: float | None) -> str:
    """A p-value as text."""
    return "–" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"


def pivot(cells: Iterable[tuple[tuple[str, ...], K, str]], columns: Sequence[K]) -> list[list[str]]:
    """The rows of a table from its cells, which have a row's first columns, a column and a text.
    Rows come in the order of their first cells, and a missing cell is a dash."""
    rows: dict[tuple[str, ...], dict[K, str]] = {}
    for row, column, text in cells:
        rows.setdefault(row, {})[column] = text
    return [[*row, *(by.get(column, "–") for column in columns)] for row, by in rows.items()]


def plural(count: int, one: str, many: str = "") -> str:
    """A number of things in words."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def format_signed(value: float | None, digits: int = 2) -> str:
    """A difference as text."""
    text = format_number(value, digits)
    return text if value is None or text.startswith("-") else f"+{text}"


def shorten(value: object, most: int = 80) -> str:
    """A value as it may stand in a message: short."""
    try:
        words = value if isinstance(value, str) else repr(value)
    # a whole number too long to print, a list of lists of lists
    except (ValueError, RecursionError):
        words = "something that cannot be printed"
    return words if len(words) <= most else words[: most - 1] + "…"


def format_item_count(count: int) -> str:
    """So many items, in words."""
    return "1 item" if count == 1 else f"{count} items"


def round_half_up(value: float | None, digits: int = 2) -> str:
    """A number as the paper prints it: half is rounded up, and what was not played is a dash."""
    if value is None:
        return "-"
    clean = Decimal(f"{value:.{digits + 8}f}")  # 8.265 is a little less than that in binary
    # and no minus before a zero
    return f"{clean.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) + 0:f}"


def make_visible(text: str) -> str:
    """A text in which everything that steers a terminal, or turns the direction of writing, is a
    sign that one can see."""
    if text.isprintable():
        return text
    return "".join(map(make_character_visible, text.replace("\r\n", "\n").replace("\t", "    ")))


def make_character_visible(character: str) -> str:
    """A character, or the sign that stands for it."""
    if (
        character == "\n"
        or character in JOINERS
        or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ):
        return character
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else f"<U+{code:04X}>"
