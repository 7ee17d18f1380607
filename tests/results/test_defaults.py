"""Means that rest on defaults are marked: nonsense must not look like a choice."""

import csv
import io
import re

import pytest

from parley import run


@pytest.fixture
def result(tmp_path):
    words = tmp_path / "nonsense.txt"
    words.write_text("Lovely weather.\nHmm.\n", encoding="utf-8")
    models = {"odd": f"scripted/{words}", "altruist": "bot/altruist", "any": "bot/random"}
    return run("public_goods", models, repeats=3, rounds=2, store=tmp_path)


def test_nonsense_has_the_payoff_of_an_altruist_and_is_marked(result):
    rows = {row["alias"]: row for row in result.data["results"]}
    assert rows["odd"]["mean"] == rows["altruist"]["mean"]
    assert {alias: row["defaulted"] for alias, row in rows.items()} == {
        "odd": 3,
        "altruist": 0,
        "any": 0,
    }


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_the_table_marks_it_in_every_form(form, result):
    text = result.render(form)
    assert text.count("†") == 2  # at the mean, and where it is explained
    assert "includes defaults" in text
    assert "odd as players in 3 of 3 matches" in text


def test_csv_counts_it(result):
    rows = {row["alias"]: row for row in csv.DictReader(io.StringIO(result.render("csv")))}
    assert (rows["odd"]["defaulted"], rows["altruist"]["defaulted"]) == ("3", "0")


def test_the_report_marks_it_in_table_and_figure(result, tmp_path):
    page = result.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert len(re.findall(r">-?[\d.]+†</text>", page)) == 2  # in the wide and the narrow drawing
    assert "includes defaults" in page


def test_a_run_without_defaults_has_no_mark(tmp_path):
    found = run("public_goods", ["bot/altruist", "bot/random"], repeats=3, store=tmp_path)
    assert "†" not in found.render()
