"""Voting in a real browser: keys, tabs, the back button, no script, and a server that is killed."""

import re
import shutil
import signal
import subprocess
import sys

import pytest

import parley
from parley.annotation.pair_ballots import end_invitation, invite_annotator
from parley.annotation.study import prepare_study
from parley.store import find_run, open_votes
from tests.browser.conftest import press

PAIRS = 4


@pytest.fixture(scope="module")
def interviews(tmp_path_factory):
    """A run of interviews. It is made before the browser opens."""
    models = {
        name: {"model": "bot/candidate", "knowledge": share}
        for name, share in (("zebra", 0.9), ("yak", 0.1))
    }
    roles = {"interactor": "bot/interactor", "evaluator": "bot/evaluator"}
    folder = tmp_path_factory.mktemp("interviews")
    settings = {"items": 6, "rounds": 2, "verify": "no", "seed": 1}
    return parley.run("kieval", models=models, roles=roles, store=folder, **settings).path


@pytest.fixture
def voting(interviews, tmp_path):
    """`(ref, study, link)`: a study of a fresh copy of the run, and the path of a link."""
    ref = find_run(shutil.copy(interviews, tmp_path))
    with open_votes([ref]) as votes:
        study = prepare_study(votes, [ref], PAIRS, 1, True)
        return ref, study, f"/vote/{invite_annotator(votes, study, 'Ann')}"


def stored(ref, study):
    """The votes that stand, in the order in which they were given."""
    with open_votes([ref], read_only=True) as votes:
        (who,) = votes.annotators(study)
        return list(votes.votes_of(study, who).items())


def test_all_is_done_by_keys_and_every_page_is_sound(voting, tmp_path, serve, open_page):
    ref, study, link = voting
    with serve(tmp_path, ["vote_page"]) as url:
        visit = open_page(url + link)
        page = visit.page
        visit.check()
        first = page.input_value("[name=ballot]")
        press(page, "1")
        page.get_by_text("Pair 2 of 4").wait_for()
        press(page, "s")
        page.wait_for_function("document.querySelector('[name=ballot]').value === '3'")
        press(page, "3")
        page.get_by_text("Pair 3 of 4").wait_for()
        press(page, "z")
        page.get_by_text("Equal (your vote)").wait_for()
        press(page, "z")
        page.get_by_text("A is better (your vote)").wait_for()
        visit.check()
        assert page.input_value("[name=ballot]") == first
        press(page, "2")
        page.get_by_text("Pair 3 of 4").wait_for()
        press(page, "1")
        page.get_by_text("Only skipped pairs are left").wait_for()
        press(page, "1")
        page.get_by_text("Pair 4 of 4").wait_for()
        press(page, "1")
        page.get_by_text("Thank you!").wait_for()
        visit.check()
    assert stored(ref, study) == [(3, "tie"), (1, "B"), (4, "A"), (2, "A")]


def test_a_vote_by_key_survives_kill_9(voting, tmp_path, open_page):
    ref, study, link = voting
    server = subprocess.Popen(
        [sys.executable, "-m", "parley", "annotate", "serve", ref.location, "--port", "0"],
        stderr=subprocess.PIPE, text=True, cwd=tmp_path,
    )  # fmt: skip
    try:
        said = server.stderr.readline()
        url = re.search(r"people can open their links at (http://[^/]+)/vote/", said)[1]
        page = open_page(url + link).page
        for number in range(1, 3):
            press(page, str(number))
            page.get_by_text(f"Pair {number + 1} of 4").wait_for()
        server.send_signal(signal.SIGKILL)
    finally:
        server.kill()
        server.communicate()
    assert [choice for _, choice in stored(ref, study)] == ["A", "B"]


def test_back_and_a_second_tab_never_give_a_second_vote(voting, tmp_path, serve, open_page):
    ref, study, link = voting
    with serve(tmp_path, ["vote_page"]) as url:
        page = open_page(url + link).page
        other = page.context.new_page()
        other.goto(url + link)
        first = page.input_value("[name=ballot]")
        assert other.input_value("[name=ballot]") == first  # both tabs show what is held
        press(page, "1")
        page.get_by_text("Pair 2 of 4").wait_for()
        press(other, "2")  # another vote, from a stale tab
        other.get_by_text("You have already voted on this pair").wait_for()
        assert stored(ref, study) == [(int(first), "A")]
        press(other, "s")  # keep it
        other.get_by_text("Pair 2 of 4").wait_for()
        page.goto(f"{url}{link}?ballot={first}")
        page.go_back()
        page.get_by_text("Pair 2 of 4").wait_for()  # never the pair that was voted on
        page.go_forward()
        page.get_by_text("A is better (your vote)").wait_for()
    assert stored(ref, study) == [(int(first), "A")]


def test_without_script_the_buttons_do_it(voting, tmp_path, serve, open_page):
    ref, study, link = voting
    with serve(tmp_path, ["vote_page"]) as url:
        page = open_page(url + link, script=False).page
        page.get_by_role("button", name="B is better").click()
        page.get_by_text("Pair 2 of 4").wait_for()
        page.get_by_role("link", name="Change the last vote").click()
        page.get_by_role("button", name="A is better").click()
        page.get_by_text("Pair 2 of 4").wait_for()
    assert [choice for _, choice in stored(ref, study)] == ["A"]


def test_an_ended_invitation_and_a_guess_have_sound_pages(voting, tmp_path, serve, open_page):
    ref, study, link = voting
    with open_votes([ref]) as votes:
        end_invitation(votes, study, "Ann")
    with serve(tmp_path, ["vote_page"]) as url:
        for path, status in ((link, 410), ("/vote/guess", 404)):
            visit = open_page(url + path, status=status)
            visit.console.clear()  # the browser reports the status itself
            visit.check()


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    ("theme", "media"), [("light", "screen"), ("dark", "screen"), ("light", "print")]
)
def test_all_widths_and_themes(voting, tmp_path, serve, open_page, width, theme, media):
    _, _, link = voting
    with serve(tmp_path, ["vote_page"]) as url:
        visit = open_page(url + link, width=width, theme=theme, media=media)
        visit.check()
        for number in range(1, PAIRS + 1):
            visit.page.get_by_role("button", name="A is better").click()
            following = f"Pair {number + 1} of 4" if number < PAIRS else "Thank you!"
            visit.page.get_by_text(following).wait_for()
        visit.check()
        visit.page.get_by_role("link", name="Change the last vote").click()
        visit.page.get_by_text("(your vote)").wait_for()
        visit.check()
