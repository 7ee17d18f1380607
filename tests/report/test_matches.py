"""The matches on a page: which ones are shown, and what is said about the others."""

import re

import pytest
from click.testing import CliRunner

from parley import Question, UsageError, run
from parley.cli.report import command
from parley.report.build import Report, build_report
from parley.report.html import read_style
from parley.report.notable import parse_match_limit
from parley.report.page import FRAME
from parley.report.page_options import PageOptions
from parley.report.run_page import render_run
from parley.results.compared_runs import (
    ComparedRuns,
    ComparisonOptions,
    ComparisonPart,
    ComparisonResult,
)
from parley.results.part import no_rows

ITEMS = [
    Question(f"q{number}", f"Which sum is right for number {number}?", "B", ("One", "Two"))
    for number in range(6)
]


def mostly_right(view):
    return "A" if "number 4" in view.text else "B"


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    models = {"good": mostly_right, "bad": lambda view: "A"}
    return run("qa", shots=0, models=models, items=ITEMS, store=tmp_path_factory.mktemp("qa"))


def shown(page):
    """The numbers of the matches on a page, in their order."""
    return [int(number) for number in re.findall(r'<details id="s\d+-matches-(\d+)">', page)]


def page_of(found, folder, **more):
    return found.report(folder / "page.html", audit=False, **more).read_text(encoding="utf-8")


def test_the_leaders_worst_match_is_worth_reading(found, tmp_path):
    page = page_of(found, tmp_path)
    said = re.sub("<[^>]*>", "", page)
    assert re.search(
        r"Match \d+: good 0\.00.*(farthest from|worst match).*: good: accuracy 0\.00", said
    )
    assert "Which sum is right for number 4?" in page  # what the referee asked
    assert f"{len(shown(page))} of 12 matches are shown here." in said
    assert f"parley show {found.ref.id} --matches lists all matches" in said


def test_no_matches_and_all_matches(found, tmp_path):
    page = page_of(found, tmp_path, matches="none")
    assert shown(page) == []
    assert "0 of 12 matches are shown here." in page
    page = page_of(found, tmp_path, matches=12)
    assert sorted(shown(page)) == list(range(1, 13))
    assert "All matches are shown here." in page


def test_a_number_takes_matches_worth_reading_first_and_then_by_number(found, tmp_path):
    first = shown(page_of(found, tmp_path))
    more = shown(page_of(found, tmp_path, matches=len(first) + 3))
    assert more[: len(first)] == first
    rest = [number for number in range(1, 13) if number not in first]
    assert more[len(first) :] == rest[:3]
    assert shown(page_of(found, tmp_path, matches=1)) == first[:1]


def test_matches_that_do_not_fit_are_counted(found):
    def draw(room):
        return render_run(found, PageOptions(matches=12, room=room))

    room = next(room for room in range(20_000, 400_000, 1_000) if shown(draw(room)))
    some = draw(room)
    assert f"There is no room for {12 - len(shown(some))} more matches" in some
    assert len(some.encode()) < room + 5_000  # the frame of the section, and what else it has
    assert f"{len(shown(some))} of 12 matches" in some


def test_matches_of_one_run_take_no_room_of_the_next(found, tmp_path, monkeypatch):
    bots = {"ann": "bot/random", "bob": "bot/random"}
    other = run("public_goods", bots, repeats=1, store=tmp_path)
    alone = build_report([other.ref]).render("html", page=PageOptions(matches=0))
    room = 2 * len(alone.encode())
    monkeypatch.setattr("parley.report.page.LARGEST", room + FRAME)
    page = build_report([found.ref, other.ref]).render("html", page=PageOptions(matches=12))
    assert '<section class="card" id="s1-cost">' in page


def test_a_large_page_leaves_out_matches_before_other_parts(found, tmp_path, monkeypatch):
    whole = page_of(found, tmp_path, matches=12)
    bare = page_of(found, tmp_path, matches=0)
    monkeypatch.setattr("parley.report.page.FRAME", len(read_style()) + 2_000)
    monkeypatch.setattr("parley.report.page.LARGEST", len(bare.encode()) + 5_000)
    page = page_of(found, tmp_path, matches=12)
    assert len(page.encode()) < len(bare.encode()) + 5_000 < len(whole.encode())
    assert 0 < len(shown(page)) < len(shown(whole))
    assert re.search(r"There is no room for \d+ more match", page)
    assert "<h2>Cost</h2>" in page


@pytest.mark.parametrize("wrong", ["some", "-1", "1.5", "²", ""])
def test_a_wrong_limit_is_refused(wrong):
    with pytest.raises(UsageError, match="must be none, notable or a number of matches, not"):
        parse_match_limit(wrong)


def test_the_command_bounds_matches(found, tmp_path):
    page = tmp_path / "page.html"
    asked = [str(found.path), "-o", str(page), "--no-audit", "--matches", "2"]
    CliRunner().invoke(command, asked, catch_exceptions=False)
    assert len(shown(page.read_text(encoding="utf-8"))) == 2


def test_what_was_wrong_with_a_reply_stands_above_it(tmp_path):
    models = {"silent": lambda view: "I cannot say."}
    found = run("qa", shots=0, models=models, items=ITEMS[:1], store=tmp_path)
    page = page_of(found, tmp_path)
    assert re.search(r'asked again</bdi></span></header>\s*<div class="tx"><bdi>I cannot say', page)


def test_a_page_that_is_too_large_says_so(found, tmp_path, monkeypatch):
    assert "is larger than" not in page_of(found, tmp_path)
    monkeypatch.setattr("parley.report.page.LARGEST", 1_000)
    assert "This page is larger than 0.001 MB: report on fewer runs" in page_of(found, tmp_path)


def test_as_text_the_parts_of_a_comparison_stand_with_its_single_run(found, tmp_path):
    bots = {"ann": "bot/random", "bob": "bot/random", "cy": "bot/random"}
    other = run("public_goods", bots, repeats=1, store=tmp_path)
    part = ComparisonPart(
        "own",
        "Its own section",
        tuple[str, ...],
        lambda runs: tuple(run.info.id for run in runs.each()),
        tables=lambda found, style: [],
        rows=no_rows,
        words=lambda found, style: f"found in {', '.join(found)}",
        takes=("public_goods",),
    )

    def compare(*results):
        return ComparisonResult([part], ComparedRuns(results, ComparisonOptions()))

    text = Report([compare(found)], [other, found], [other]).render()
    headings = [line for line in text.splitlines() if line.startswith(("══ ", "── "))]
    assert [other.ref.id in headings[0], found.ref.id in headings[1]] == [True, True]
    assert headings[2:] == ["── Its own section ──"]  # below the heading of its run
    text = Report([compare(found, other)], [other, found], []).render()
    assert text == f"══ Its own section ══\n\nfound in {found.ref.id}, {other.ref.id}"
