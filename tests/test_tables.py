"""Tables as text: they fit the terminal, and what does not fit is dropped in a fixed order."""

from dataclasses import replace

import pytest

from parley import tables
from parley.tables import Table, break_paragraph, format_duration, terminal_width, text_width

WIDE = Table(
    ["model", "mean", "sd", "n"],
    [["first", "1.00", "0.10", "4"], ["second", "2.00", "0.20", "4"]],
    note="a note that is longer than the table and so has to be broken",
    title="a game: score; higher is better; n = 4 matches each",
    drawings=["├─●─┤     ", "     ├─●─┤"],
    optional={"sd": "sd: how far they scatter"},
)


@pytest.mark.parametrize("width", [80, 34, 30, 20, 14])
def test_a_text_stays_within_its_width(width):
    lines = WIDE.render(width=width).splitlines()
    assert max(map(text_width, lines)) <= width
    assert all(any(name in line for line in lines) for name in ("first", "second", "2.00"))


def test_drawings_go_first_then_optional_columns_then_the_table_goes_on_below():
    assert "●" in WIDE.render()
    assert "●" in WIDE.render(width=34)
    middle, narrow, least = (WIDE.render(width=width) for width in (30, 20, 14))
    assert "●" not in middle
    assert "0.20" in middle
    assert "0.20" not in narrow
    assert narrow.count("second") == 1
    explained = replace(WIDE, note="sd: how far they scatter\nn: how many")
    assert "how far they scatter" in explained.render(width=30)
    assert "how far they scatter" not in explained.render(width=20)
    assert "n: how many" in explained.render(width=20)
    assert least.count("second") == 2  # means above, n below, each with its model


def test_drawings_are_for_text_only():
    for form in ("markdown", "latex", "csv"):
        assert "●" not in WIDE.render(form)


def test_a_title_stands_in_every_form_for_people():
    for form in ("text", "markdown", "latex"):
        assert WIDE.title in WIDE.render(form)
    assert WIDE.title not in WIDE.render("csv")


def test_the_width_is_known_only_on_a_terminal(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(tables.sys.stdout, "isatty", lambda: False, raising=False)
    assert terminal_width() is None
    monkeypatch.setenv("COLUMNS", "33")
    assert terminal_width() == 33
    assert "●" not in str(Table(WIDE.header, WIDE.rows, drawings=["●" * 20] * 2))


def test_lines_break_between_words_and_after_bars():
    assert break_paragraph("one two three", 8) == ["one two", "three"]
    assert break_paragraph("a:1|bb:22|c:3", 8) == ["a:1|", "bb:22|", "c:3"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.34, "340 ms"),
        (0.9996, "1.0 s"),
        (4.24, "4.2 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (90, "1 min 30 s"),
        (3_599.6, "1 h"),
        (9_000, "2 h 30 min"),
        (86_399, "1 d"),
        (3e5, "3 d 11 h"),
    ],
)
def test_durations_are_for_people(seconds, text):
    assert format_duration(seconds) == text
