"""Tables as text, markdown, LaTeX and CSV; numbers and short texts for people."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import TypeVar

from parley.errors import unknown_name

FORMATS = ("text", "markdown", "latex", "csv")
# what stays together when a line is wrapped: a gap, a character that is a word, other words
WORDS = re.compile(
    r"\s+|[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]"
    r"|[^\s|\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]+\|?|\|"
)
GAP = "  "  # between two columns
NARROWEST = 12  # the minimum width of a column of words
# cells that a spreadsheet would read as a formula, and numbers, which are no formulas
FORMULA = re.compile(r"\s*[=+\-@]")
NUMBER = re.compile(r"[-+]?[\d.,]*(?:[eE][-+]?\d+)?%?(?: \([-+\d.,% to–]*\))?")
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Table:
    """Rows under a header; numbers come as text, already rounded."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1  # how many columns are words and left-aligned
    note: str = ""  # lines below the table; every format except CSV has them
    title: str = ""  # every format except CSV has it
    drawings: Sequence[str] = ()  # one at the end of each row; only in text, and only if they fit
    # columns that text drops if the table is too wide, each with its line of the note
    optional: Mapping[str, str] = field(default_factory=dict)

    def render(self, form: str = "text", width: int | None = None) -> str:
        """The table in one of `FORMATS`. Control characters cannot reach the terminal, no cell of a
        CSV file is a formula, and hidden characters are always shown. `width` is the maximum width
        of text."""
        match form:
            case "text":
                return self._visible()._text(width)
            case "markdown":
                return self._visible()._markdown()
            case "latex":
                return self._visible()._latex()
            case "csv":
                out = io.StringIO()
                lines = [[to_csv_cell(cell) for cell in line] for line in (self.header, *self.rows)]
                csv.writer(out, lineterminator="\n").writerows(lines)
                return out.getvalue().rstrip("\n")
        raise unknown_name("format", form, FORMATS)

    def __str__(self) -> str:
        return self.render(width=terminal_width())

    def _visible(self) -> Table:
        """The same table without any character that acts."""

        def clean(line: Sequence[str]) -> list[str]:
            return [make_visible(cell).replace("\n", "␊") for cell in line]

        return replace(
            self,
            header=clean(self.header),
            rows=[clean(row) for row in self.rows],
            note=make_visible(self.note),
            title=make_visible(self.title),
        )

    def _markdown(self) -> str:
        marks = [":--" if at < self.left else "--:" for at in range(len(self.header))]
        rows = [[cell.replace("|", "\\|") for cell in row] for row in self.rows]
        body = "\n".join(f"| {' | '.join(line)} |" for line in [self.header, marks, *rows])
        title = f"**{self.title}**\n\n" if self.title else ""
        notes = [f"\\{line}" if line[:1] == "*" else line for line in self.note.splitlines()]
        return title + body + "".join(f"\n\n{line}" for line in notes)

    def _text(self, width: int | None) -> str:
        fitted = self if width is None else self._without_what_is_too_wide(width)
        text = "\n\n".join(fitted._column_groups(width))
        title, note = (break_lines(words, width) for words in (fitted.title, fitted.note))
        return "\n\n".join(filter(None, [title, text, note]))

    def _without_what_is_too_wide(self, width: int) -> Table:
        """The same table without drawings, then without optional columns, until it fits."""
        table = self
        if table.drawings and table._total_width() > width:
            table = replace(table, drawings=())
        for name, explained in table.optional.items():
            if table._total_width() > width and name in table.header:
                at = list(table.header).index(name)
                rows = [[*row[:at], *row[at + 1 :]] for row in table.rows]
                header = [*table.header[:at], *table.header[at + 1 :]]
                note = "\n".join(line for line in table.note.splitlines() if line != explained)
                table = replace(table, header=header, rows=rows, note=note)
        return table

    def _column_widths(self) -> list[int]:
        lines = [self.header, *self.rows]
        return [max(text_width(line[at]) for line in lines) for at in range(len(self.header))]

    def _total_width(self) -> int:
        drawn = [max(map(text_width, self.drawings))] if self.drawings else []
        widths = [*self._column_widths(), *drawn]
        return sum(widths) + len(GAP) * (len(widths) - 1)

    def _column_groups(self, width: int | None) -> list[str]:
        """The table as text; if it is too wide, the other columns follow below, after the first
        ones again."""
        widths = self._column_widths()
        first, groups = list(range(self.left)), list[list[int]]([[]])
        if width is not None:
            self._narrow_words(widths, width)
        for at in range(self.left, len(widths)):
            columns = [*first, *groups[-1], at]
            taken = sum(widths[each] + len(GAP) for each in columns) - len(GAP)
            if width is not None and groups[-1] and taken > width:
                groups.append([])
            groups[-1].append(at)
        return [self._lay_out([*first, *group], widths) for group in groups]

    def _narrow_words(self, widths: list[int], width: int) -> None:
        """Narrow the widest column of words if there is no room for a column of numbers."""
        numbers = [max(widths[self.left :]) + len(GAP)] if widths[self.left :] else []
        taken = sum(widths[: self.left]) + len(GAP) * (self.left - 1) + sum(numbers)
        if taken > width and self.left:
            widest = max(range(self.left), key=lambda at: widths[at])
            widths[widest] = max(NARROWEST, widths[widest] - (taken - width))

    def _lay_out(self, columns: Sequence[int], widths: Sequence[int]) -> str:
        """Some columns as text; cells that are too long are wrapped."""

        def lines(row: Sequence[str], drawing: str = "") -> list[str]:
            cells = [break_cell(row[at], widths[at]) for at in columns]
            return [
                GAP.join(
                    [
                        *(
                            pad_cell(cell[n] if n < len(cell) else "", widths[at], at < self.left)
                            for at, cell in zip(columns, cells, strict=True)
                        ),
                        "" if n else drawing,
                    ]
                ).rstrip()
                for n in range(max(map(len, cells)))
            ]

        drawings = self.drawings or [""] * len(self.rows)
        rule = GAP.join("─" * widths[at] for at in columns)
        body = [
            line
            for row, drawing in zip(self.rows, drawings, strict=True)
            for line in lines(row, drawing)
        ]
        return "\n".join([*lines(self.header), rule, *body])

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
        title = [f"% {self.title}"] if self.title else []
        table = [
            *title,
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join([*table, *notes])


def terminal_width() -> int | None:
    """The width of the terminal; None if the output goes to a file or a pipe and `COLUMNS` is not
    set."""
    if not (os.environ.get("COLUMNS") or sys.stdout.isatty()):
        return None
    return shutil.get_terminal_size().columns


def break_paragraph(paragraph: str, room: int) -> list[str]:
    """Wrap a paragraph: between words, between characters that are words (Chinese), after "|", or
    inside a word that is too long."""
    lines, line, taken = [], "", 0
    for word in WORDS.findall(paragraph):
        if taken + text_width(word) > room:
            if line.strip():
                lines.append(line.rstrip())
            line, taken = "", 0
            if word.isspace():
                continue
        while text_width(word) > room:
            end = next(at for at in range(len(word), 0, -1) if text_width(word[:at]) <= room)
            lines.append(word[:end])
            word = word[end:]
        line, taken = line + word, taken + text_width(word)
    return [*lines, line]


def break_cell(text: str, width: int) -> list[str]:
    """The lines of a cell; one if it fits its column."""
    return [text] if text_width(text) <= width else break_paragraph(text, width)


def break_lines(text: str, width: int | None) -> str:
    """Wrap the lines of a text that are too long."""
    if width is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in break_paragraph(line, width))


def text_width(text: str) -> int:
    """The width of a text on a terminal."""
    return sum(2 if unicodedata.east_asian_width(mark) in "WF" else 1 for mark in text)


def pad_cell(text: str, width: int, left: bool) -> str:
    """A cell padded to the width of its column."""
    space = " " * (width - text_width(text))
    return text + space if left else space + text


def format_number(value: float | None, digits: int = 2) -> str:
    """A number for a table, rounded half up as in the papers; a missing one is a dash, never 0."""
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
    """The rows of a table from cells of (first columns of the row, column, text). Rows are in the
    order of their first cells, and a missing cell is a dash."""
    rows: dict[tuple[str, ...], dict[K, str]] = {}
    for row, column, text in cells:
        rows.setdefault(row, {})[column] = text
    return [[*row, *(by.get(column, "–") for column in columns)] for row, by in rows.items()]


def plural(count: int, one: str, many: str = "") -> str:
    """A count with its noun: `1 call`, `2 calls`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def format_signed(value: float | None, digits: int = 2) -> str:
    """A number with its sign."""
    text = format_number(value, digits)
    return text if value is None or text.startswith("-") else f"+{text}"


def shorten(value: object, most: int = 80) -> str:
    """A value for a message, shortened."""
    try:
        words = value if isinstance(value, str) else repr(value)
    # an int that is too long to print, a list that is nested too deeply
    except (ValueError, RecursionError):
        words = "a value that cannot be printed"
    return words if len(words) <= most else words[: most - 1] + "…"


def format_duration(seconds: float) -> str:
    """A time for people, in one unit or two: `340 ms`, `4.2 s`, `1 min 30 s`, `2 h 5 min`."""
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    large, small, (count, rest) = "min", "s", divmod(round(seconds), 60)
    if count >= 60:
        large, small, (count, rest) = "h", "min", divmod(round(seconds / 60), 60)
        if count >= 24:
            large, small, (count, rest) = "d", "h", divmod(round(seconds / 3_600), 24)
    return f"{count} {large}" + (f" {rest} {small}" if rest else "")


def format_item_count(count: int) -> str:
    """A number of items: `1 item`, `2 items`."""
    return "1 item" if count == 1 else f"{count} items"


def round_half_up(value: float | None, digits: int = 2) -> str:
    """A number as the papers print it: rounded half up, and a dash if it is missing."""
    if value is None:
        return "-"
    clean = Decimal(f"{value:.{digits + 8}f}")  # 8.265 is a little less than that in binary
    # and no minus before a zero
    return f"{clean.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) + 0:f}"


def to_csv_cell(text: str) -> str:
    """A cell of a CSV file: hidden characters are shown, and text that a spreadsheet would read as
    a formula gets an apostrophe. Numbers stay as they are."""
    text = show_hidden(text.replace("\r\n", "\n").replace("\r", "\n"))
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text


def make_visible(text: str) -> str:
    """Replace control characters, characters that change the writing direction and invisible ones
    by visible signs."""
    text = show_invisible(text)
    if text.isprintable():
        return text
    return "".join(map(make_character_visible, text.replace("\r\n", "\n").replace("\t", "    ")))


def make_character_visible(character: str) -> str:
    """A character, or a visible sign for it."""
    if character == "\n" or unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp"):
        return character
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else f"<U+{code:04X}>"


# A text can contain characters that people and models read differently: U+202E reverses letters,
# U+200B splits a word for a model but not for a person.
# Directions (U+061C, U+200E, U+202A…), spaces and joiners without a width, soft hyphens, byte order
# marks, annotations, tags, and letters and marks that are drawn as nothing. Signs of numbers and
# the like, which are of the same category but can be seen, are not among them.
HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
# Scripts whose letters join, or whose marks combine: Arabic to N'Ko, those of India, Myanmar,
# Khmer, Mongolian, and those of their families.
JOINING = (
    "\u0600-\u07ff\u0840-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\u1900-\u1cff\ua840-\ua87f"
    "\ua8e0-\ua9df\uaa60-\uaa7f\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f"
)
# marks after which a joiner may stand at the end of a word
VIRAMAS = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u1039\u103a\u17d2"
PICTURES = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001fbff"
)
NEEDED = re.compile(
    f"(?<=[{JOINING}])[\u200c\u200d](?=[{JOINING}])"
    f"|(?<=[{VIRAMAS}])[\u200c\u200d]"
    f"|(?<=[{PICTURES}\ufe0f])\u200d(?=[{PICTURES}])"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180e]"  # Mongolian letters have variants
    "|(?<=\U0001f3f4)[\U000e0020-\U000e007e]+\U000e007f"  # flags of England, Scotland, Wales
)


# control characters but tabs and new lines, separators of lines and paragraphs, lone surrogates
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def show_hidden(text: str) -> str:
    """Replace control characters and invisible ones by visible signs; tabs and new lines stay."""
    shown = CONTROLS.sub(lambda found: make_character_visible(found[0]), text.replace("\r\n", "\n"))
    return show_invisible(shown)


def show_invisible(text: str) -> str:
    """Replace every invisible character that no script or emoji needs by its code, as in <U+202E>.
    Judges read texts like this, so a change here would change what recorded runs asked them."""
    if text.isascii() or not HIDDEN.search(text):
        return text
    needed = {at for found in NEEDED.finditer(text) for at in range(*found.span())}
    return HIDDEN.sub(
        lambda found: found[0] if found.start() in needed else f"<U+{ord(found[0]):04X}>", text
    )
