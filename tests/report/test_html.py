"""The environment of all templates: whatever is shown stays text, without secrets."""

from dataclasses import dataclass
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parley
from parley import Bar, Bars, Metric, Part, Role, Table, Task
from parley.money import Total
from parley.providers import _secrets as secrets
from parley.report.build import build_report
from parley.report.fairness import Fairness
from parley.report.html import environment, render
from parley.report.page import Finding
from parley.report.people import PeopleSaid
from parley.report.run_page import KeyFacts, MainResult, RunHeading, Setup, ShownPart
from parley.results.match_notes import Mark
from parley.results.result import RunResult
from parley.web.run_result import render_so_far

KEY = "kq7Zt2Lw9-4Bn8Rm3Hs6Dy1"
PIECES = (
    "</style>", "</bdi>", "<script>alert(1)</script>", "<!--", "]]>", '"', "'", "&lt;", "&",
    "{{ 7*7 }}", "{% raw %}", "{#", "\u202e", "\u200b", "\x07", KEY, "-3", "word",
)  # fmt: skip


DRAWN = {"svg", "g", "text", "tspan", "title", "desc", "line", "rect", "circle", "path", "polygon"}
DRAWN |= {"polyline", "clippath"}


class Parsed(HTMLParser):
    """The tags with the names of their attributes, and all words. What a drawing consists of
    depends on the width of its words, so only the kinds of its tags are kept."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.kinds, self.depth = [], [], set(), 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.words += [value or "" for _, value in attrs]
        self.depth += tag == "svg"
        self.kinds |= {tag} if self.depth else set()
        if not self.depth:
            self.tags.append((tag, *(name for name, _ in attrs)))

    def handle_endtag(self, tag):
        if not self.depth:
            self.tags.append(f"/{tag}")
        self.depth -= tag == "svg"

    def handle_data(self, data):
        self.words.append(data)

    def handle_comment(self, data):
        self.tags.append("comment")


def pages_of(text):
    """Every section of a page, with this text wherever words can stand."""
    table = Table([text, text], [[text, text]], note=text, title=text)
    bars = Bars(text, text, text, (Bar(text, {text: 2.0, "x": 1.0}, text, "a"),), legend=text)
    part = ShownPart(
        text, "task", text, text, text, [bars], [table], [Table(["a"], [[text]])], text
    )
    main = MainResult(text, [text], [bars], [text], table, [bars], [table])
    facts = KeyFacts(
        [Mark(text, "good", text), Mark(text, "bad")], 1, 2, 3, Total(3, 1, 1), text, True
    )
    heading = RunHeading(text, text, text)
    lines = [text, text]
    fairness = Fairness(
        text, text, table, lines, lines, lines, 4, lines, table, lines, text, table, lines
    )
    setup = Setup(text, text, text, text, text, text, lines, {text: text})
    people = PeopleSaid(text, text, text, table)
    article = {
        "anchor": text, "level": 2, "heading": heading, "main": main, "facts": facts,
        "parts": [part],
    }  # fmt: skip
    yield render("notebook_table.html", container="c", style="p{}", shown=table)
    yield render("run_main.html", **article)
    yield render("part.html", part=part)
    yield render("fairness.html", fairness=fairness)
    yield render("people.html", people=people)
    yield render("setup.html", setup=setup)
    yield render("run_so_far.html", main=main, precision=[bars], is_race=True)
    yield render("live_lead.html", said=text)
    yield render("notebook.html", container="c", style="p{}", **article | {"anchor": ""})
    yield render(
        "run_article.html", anchor=text, run=text, main="", before=[], fairness="", after=[],
        left_out=[text], people="", matches="", setup="",
    )  # fmt: skip
    yield render(
        "page.html", style="p{}", title=text, is_alone=False, words=[text], people=people,
        findings=[Finding(text, text, text, facts.chips)], links={text: text}, comparisons=[],
        runs=[], ids=[text], too_large=text,
    )  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join))
def test_no_words_change_what_a_page_consists_of(text):
    secrets.USED.add(KEY)
    for found, plain in zip(pages_of(text), pages_of("word"), strict=True):
        page = Parsed(found)
        assert page.tags == Parsed(plain).tags
        assert page.kinds <= DRAWN
        words = "".join(page.words)
        assert KEY not in words
        assert not {"\u202e", "\u200b", "\x07"} & set(words)
        if "\u202e" in text:
            assert "<U+202E>" in words
        if "{{ 7*7 }}" in text:
            assert "{{ 7*7 }}" in words


def test_words_between_backticks_are_code_and_nothing_else():
    part = ShownPart("a", "task", "a", "A", f"Use `<b>{KEY}</b>` & go", (), (), (), "")
    secrets.USED.add(KEY)
    assert "Use <code>&lt;b&gt;[key]&lt;/b&gt;</code> &amp; go" in render("part.html", part=part)


def test_objects_are_cleaned_like_words():
    """Such as seats, whose role has the name that a task gave it."""
    secrets.USED.add(KEY)
    template = environment().from_string("{{ thing }} {{ 7 }} {{ 0.5 }} {{ none }}")

    class Thing:
        def __str__(self):
            return f"\u202e{KEY}"

    said = template.render(thing=Thing(), clean=lambda text: secrets.redact(text))
    assert KEY not in said
    assert said.endswith(" 7 0.5 None")


def test_a_figure_that_cannot_be_drawn_is_named():
    broken = Bars("Title", "", "", (Bar("a", {"x": float("nan"), "y": "one"}),))
    part = ShownPart("a", "task", "a", "A", "", [broken], (), (), "")
    page = render("part.html", part=part)
    assert "<figcaption>Title</figcaption>This figure cannot be drawn (" in page


HOSTILE = f"</style></bdi><script>alert(1)</script>{{{{ 7*7 }}}} -3 {KEY}"


@dataclass(frozen=True)
class Odd(Task):
    """Says hostile things wherever a task can."""

    roles = {"players": Role(2)}
    parts = (
        Part(
            "odd",
            HOSTILE,
            tuple[str, ...],
            lambda run: (HOSTILE,),
            tables=lambda found, style: [Table([HOSTILE], [found], note=HOSTILE, title=HOSTILE)],
            rows=lambda found: [{"said": each} for each in found],
            figures=lambda found, style: [
                Bars(HOSTILE, HOSTILE, HOSTILE, (Bar(HOSTILE, {HOSTILE: 1.0}),))
            ],
            words=lambda found, style: HOSTILE,
        ),
    )

    def metrics(self, seats):
        return [Metric(HOSTILE, 0, 10, epsilon=1, unit=HOSTILE)]

    def cautions(self, seats):
        yield HOSTILE

    async def play(self, referee, players):
        referee.note(said=HOSTILE)
        replies = await referee.ask(players, HOSTILE)
        return {seat: float(len(replies[seat]) % 7) for seat in players}


@pytest.fixture(scope="module")
def ref(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    models = {HOSTILE: lambda view: HOSTILE + "\u202e", "b": lambda view: f"```\n{HOSTILE}\n```"}
    found = parley.run(Odd(), models, repeats=3, store=folder, name=HOSTILE)
    assert found.state == "done"
    return found.ref


@pytest.mark.parametrize("task", [Odd, None])
def test_hostile_words_and_keys_stay_text_on_the_page_of_a_run(ref, task, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", KEY)
    monkeypatch.setattr("parley.report.run_page.describe_task", lambda name: HOSTILE)
    result = RunResult(ref, task=task)
    shown = [build_report([ref], task=task).render("html"), render_so_far(ref)]
    for text in (*shown, parley.Result(ref)._repr_html_()):
        page = Parsed(text)
        assert "script" not in {tag[0] for tag in page.tags}
        assert page.kinds <= DRAWN
        assert text.count("</style>") <= 1
        assert KEY not in "".join(page.words)
        assert "\u202e" not in text
        assert "{{ 7*7 }}" in text
    assert result.state == "done"
    stored = "odd (as stored in the file)" in shown[0]
    assert stored == (task is None)


def test_a_sentence_that_several_figures_need_stands_once_below_them():
    figures = [Bars(title, "", "", (), legend="Bars grow to the right.") for title in "abc"]
    part = ShownPart("a", "task", "a", "A", "", figures, (), (), "")
    main = MainResult("", [], [], [], None, [], [])
    for page in (
        render("part.html", part=part),
        render("run_so_far.html", main=main, precision=figures, is_race=True),
    ):
        assert page.count("<figcaption>") == 3
        assert page.count("Bars grow to the right.") == 1
