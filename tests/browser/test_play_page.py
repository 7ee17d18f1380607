"""A public goods match is played by one person and bots, in a real browser."""

import json
import re
import signal
import subprocess
import sys

import pytest

from parley.store import find_run, read_run

COMMAND = [sys.executable, "-m", "parley"]
GAME = ["run", "public_goods", "-m", "me=human/web", "-m", "bot/altruist", "-m", "bot/random"]
GAME += ["--repeats", "1", "--set", "rounds=3", "--seed", "1", "--name", "game", "--json"]


class Played:
    """`parley run` or `parley resume` in a process of its own, and the link that it prints."""

    def __init__(self, folder, *words):
        self.process = subprocess.Popen(
            [*COMMAND, *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for line in self.process.stderr:
            if found := re.search(r"me plays in the browser at (\S+)", line):
                self.link = found[1]
                return
        raise AssertionError("no link was printed")

    def result(self):
        out, said = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, said
        return json.loads(out)


@pytest.fixture
def begin(tmp_path):
    """`begin(*words)`: a command whose process does not outlive the test."""
    begun = []

    def started(*words):
        begun.append(Played(tmp_path, *words))
        return begun[-1]

    yield started
    for each in begun:
        if each.process.poll() is None:
            each.process.kill()
        each.process.communicate()


def invest(page, round, coins):
    """Answer the question of a round, once it is asked."""
    page.get_by_text(f"Round {round} of 3 begins").last.wait_for()
    page.get_by_label("Coins").fill(str(coins))
    page.get_by_role("button", name="Send the answer").click()


def invested(folder):
    """The coins in the recorded answers of the person."""
    with read_run(find_run("game", str(folder / "runs"))) as reader:
        (match,) = reader.matches.read()
        (seat,) = (seat for seat, alias in match.seats.items() if alias == "me")
        calls = [call for call in reader.calls.of(match.number) if call.seat == seat]
        return [json.loads(call.reply.content)["coins"] for call in calls]


def test_a_match_goes_on_after_a_reload_and_after_the_run_was_killed(tmp_path, begin, open_page):
    first = begin(*GAME)
    visit = open_page(first.link)
    page = visit.page
    page.get_by_text("Round 1 of 3 begins").wait_for()
    visit.check()
    page.reload()
    invest(page, 1, 4)
    page.get_by_text("Round 2 of 3 begins").wait_for()
    assert "Your answer is recorded." in page.inner_text("main")
    form = "document.querySelector('form.answer').getBoundingClientRect()"
    page.wait_for_function(f"{form}.top > 0 && {form}.top < innerHeight")  # it is in view
    clock = "document.querySelector('.clock').getBoundingClientRect()"
    assert page.evaluate(f"{clock}.top >= 0 && {clock}.bottom < innerHeight")
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    page.get_by_text("The server does not answer.").wait_for()
    second = begin("resume", "game", "--json")
    assert second.link.rpartition("/")[2] != first.link.rpartition("/")[2]
    page = open_page(second.link).page
    invest(page, 2, 5)
    invest(page, 3, 6)
    page.get_by_role("heading", name="Thank you for playing").wait_for()
    assert page.evaluate("document.querySelector('h1').getBoundingClientRect().top") >= 0
    assert not re.search(r"altruist|random|bot/|human", page.content())
    assert second.result()["run"]["state"] == "done"
    assert invested(tmp_path) == [4, 5, 6]


@pytest.mark.slow
def test_a_bad_answer_gets_a_second_try_and_two_tabs_follow(begin, open_page):
    game = begin(*GAME)
    one, two = open_page(game.link).page, open_page(game.link).page
    two.get_by_label("Coins").wait_for()
    one.get_by_label("Coins").wait_for()
    one.evaluate("document.querySelector('form').noValidate = true")
    invest(one, 1, 99)
    for page in (one, two):
        page.get_by_text("Your answer could not be used.").wait_for()
        page.get_by_text("coins must be from 0 to 10, not 99").last.wait_for()
    one.get_by_label("Coins").fill("1")
    two.evaluate("document.querySelector('[name=question]').value = '1'")  # a tab that slept
    two.get_by_label("Coins").fill("2")
    two.get_by_role("button", name="Send the answer").click()
    two.get_by_role("heading", name="You have already answered this question").wait_for()
    two.get_by_text("Go to your current question").click()
    one.get_by_role("button", name="Send the answer").click()
    for page in (one, two):
        page.get_by_text("Round 2 of 3 begins").wait_for()


@pytest.mark.slow
def test_the_page_works_without_script(begin, open_page):
    game = begin(*GAME, "-M", "me.deadline=600")
    page = open_page(game.link, script=False).page
    for round in (1, 2, 3):
        invest(page, round, round)
    page.get_by_role("heading", name="Thank you for playing").wait_for()
    assert game.result()["run"]["state"] == "done"


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "media"), [(1280, "screen"), (390, "screen"), (1280, "print")])
def test_the_page_is_sound_at_every_width_and_theme(begin, open_page, width, media, theme):
    game = begin(*GAME, "-M", "me.deadline=600")
    visit = open_page(game.link, width=width, theme=theme, media=media)
    visit.page.get_by_text("Round 1 of 3 begins").wait_for()
    visit.check()
    for round in (1, 2, 3):
        invest(visit.page, round, round)
    visit.page.get_by_role("heading", name="Thank you for playing").wait_for()
    visit.check()
