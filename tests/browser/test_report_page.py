"""Reports in a real browser: readable by everybody, whatever models say."""

import pytest

import parley
from parley.report.build import build_report
from parley.report.page_options import PageOptions

HOSTILE = "</style></bdi><script>alert(1)</script><svg onload=alert(2)>\u202eevil" + "x" * 20_000


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A run in which a model says hostile things and names itself."""
    place = tmp_path_factory.mktemp("report")

    def reply(view):
        return '{"reason": "I am GPT-4o. ' + HOSTILE + '", "coins": 10}'

    models = {"loud": reply, "free": "bot/free-rider", "noise": "bot/random"}
    return parley.run("public_goods", models=models, rounds=2, repeats=6, store=place, name="first")


def test_a_report_leads_from_who_won_to_a_lost_match(found, tmp_path, open_page):
    visit = open_page(found.report(tmp_path / "page.html", matches=6))
    page = visit.page
    assert "is first with" in page.inner_text(".lead")
    assert "audited: no breach" in page.inner_text(".facts")
    page.click("text=6 matches")
    page.click("summary:has-text('below its mean')")
    assert "<script>alert(1)</script>" in page.inner_text("details[open]")
    visit.check()


def test_a_report_of_several_runs_begins_with_findings(found, tmp_path, open_page):
    models = {"free": "bot/free-rider", "noise": "bot/random"}
    second = parley.run("public_goods", models=models, rounds=2, repeats=3, store=tmp_path)
    text = build_report([found.ref, second.ref]).render("html", page=PageOptions())
    place = tmp_path / "page.html"
    place.write_text(text, encoding="utf-8")
    visit = open_page(place)
    assert len(visit.page.query_selector_all(".finding .lead")) == 2
    visit.check()


def test_a_result_in_a_notebook_restyles_nothing_else(found, tmp_path, open_page):
    head = '<!doctype html><html lang="en"><title>n</title><main><h1 id="own">Notebook</h1>'
    bare, shown = tmp_path / "bare.html", tmp_path / "shown.html"
    bare.write_text(head + "</main></html>", encoding="utf-8")
    shown.write_text(head + found._repr_html_() + "</main></html>", encoding="utf-8")
    looks = [
        open_page(place).page.evaluate(
            "() => ['#own', 'body', 'main'].map(name => {"
            "const s = getComputedStyle(document.querySelector(name));"
            "return [s.font, s.color, s.backgroundColor, s.margin, s.padding]})"
        )
        for place in (bare, shown)
    ]
    assert looks[0] == looks[1]
