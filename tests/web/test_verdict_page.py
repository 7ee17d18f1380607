"""Votes on single conversations over plain HTTP: what people see, what is stored, and a run that
goes on meanwhile."""

import re

import pytest
from starlette.testclient import TestClient

import parley
from parley.annotation.verdict_ballots import end_verdict_invitation, invite_to_verdicts
from parley.store import open_store, open_verdict_votes, read_run
from parley.web.app import make_app, make_site
from parley.web.safety import Safety
from tests.cli.test_cli import parley as command
from tests.runs.test_recall import evolve

HOST = "127.0.0.1:8642"
SETTINGS = {"stages": 1, "probe": False, "feedback": "people"}


class Waiting:
    """A run that waits for votes, and people with links."""

    def __init__(self, folder):
        self.folder = folder
        models = {"zebra-large": "bot/random"}
        self.ref = evolve(folder, models, count=3, evolve=SETTINGS).ref
        app = make_app(make_site(open_store(folder)), Safety(frozenset({HOST})), ["vote_page"])
        self.client = TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)

    def invite(self, name):
        with open_verdict_votes(self.ref) as votes:
            return f"/vote/{invite_to_verdicts(votes, self.ref.id, name)}"

    def send(self, link, place, choice, **more):
        data = {"ballot": ".".join(place), "choice": choice, **more}
        return self.client.post(link, data=data)

    def stored(self):
        """The votes that stand, by match."""
        with open_verdict_votes(self.ref) as votes:
            return {place[0]: by for place, by in votes.votes(self.ref.id).items()}


@pytest.fixture
def waiting(tmp_path):
    return Waiting(tmp_path)


def shown_place(text):
    """The match and the seat in the form of a page."""
    match, _, seat = re.search(r'name="ballot" value="([^"]+)"', text)[1].partition(".")
    return match, seat


def test_votes_are_stored_until_all_conversations_have_one_and_the_run_goes_on(waiting):
    link = waiting.invite("Ann")
    seen = []
    for number in range(1, 4):
        page = waiting.client.get(link)
        assert f"Conversation {number} of 3" in page.text
        place = shown_place(page.text)
        seen.append(place)
        answer = waiting.send(link, place, "yes")
        assert (answer.status_code, answer.headers["location"]) == (303, link)
        assert waiting.stored()[int(place[0])] == {"Ann": "yes"}
    assert len(set(seen)) == 3
    assert "Thank you!" in waiting.client.get(link).text
    assert parley.resume(waiting.ref.location).state == "done"
    assert "Nothing to vote on now" in waiting.client.get(link).text
    late = waiting.send(link, seen[0], "no")  # a stale tab
    page = waiting.client.get(late.headers["location"])
    assert "not counted" in page.text
    assert set(waiting.stored()[int(seen[0][0])].values()) == {"yes"}


def test_a_second_vote_changes_nothing_until_a_change_is_asked_for(waiting):
    link = waiting.invite("Ann")
    place = shown_place(waiting.client.get(link).text)
    for _ in range(2):
        assert waiting.send(link, place, "no").headers["location"] == link
    there = waiting.send(link, place, "yes").headers["location"]
    page = waiting.client.get(there)
    assert "You have already voted on this conversation" in page.text
    assert shown_place(page.text) == place
    assert waiting.stored() == {int(place[0]): {"Ann": "no"}}
    waiting.send(link, place, "unsure", change="1")
    assert waiting.stored() == {int(place[0]): {"Ann": "unsure"}}
    page = waiting.client.get(link)
    assert f"{link}?ballot={place[0]}.{place[1]}" in page.text


def test_nothing_that_names_the_model_or_the_run_reaches_the_browser(waiting):
    link = waiting.invite("Ann")
    with read_run(waiting.ref) as reader:
        models = [str(each["model"]) for each in reader.info.config.models.values()]
    for path in (link, f"{link}?ballot=1.student", "/vote/guess"):
        answer = waiting.client.get(path)
        everything = f"{answer.text}{answer.headers}"
        for word in (waiting.ref.id, str(waiting.folder), "zebra-large", *models):
            assert word not in everything


def test_ended_links_guesses_and_odd_forms(waiting):
    link = waiting.invite("Ann")
    place = shown_place(waiting.client.get(link).text)
    for form in ({}, {"ballot": "1"}, {"ballot": "1.x.y", "choice": "yes"}):
        assert waiting.client.post(link, data=form).status_code == 400
    assert waiting.send(link, place, "maybe").status_code == 400
    guess = waiting.client.get("/vote/guess")
    assert (guess.status_code, guess.text) == (404, waiting.client.get("/nothing").text)
    with open_verdict_votes(waiting.ref) as votes:
        end_verdict_invitation(votes, waiting.ref.id, "ANN")
    for answer in (waiting.client.get(link), waiting.send(link, place, "yes")):
        assert answer.status_code == 410
        assert "ask the person who invited you for a new link" in answer.text
    assert waiting.stored() == {}


def test_the_command_invites_to_single_conversations_of_a_run_that_waits(waiting):
    words = ["annotate", "invite", waiting.ref.location, "--annotator", "Ann"]
    link = command(*words, cwd=waiting.folder).out.strip()
    path = link.removeprefix(f"http://{HOST}")
    assert path.startswith("/vote/")
    assert waiting.client.get(path).status_code == 200
    command(*words, "--end", cwd=waiting.folder)
    assert waiting.client.get(path).status_code == 410
    again = command(*words, "--end", cwd=waiting.folder, code=2)
    assert "no invitation to end" in again.err
