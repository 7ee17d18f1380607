"""Votes on single conversations in a real browser, by keys."""

import pytest

from parley.annotation.verdict_ballots import invite_to_verdicts
from parley.store import open_verdict_votes
from tests.browser.conftest import press
from tests.runs.test_recall import evolve

SETTINGS = {"stages": 1, "probe": False, "feedback": "people"}


@pytest.fixture(scope="module")
def waiting(tmp_path_factory):
    """A run that waits for votes, and the path of a link. It is made before the browser opens."""
    ref = evolve(tmp_path_factory.mktemp("runs"), ["bot/random"], count=2, evolve=SETTINGS).ref
    with open_verdict_votes(ref) as votes:
        return ref, f"/vote/{invite_to_verdicts(votes, ref.id, 'Ann')}"


def test_keys_vote_and_change_and_every_page_is_sound(waiting, serve, open_page):
    ref, link = waiting
    folder = ref.store.removeprefix("folder:")
    with serve(folder, ["vote_page"]) as url:
        visit = open_page(url + link, width=390, theme="dark")
        visit.check()
        press(visit.page, "1")
        visit.page.get_by_text("Conversation 2 of 2").wait_for()
        press(visit.page, "z")
        visit.page.get_by_text("Yes (your vote)").wait_for()
        press(visit.page, "3")
        visit.page.get_by_text("Conversation 2 of 2").wait_for()
        press(visit.page, "2")
        visit.page.get_by_text("Thank you!").wait_for()
        visit.check()
    with open_verdict_votes(ref) as votes:
        assert list(votes.votes_of(ref.id, "ann").values()) == ["unsure", "no"]


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "media"), [(1280, "screen"), (390, "screen"), (1280, "print")])
def test_all_widths_and_themes(waiting, serve, open_page, width, media, theme):
    ref, _ = waiting
    with open_verdict_votes(ref) as votes:
        link = f"/vote/{invite_to_verdicts(votes, ref.id, f'{width} {media} {theme}')}"
    with serve(ref.store.removeprefix("folder:"), ["vote_page"]) as url:
        visit = open_page(url + link, width, theme, media)
        visit.check()
        press(visit.page, "1")
        visit.page.get_by_text("Conversation 2 of 2").wait_for()
        visit.check()
        press(visit.page, "2")
        visit.page.get_by_text("Thank you!").wait_for()
        visit.check()
