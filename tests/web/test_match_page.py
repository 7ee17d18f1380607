"""The page of a match: the whole record, one seat's view, two matches, and hostile texts."""

import re
from dataclasses import dataclass
from functools import partial
from html import unescape

import pytest

import parley
from parley import Amount, Metric, Role, Task
from parley.match.protocol import Reply
from parley.report.html import make_cleaner, say_text
from parley.report.text_room import TextRoom
from parley.results.match_turns import describe_fault
from parley.results.seat_views import rebuild_views
from parley.rules.pool import as_message
from parley.rules.referee import Violation
from parley.store import read_run

HOSTILE = (
    '</style></bdi></article><script>alert(1)</script><svg onload="alert(2)"><img src=x '
    "onerror=alert(3)>\u202eevil\u2066 {{ 7*7 }} "
)
LONG = "W" * 200_000


@dataclass(frozen=True)
class Talk(Task):
    """Two seats name a number, with as many words as they like."""

    roles = {"players": Role(2)}

    async def play(self, referee, players):
        referee.tell(players, "You play for a number.")
        for _ in range(2):
            answers = await referee.ask(players, "Which number?", expect=Amount("n", 0, 9))
        referee.note(said=HOSTILE, passed=True, faults=[None])
        return answers

    def metrics(self, seats):
        return [Metric("n", 0, 9, epsilon=0.1)]


def hostile(view):
    if view.attempt == 0 and view.round == 1:
        return HOSTILE + LONG
    return Reply(HOSTILE + '\n{"n": 3}', reasoning=f"thinking {HOSTILE}")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    models = {"<i>bad</i>": hostile, "good": lambda view: '{"n": 4}'}
    place = tmp_path_factory.mktemp("match")
    return parley.run(Talk(), models, repeats=3, store=place, seed=1)


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    models = {"able": "bot/translator", "weak": {"model": "bot/translator", "strength": 0.3}}
    judges = {"judge": {"first": "bot/judge", "second": "bot/judge"}}
    place = tmp_path_factory.mktemp("judged")
    return parley.run("translation", models, roles=judges, items=2, store=place, seed=1)


@pytest.fixture
def ask(visit):
    def asked(run, number, query=""):
        client = visit(run.ref.store.removeprefix("folder:"))
        return client.get(f"/run/{run.ref.id}/match/{number}{query}")

    return asked


def texts(answer):
    """The texts of all cards, as a reader sees them."""
    found = re.findall(r'<div class="tx">(.*?)</div>', answer.text, re.DOTALL)
    return [unescape(re.sub(r"<summary>.*?</summary>|<[^>]*>", "", each)).strip() for each in found]


@pytest.mark.parametrize(
    "query", ["", "?seat=players.1", "?seat=Player+2", "?beside=2", "?round=1"]
)
def test_a_hostile_text_stays_text(run, ask, query):
    answer = ask(run, 1, query)
    assert answer.status_code == 200, answer.text[:500]
    for tag in ("<script>alert", "<svg onload", "<img src=x", "<i>bad"):
        assert tag not in answer.text
    assert "\u202e" not in answer.text
    if query != "?seat=Player+2":
        assert "&lt;script&gt;alert(1)" in answer.text
        assert "&lt;U+202E&gt;evil" in answer.text
    assert answer.text.count("<bdi>") == answer.text.count("</bdi>")


def test_tries_that_were_asked_again_are_shown_with_the_reason(run, ask):
    text = ask(run, 1).text
    assert "asked for again" in text
    assert "asked again</bdi>" in text
    assert "attempt 2" in text
    assert "Reasoning</summary>" in text


def test_long_texts_are_folded_and_bounded(run, ask, monkeypatch):
    # a record keeps the first 200,000 characters of a reply; 3,000 are shown at once
    assert "<summary>197,000 more characters" in ask(run, 1).text
    monkeypatch.setattr("parley.web.match_page.ROOM", 1_000)
    answer = ask(run, 1)
    assert len(answer.text) < 60_000
    assert f'/run/{run.ref.id}/match/1?round=1">open round 1 alone' in answer.text
    assert LONG[:100_000] in ask(run, 1, "?round=1").text


@pytest.mark.parametrize("seat", ["translator", "proofreader", "judge.1"])
def test_the_view_of_a_seat_is_exactly_what_it_saw(judged, ask, seat):
    with read_run(judged.ref) as reader:
        views, _ = rebuild_views(reader.whole_matches.of(reader.matches.find(1)))
    wanted = [as_message(turn)["content"].strip() for turn in views[seat].turns]
    assert texts(ask(judged, 1, f"?seat={seat}")) == wanted


def test_judges_have_their_marks_and_grounds(judged, ask):
    text = ask(judged, 1).text
    assert re.search(r"<dt><bdi>[^<]*score</bdi></dt><dd><bdi>\d+</bdi></dd>", text)
    assert "So says the reference." in text


def test_other_matches_on_the_item_and_side_by_side(judged, ask):
    answer = ask(judged, 1)
    (other,) = re.findall(r'href="[^"]*\?beside=(\d+)"', answer.text)
    both = ask(judged, 1, f"?beside={other}").text
    assert f'aria-label="Match {other}"' in both
    assert both.count('<h2 class="rd"') == 2 * answer.text.count('<h2 class="rd"')
    assert 'rel="next">2 →' in answer.text
    assert 'rel="prev"' not in answer.text


@pytest.mark.parametrize(
    ("number", "query", "status", "said"),
    [
        (99, "", 404, "no match"),
        ("x", "", 404, "no match"),
        ("9" * 30, "", 404, "no match"),
        (1, "?seat=Dealer", 400, "unknown seat"),
        (1, "?beside=1", 400, "another match"),
        (1, "?beside=x", 400, "number of a match"),
        (1, "?beside=99", 404, "no match"),
        (1, "?round=77", 400, "no round 77"),
        (1, "?round=x", 400, "number of a round"),
        (1, "?side=2", 400, "unknown choice"),
        (1, "?seat=a&seat=b", 400, "must be given once"),
        (1, "?seat=players.1&beside=2", 400, "without beside"),
    ],
)
def test_an_address_that_cannot_be_used_says_what_was_wanted(run, ask, number, query, status, said):
    answer = ask(run, number, query)
    assert answer.status_code == status
    assert said in answer.text


def test_verdicts_on_programs_are_shown(run, ask):
    assert 'class="turn rule good"' in ask(run, 1).text


@pytest.mark.parametrize(
    ("task", "models"),
    [
        ("qa", {"a": "bot/random"}),
        ("public_goods", dict.fromkeys("abc", "bot/random")),
        ("word_guessing", dict.fromkeys("ab", "bot/random")),
    ],
)
def test_pages_of_other_tasks(visit, tmp_path, task, models):
    played = parley.run(
        task,
        models,
        repeats=1,
        store=tmp_path,
        seed=1,
        **({"items": 1} if task != "public_goods" else {}),
    )
    client = visit(tmp_path)
    assert client.get(f"/run/{played.ref.id}/match/1").status_code == 200
    assert client.get(f"/run/{played.ref.id}/matches").status_code == 200


def test_fenced_code_is_shown_as_a_block():
    clean = partial(say_text, {"clean": make_cleaner()})
    text = "Here:\n```python\nif a < b:\n    pass\n```\nDone.\n```\n<i>open"
    assert clean(text) == (
        "<bdi>Here:</bdi><pre><bdi>if a &lt; b:\n    pass</bdi></pre><bdi>Done.</bdi>"
        "<pre><bdi>&lt;i&gt;open</bdi></pre>"
    )
    assert clean("x\n```\ny `z`", ["y"], True) == (
        "<pre><bdi>x</bdi></pre><bdi><mark>y</mark> `z`</bdi>"
    )
    assert clean("````\n```\na\n````") == "<pre><bdi>```\na</bdi></pre>"


def test_code_that_is_folded_begins_as_code():
    room = TextRoom(10_000)
    assert room.bound("```\n" + "a\n" * 2_000).cuts_code
    assert not room.bound("a\n" * 2_000).cuts_code


def test_scores_are_listed_by_seat(judged, ask):
    page = ask(judged, 1).text
    found = page[page.index('class="scores"') :]
    found = found[: found.index("</table>")]
    assert found.count('scope="rowgroup"') == 2  # judges have no scores
    assert re.search(r'<th scope="row"><bdi>chrf[^<]*</bdi></th><td>[\d.]+</td>', found)
    assert "Prompts may count rounds of the task differently." in page


@pytest.mark.parametrize(
    "reply",
    ['{"k":' + "[" * 300 + "]" * 300 + "}", '{"a":' * 985 + "1" + "}" * 985],
    ids=["lists", "objects"],
)
def test_a_deeply_nested_reply_of_a_judge_is_shown_as_it_is(visit, tmp_path, reply):
    models = dict.fromkeys(("able", "weak"), "bot/translator")
    judges = {"judge": lambda view: reply}
    run = parley.run("translation", models, roles=judges, items=1, store=tmp_path, seed=1)
    answer = visit(tmp_path).get(f"/run/{run.ref.id}/match/1")
    assert answer.status_code == 200
    assert reply in texts(answer)


KEY = "kq7Zt2Lw9Xv4Bn8Rm3Hs6Dy1"


@dataclass(frozen=True)
class Leak(Talk):
    """A rule and its models cite a key, each across the place where the page cuts their text."""

    async def play(self, referee, players):
        referee.note(said="n" * 190 + KEY)
        return await referee.ask(players, "Which number?", expect=Amount("n", 0, 9))


def test_a_secret_at_a_cut_is_hidden_whole(visit, tmp_path, monkeypatch):
    models = {
        "folded": lambda view: "w" * 2990 + KEY + '{"n": 3}',
        "thinks": lambda view: Reply('{"n": 4}', reasoning="t" * 2990 + KEY),
    }
    run = parley.run(Leak(), models, repeats=1, store=tmp_path, seed=1)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    client = visit(tmp_path)
    for page in ("match/1", "match/1?seat=players.1", "match/1?seat=players.2"):
        text = client.get(f"/run/{run.ref.id}/{page}").text
        pieces = [KEY[at : at + 6] for at in range(len(KEY) - 5)]
        assert not [piece for piece in pieces if piece in text]


def test_details_are_masked_before_they_are_cut():
    faults = [
        Violation(1, None, 0, "format", "d" * 290 + KEY, "asked again"),
        Violation(1, None, 0, "identity", "d" * 290 + KEY, "masked"),
    ]
    shown = [describe_fault(each, lambda text: text.replace(KEY, "[key]")).text for each in faults]
    assert all("[key]" in text for text in shown)
