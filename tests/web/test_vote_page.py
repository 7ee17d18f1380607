"""Voting over plain HTTP: what a person sees, what is stored, and every way in which it can go
wrong."""

import asyncio
import hmac
import re
import shutil

import pytest
from starlette.testclient import TestClient

import parley
from parley.annotation.pair_ballots import cast_vote, end_invitation, invite_annotator, offer_pair
from parley.annotation.study import prepare_study
from parley.store import open_store, open_votes, read_run
from parley.web.app import make_app, make_site
from parley.web.safety import Safety

HOST = "127.0.0.1:8642"
TASKS = {
    "kieval": ("bot/candidate", "knowledge", {"rounds": 2, "verify": "no"}),
    "translation": ("bot/translator", "strength", {}),
    "code_review": ("bot/coder", "strength", {"rounds": 1}),
    "qa": ("bot/student", "knowledge", {"shots": 0}),
}
JUDGES = {"kieval": {"interactor": "bot/interactor", "evaluator": "bot/evaluator"}}
ALIASES = ("zebra-large", "yak-small")


def play(folder, task):
    model, option, params = TASKS[task]
    models = {
        alias: {"model": model, option: share}
        for alias, share in zip(ALIASES, (0.95, 0.05), strict=True)
    }
    roles = JUDGES.get(task, {})
    return parley.run(task, models=models, roles=roles, items=4, seed=1, store=folder, **params).ref


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A folder with a run of interviews."""
    folder = tmp_path_factory.mktemp("interviews")
    return folder, play(folder, "kieval")


class Voting:
    """A study in a folder, and people with links."""

    def __init__(self, folder, ref, pages=("vote_page",), ties=True, pairs=3):
        self.folder, self.ref = folder, ref
        with open_votes([ref]) as votes:
            self.study = prepare_study(votes, [ref], pairs, 1, ties)
        app = make_app(make_site(open_store(folder)), Safety(frozenset({HOST})), pages)
        self.client = TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)

    def votes(self):
        return open_votes([self.ref])

    def invite(self, name):
        with self.votes() as votes:
            return f"/vote/{invite_annotator(votes, self.study, name)}"

    def send(self, link, pair, choice, **more):
        return self.client.post(link, data={"ballot": pair, "choice": choice, **more})

    def stored(self):
        """The votes that stand: pair, person and choice."""
        with self.votes() as votes:
            names = {each.id: each.name for each in votes.annotators(self.study)}
            return [
                (pair, names[id], choice)
                for pair, by in votes.votes(self.study).items()
                for id, choice in by.items()
            ]

    def vote_elsewhere(self, name, pair, choice):
        with self.votes() as votes:
            who = votes.add_annotator(self.study, name)
            return cast_vote(votes, self.study, pair, who, choice)


@pytest.fixture
def voting(played, tmp_path):
    _, ref = played
    shutil.copy(ref.location, tmp_path)
    return Voting(tmp_path, open_store(tmp_path).find(ref.id))


def shown_pair(text):
    """The number of the pair in the form of a page."""
    return int(re.search(r'name="ballot" value="(\d+)"', text)[1])


def text_of(answer):
    """The words of a page."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", answer.text))


def test_a_vote_is_stored_before_the_next_pair_is_shown(voting):
    link = voting.invite("Ann")
    first = shown_pair(voting.client.get(link).text)
    answer = voting.send(link, first, "A")
    assert voting.stored() == [(first, "Ann", "A")]
    assert (answer.status_code, answer.headers["location"]) == (303, link)
    page = voting.client.get(link)
    assert "Pair 2 of 3" in page.text
    assert shown_pair(page.text) != first


@pytest.mark.parametrize("task", TASKS)
def test_no_name_score_or_run_reaches_the_browser(task, tmp_path):
    voting = Voting(tmp_path, play(tmp_path, task))
    link, seen = voting.invite("Ann"), []
    with voting.votes() as votes:
        pairs = votes.pairs(voting.study)
    assert pairs
    while "Thank you" not in (page := voting.client.get(link)).text:
        seen += [page, voting.send(link, shown_pair(page.text), "B")]
    seen += [page, voting.client.get(f"{link}?ballot=1"), voting.client.get("/vote/guess")]
    with read_run(voting.ref) as reader:
        info = reader.info
        words = {info.id, str(tmp_path), *info.config.models}
        words |= {str(each["model"]) for each in info.config.models.values()}
        words |= {name for names in reader.usage.names_served().values() for name in names}
    scores = {side.score for pair in pairs.values() for side in (pair.a, pair.b)}
    words |= {f"{score:.3f}" for score in scores if score % 1}
    for answer in seen:
        everything = f"{answer.text}\n{answer.headers}".casefold()
        assert not [word for word in words if word.casefold() in everything]
    assert {name for _, name, _ in voting.stored()} == {"Ann"}


def test_a_reply_cannot_bring_markup(played, tmp_path):
    hostile = "</div><script>alert(1)</script><style>*{}</style>\u202e"
    ref = parley.run(
        "qa",
        models={"a": lambda view: f"A {hostile}", "b": lambda view: f"B {hostile}"},
        items=3,
        shots=0,
        store=tmp_path,
    ).ref
    voting = Voting(tmp_path, ref)
    page = voting.client.get(voting.invite("Ann"))
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;alert(1)" in page.text
    assert "\u202e" not in page.text


def test_a_form_that_is_sent_twice_is_one_vote(voting):
    link = voting.invite("Ann")
    for _ in range(2):
        assert voting.send(link, 1, "A").headers["location"] == link
    assert voting.stored() == [(1, "Ann", "A")]


def test_a_stale_tab_leads_to_the_earlier_vote_which_can_be_changed(voting):
    link = voting.invite("Ann")
    voting.send(link, 1, "A")
    there = voting.send(link, 1, "B").headers["location"]
    assert voting.stored() == [(1, "Ann", "A")]
    page = voting.client.get(there)
    assert shown_pair(page.text) == 1
    assert "You have already voted on this pair" in page.text
    assert "A is better (your vote)" in text_of(page)
    assert "Keep my vote" in page.text
    assert voting.send(link, 1, "B", change="1").headers["location"] == link
    assert voting.stored() == [(1, "Ann", "B")]
    with voting.votes() as votes:  # both are on record
        assert list(votes.count_replaced(voting.study).values()) == [1]


def test_a_pair_that_others_settled_is_not_counted_and_the_next_page_says_so(voting):
    link = voting.invite("Ann")
    pair = shown_pair(voting.client.get(link).text)
    for name in ("Bob", "Cid"):
        voting.vote_elsewhere(name, pair, "B")
    answer = voting.send(link, pair, "A")
    assert "Ann" not in {name for _, name, _ in voting.stored()}
    page = voting.client.get(answer.headers["location"])
    assert "Your last vote was not counted" in text_of(page)
    assert shown_pair(page.text) != pair


def test_earlier_votes_are_reached_one_by_one(voting):
    link = voting.invite("Ann")
    for number in (1, 2):
        voting.send(link, number, "A")
    page = voting.client.get(link)
    assert f'href="{link}?ballot=2" data-key="z"' in page.text
    page = voting.client.get(f"{link}?ballot=2")
    assert f'href="{link}?ballot=1" data-key="z"' in page.text
    assert 'data-key="z"' not in voting.client.get(f"{link}?ballot=1").text
    assert shown_pair(voting.client.get(f"{link}?ballot=3").text) == 3  # not voted on: the next one


def test_skipped_pairs_come_at_the_end_when_asked_for(voting):
    link = voting.invite("Ann")
    first = shown_pair(voting.client.get(link).text)
    assert voting.send(link, first, "skip").status_code == 303
    for _ in range(2):
        voting.send(link, shown_pair(voting.client.get(link).text), "tie")
    page = voting.client.get(link)
    assert "You have given 2 votes and skipped 1 pair." in page.text
    voting.client.post(link, data={"choice": "again"})
    assert shown_pair(voting.client.get(link).text) == first
    voting.send(link, first, "A")
    assert "Thank you!" in voting.client.get(link).text


def test_pairs_that_others_are_reading_are_left_to_them(voting):
    link = voting.invite("Ann")
    for number in (1, 2):
        voting.send(link, number, "A")
    with voting.votes() as votes:
        for name in ("Bob", "Cid"):
            who = votes.add_annotator(voting.study, name)
            offer_pair(votes, voting.study, who, skipped={1, 2})
    page = voting.client.get(link)
    assert "Please come back later" in page.text
    assert "open the same link again" in page.text


def test_an_ended_invitation_says_so_and_takes_no_vote(voting):
    link = voting.invite("Ann")
    voting.send(link, 1, "A")
    with voting.votes() as votes:
        end_invitation(votes, voting.study, "ann")
    newer = voting.invite("Bob")
    assert voting.invite("Bob") != newer  # a new invitation ends the earlier one
    for each in (link, newer):
        for answer in (voting.client.get(each), voting.send(each, 2, "B")):
            assert answer.status_code == 410
            assert "ask the person who invited you for a new link" in answer.text
    assert voting.stored() == [(1, "Ann", "A")]


def test_a_guessed_link_is_like_any_wrong_address_and_takes_the_same_work(voting, monkeypatch):
    link, ended = voting.invite("Ann"), voting.invite("Bob")
    voting.invite("Bob")
    compared = []
    right = hmac.compare_digest

    def counting(one, other):
        compared.append((len(one), len(other)))
        return right(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counting)
    near = link[:-1] + ("a" if link[-1] != "a" else "b")
    work = {}
    for name, path in {
        "right": link, "ended": ended, "near": near, "far": "/vote/x"
    }.items():  # fmt: skip
        compared.clear()
        answer = voting.client.get(path)
        work[name] = list(compared)
        if name in ("near", "far"):
            other = voting.client.get("/nothing/here")
            assert (answer.status_code, answer.text) == (404, other.text)
            assert {**answer.headers} == {**other.headers}
            assert voting.send(path, 1, "A").status_code == 404
    assert len(work["right"]) == 3  # all are compared, whether one was found or not
    assert len({str(each) for each in work.values()}) == 1


@pytest.mark.parametrize(("link", "status"), [("/vote/guessed", 404), ("ended", 410)])
def test_the_form_of_a_wrong_link_is_not_read(voting, link, status):
    if link == "ended":
        link = voting.invite("Bob")
        voting.invite("Bob")
    sent = []

    async def receive():
        raise AssertionError("the form was read")

    async def send(message):
        sent.append(message)

    headers = [(b"host", HOST.encode()), (b"content-length", b"900000")]
    scope = {"type": "http", "method": "POST", "path": link, "query_string": b""}
    scope |= {"headers": headers, "scheme": "http", "server": ("127.0.0.1", 8642)}
    asyncio.run(voting.client.app(scope, receive, send))
    assert sent[0]["status"] == status


def test_without_votes_every_link_is_wrong_and_no_file_is_made(tmp_path):
    app = make_app(make_site(open_store(tmp_path)), Safety(frozenset({HOST})), ["vote_page"])
    client = TestClient(app, base_url=f"http://{HOST}")
    assert client.get("/vote/x").status_code == 404
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"ballot": "1"},
        {"ballot": "99", "choice": "A"},
        {"ballot": "-1", "choice": "A"},
        {"ballot": "٣", "choice": "A"},
        {"ballot": "1", "choice": "C"},
        {"ballot": "1" * 4000, "choice": "A"},
        {str(number): "x" for number in range(20)},
    ],
)
def test_a_form_that_cannot_be_read_stores_nothing(voting, form):
    answer = voting.client.post(voting.invite("Ann"), data=form)
    assert answer.status_code == 400
    assert "Open your personal link again" in answer.text
    assert voting.stored() == []


def test_a_tie_is_refused_where_the_study_has_none(played, tmp_path):
    _, ref = played
    shutil.copy(ref.location, tmp_path)
    voting = Voting(tmp_path, open_store(tmp_path).find(ref.id), ties=False)
    link = voting.invite("Ann")
    assert "Equal" not in voting.client.get(link).text
    assert voting.send(link, 1, "tie").status_code == 400
    assert voting.stored() == []


def test_a_run_that_is_gone_is_not_named_to_the_voter(voting, capsys):
    link = voting.invite("Ann")
    (voting.folder / f"{voting.ref.id}.parley").rename(voting.folder / "renamed.parley")
    assert voting.client.get(link).status_code == 200
    (voting.folder / "renamed.parley").unlink()
    answer = voting.client.get(link)
    assert answer.status_code == 503
    assert "Your votes so far are kept" in answer.text
    assert voting.ref.id not in answer.text
    assert voting.ref.id in capsys.readouterr().err


def test_a_link_needs_no_token_and_opens_nothing_else(voting):
    link = voting.invite("Ann")
    safety = Safety(frozenset({HOST}), "0123456789abcdef")
    app = make_app(make_site(open_store(voting.folder), public=True), safety)
    client = TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)
    page = client.get(link)
    assert page.status_code == 200
    assert not page.cookies
    assert client.post(link, data={"ballot": 1, "choice": "A"}).status_code == 303
    assert client.get("/").status_code == 401


def test_a_server_for_voters_has_no_other_pages(voting):
    link = voting.invite("Ann")
    for path in ("/", f"/run/{voting.ref.id}", "/vote/", f"{link}/x"):
        answer = voting.client.get(path)
        assert answer.status_code == 404
        assert "href=" not in re.sub(r"<head>.*</head>", "", answer.text, flags=re.DOTALL)
    everything = Voting(voting.folder, voting.ref, pages=None)  # as `parley view` serves them
    assert everything.client.get(link).status_code == 200
