"""The section on fairness says what was checked, and never more than that."""

import asyncio
import re
import sqlite3

import pytest
from click.testing import CliRunner

from parley import Question, run
from parley.audit import for_report
from parley.audit.audit import CHECKS
from parley.audit.for_report import audit_for_report
from parley.audit.summary import AuditSummary, FairnessCheck
from parley.cli.report import command
from parley.report.fairness import WORDS, summarise_fairness
from parley.results.match_notes import Mark

MODELS = {"a": "bot/random", "b": "bot/free-rider"}


def words_of(page):
    """The section on fairness as text."""
    (section,) = re.findall(r'<section class="card" id="s\d+-fairness">.*?</section>', page, re.S)
    return re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", section))


def play(folder, models=MODELS):
    return run("public_goods", models=models, rounds=2, repeats=2, store=folder)


@pytest.fixture(scope="module")
def fair(tmp_path_factory):
    return play(tmp_path_factory.mktemp("fair"))


def test_every_check_has_words():
    assert set(WORDS) == set(CHECKS)


def test_a_fair_run_says_what_was_checked(fair, tmp_path):
    page = fair.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<a class="chip good" href="#s0-fairness"><bdi>✓ audited: no breach</bdi></a>' in page
    said = words_of(page)
    assert "It found no breach in 9 checks." in said
    assert "✓ replayed without models" in said
    assert "No reply broke the required format or a rule." in said
    assert "The audit searched 8 replies" in said


def test_a_changed_record_is_no_fair_run(tmp_path):
    found = play(tmp_path)
    with sqlite3.connect(found.path) as changed:
        changed.execute("UPDATE scores SET value = value - 1 WHERE match = 1")
    changed.close()
    page = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    chip = re.search(r'<a class="chip bad" href="#s0-fairness"><bdi>✗ audited: (\d+) breach', page)
    assert chip, "the chip counts the breaches"
    assert int(chip[1]) > 0
    assert "replay, match 1: " in words_of(page)
    assert "audited: no breach" not in page


def test_without_an_audit_the_page_says_why(fair, tmp_path, monkeypatch):
    page = fair.report(tmp_path / "page.html", audit=False).read_text(encoding="utf-8")
    assert "<bdi>not audited</bdi></a>" in page
    assert "Not audited: the report was made without an audit." in words_of(page)
    monkeypatch.setattr(for_report, "MOST_CALLS", 7)
    page = fair.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Not audited: the run has 8 calls" in words_of(page)
    assert f"parley audit {fair.ref.id}" in words_of(page)
    page = fair.report(tmp_path / "page.html", audit=True).read_text(encoding="utf-8")
    assert "✓ audited: no breach" in page


def test_the_command_audits_only_for_a_page(fair, tmp_path, monkeypatch):
    asked = []

    def counted(ref, task, wanted):
        asked.append(wanted)
        return audit_for_report(ref, task, wanted)

    monkeypatch.setattr("parley.cli.report.audit_for_report", counted)
    page = tmp_path / "page.html"
    command_line = [str(fair.path), "-o", str(page), "--no-audit"]
    CliRunner().invoke(command, command_line, catch_exceptions=False)
    assert "<bdi>not audited</bdi></a>" in page.read_text(encoding="utf-8")
    CliRunner().invoke(command, [str(fair.path)], catch_exceptions=False)
    assert asked == [False]


def test_checks_that_were_not_made_are_not_called_fair():
    made, left = FairnessCheck("digest", 3), FairnessCheck("replay", 0, 0, "the task has changed")
    assert summarise_fairness(AuditSummary((made,))) == Mark(
        "✓ audited: no breach", "good", "-fairness"
    )
    assert summarise_fairness(AuditSummary((made, left))) == Mark(
        "audited: no breach, 1 check not made", "warn", "-fairness"
    )
    found = summarise_fairness(AuditSummary((made,), ("digest: x",)))
    assert found.text == "✗ audited: 1 breach"


def test_violations_are_counted_by_model_with_examples(tmp_path):
    items = [Question("q", "What makes leaves green?", "B", ("Iron", "Chlorophyll"))]

    def unreadable(view):
        return "I am <b>not</b> telling"

    found = run("qa", shots=0, models={"silent": unreadable}, items=items, store=tmp_path)
    page = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.search(r"silent \w+ 1 \d", words_of(page))
    assert "silent, match 1, round 1" in words_of(page)
    assert "<b>not" not in page
    assert "No reply was masked." in words_of(page)


def test_masked_statements_are_shown_with_examples(tmp_path):
    def claims(view):
        return '{"reason": "I am GPT-4o and I keep <b>all</b>.", "coins": 0}'

    found = play(tmp_path, {"open": claims, "b": "bot/random"})
    page = found.report(tmp_path / "page.html").read_text(encoding="utf-8")
    said = words_of(page)
    assert "These seats named models." in said
    assert "The audit searched 8 replies for names of models: found in 4" in said
    assert re.search(r"model masked open 4 ", said)
    assert re.search(r"open, match 1, round 1, identity: .*GPT-4o", said)
    assert "<b>all" not in page


def test_a_page_can_be_written_inside_an_event_loop(fair, tmp_path):
    async def write():
        return fair.report(tmp_path / "page.html")

    page = asyncio.run(write()).read_text(encoding="utf-8")
    assert "✓ audited: no breach" in page
