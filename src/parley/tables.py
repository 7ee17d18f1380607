"""Tables as text, markdown, LaTeX, CSV and HTML: one content, five faces."""

from __future__ import annotations

import csv
import html
import io
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from parley.errors import unknown

FORMATS = ("text", "markdown", "latex", "csv", "html")


@dataclass(frozen=True)
class Table:
    """Rows under a header; numbers come as text, already rounded."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1  # how many columns are words, and stand at the left
    note: str = ""  # lines that belong to the table; every form but CSV carries them

    def render(self, form: str = "text") -> str:
        match form:
            case "text":
                return self._text()
            case "markdown":
                marks = [":--" if at < self.left else "--:" for at in range(len(self.header))]
                lines = [
                    self.header,
                    marks,
                    *[[cell.replace("|", "\\|") for cell in row] for row in self.rows],
                ]
                body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
                return body + "".join(f"\n\n{line}" for line in self.note.splitlines())
            case "latex":
                return self._latex()
            case "csv":
                out = io.StringIO()
                csv.writer(out, lineterminator="\n").writerows([self.header, *self.rows])
                return out.getvalue().rstrip("\n")
            case "html":
                return self._html()
        raise unknown("format", form, FORMATS)

    def __str__(self) -> str:
        return self._text()

    def _repr_html_(self) -> str:
        return self._html()

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


def plural(count: int, one: str, many: str = "") -> str:
    """A number of things in words."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def empty_table(why: str) -> Table:
    """What stands in place of a part that a run has not."""
    return Table([why], [])


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
