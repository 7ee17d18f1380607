"""Hidden characters: shown where people and judges read, kept where scripts and emoji need them."""

import asyncio
import csv
import html
import io
from dataclasses import dataclass

import pytest

from parley import Metric, Role, Task
from parley.match.match import Match
from parley.participants.python import Python
from parley.report.notebook_table import for_notebook
from parley.rules.pool import Seat
from parley.tables import Table, make_visible, show_hidden, show_invisible, to_csv_cell
from parley.testing.by_hand import QUOTATION_KEY

SHOWN = {
    "safe\u202etxt.exe": "safe<U+202E>txt.exe",
    "cl\u200baude": "cl<U+200B>aude",
    "cl\u200daude": "cl<U+200D>aude",
    "a\u200c\u200cb": "a<U+200C><U+200C>b",
    "\ufeffanna": "<U+FEFF>anna",
    "so\u00adft": "so<U+00AD>ft",
    "\u2066x\u2069": "<U+2066>x<U+2069>",
    "\u05d0\u200f!": "\u05d0<U+200F>!",
    "hi\U000e0041\U000e0042": "hi<U+E0041><U+E0042>",
    "\u3164": "<U+3164>",
    "خو\u200c\u200cب": "خو<U+200C><U+200C>ب",  # one is enough in any script
    "\U0001f600\u200dx": "\U0001f600<U+200D>x",
}
KEPT = [
    "می\u200cخواهم",  # Persian
    "क्\u200dष",  # Devanagari, a half form
    "ශ්\u200dරී",  # Sinhala
    "क्\u200d ",  # at the end of a word
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family
    "\U0001f3f3\ufe0f\u200d\U0001f308",  # a flag
    "\U0001f469\U0001f3fd\u200d\U0001f680",  # with the tone of a skin
    "\u2764\ufe0f\u200d\U0001f525",
    "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",  # England
    "\u0600\u0661",  # a sign of numbers, which can be seen
    "plain, Ünïcode, 中文, עברית, العربية, ไทย",
]


@pytest.mark.parametrize(("text", "shown"), SHOWN.items(), ids=map(ascii, SHOWN))
def test_what_cannot_be_seen_is_shown_by_its_number(text, shown):
    assert show_hidden(text) == shown
    assert make_visible(text) == shown
    table = Table([text], [[text]])
    assert text not in "".join(table.render(form) for form in ("text", "markdown", "csv"))
    assert text not in for_notebook(table)._repr_html_()


@pytest.mark.parametrize(
    ("text", "shown"),
    {
        "\x1b[31mred\x08\x00\x7f": "␛[31mred␈␀␡",
        "a\x85b\u2028c\u2029": "a<U+0085>b<U+2028>c<U+2029>",
        "lone\rreturn\r\nend\tof\nline": "lone␍return\nend\tof\nline",
        "\u200b\x1b": "<U+200B>␛",
    }.items(),
    ids=ascii,
)
def test_control_characters_are_shown_as_signs_and_lines_and_tabs_stay(text, shown):
    assert show_hidden(text) == shown
    assert html.escape(shown) in for_notebook(Table(["a"], [[text]]))._repr_html_()


def test_judges_read_control_characters_as_they_are():
    # what a judge reads is part of the record, which is replayed
    assert show_invisible("\x1b\x85\u2028\u200b") == "\x1b\x85\u2028<U+200B>"


@pytest.mark.parametrize("text", KEPT, ids=ascii)
def test_joiners_stay_where_scripts_and_emoji_need_them(text):
    assert show_hidden(text) == text
    assert make_visible(text) == text


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+cmd|' /C calc'!A0", "-anna", "@SUM(A1)", "-1+1", "\t=1", "\r=1", " =1", "+a", "--1"],
)
def test_a_text_that_a_spreadsheet_would_take_for_a_formula_is_none_in_csv(text):
    assert to_csv_cell(text) == f"'{text}".replace("\r", "\n")
    ((header,), (cell,)) = csv.reader(io.StringIO(Table([text], [[text]]).render("csv")))
    assert header[0] == cell[0] == "'"


@pytest.mark.parametrize(
    "text",
    [
        "-1",
        "+0.25",
        "-1.5e-07",
        "1",
        "-",
        "",
        "–",
        "-0.12 (-0.30 to 0.06)",
        "+1,234.5",
        "-12%",
        "a-b",
    ],
)
def test_numbers_stay_numbers_in_csv(text):
    assert to_csv_cell(text) == text


@dataclass(frozen=True)
class Judged(Task):
    """A speaker is heard by a listener, and judged."""

    roles = {"speaker": Role(), "listener": Role(), "judge": Role(instrument=True)}

    async def play(self, referee, speaker, listener, judge):
        said = await referee.ask(speaker, "Speak.")
        referee.tell(listener, f"It was said: {said}")
        await referee.ask([listener], "Well?")
        await referee.ask(judge, f"Judge this: {said}")
        return {speaker: 1, listener: 1}

    def metrics(self, seats):
        return [Metric("points", 0, 1, 1)]


def read_replies():
    """What the listener and the judge read of a reply with hidden characters."""
    read = {}

    def listen(view):
        read[view.seat.role] = view.text
        return "fine"

    cast = {
        Seat(role): Python(
            listen if role != "speaker" else lambda view: "s\u202eafe\u200b", {}, role
        )
        for role in Judged.roles
    }
    asyncio.run(Match(Judged(), cast, quotation_key=QUOTATION_KEY).play())
    return read


def test_judges_are_shown_hidden_characters_and_contestants_read_what_was_said():
    read = read_replies()
    assert "s\u202eafe\u200b" in read["listener"]
    assert "s<U+202E>afe<U+200B>" in read["judge"]
