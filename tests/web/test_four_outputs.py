"""One match in the terminal, in a report, on its page and as JSON: the same words everywhere, and
hostile texts stay texts."""

import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

import parley
from parley import Amount, Fields, Metric, Role, Task
from parley.cli import command
from parley.match.protocol import Reply
from parley.report.page_options import PageOptions
from parley.report.run_page import render_run
from parley.results.result import RunResult
from parley.results.scores import parse_metric
from parley.results.transcript import TranscriptReader
from parley.store import find_run, read_run
from parley.tables import format_number, make_visible, show_hidden
from tests.runs.test_people_votes import PEOPLE, vote
from tests.runs.test_recall import evolve

RUNS = Path(__file__).parents[1] / "data" / "runs"
KEY = "kq7Zt2Lw9Xv4Bn8Rm3Hs6Dy1"
HOSTILE = (
    "</bdi></style></article><script>alert(1)</script><img src=x onerror=alert(3)>"
    "\x1b[2J\x1b]0;owned\x07\u202eevil\u2066\u200b {{7*7}} {% raw %} "
)
VOTE = {
    "type": "object",
    "properties": {"score": {"type": "number"}, "basis": {"type": "string"}},
    "required": ["score", "basis"],
}


@dataclass(frozen=True)
class Judged(Task):
    """Two seats name a number, and a judge says of each what it thinks."""

    roles = {"players": Role(2), "judge": Role(1, instrument=True)}

    async def play(self, referee, players, judge):
        referee.tell(players, f"You play. {HOSTILE}\n\n{'This is known to everybody. ' * 10}")
        for _ in range(2):
            answers = await referee.ask(
                players,
                f"Which?\n\n{'This is known to everybody. ' * 10}",
                expect=Amount("n", 0, 9),
            )
        referee.note(
            said=HOSTILE + "n" * (190 - len(HOSTILE)) + KEY, passed=False, faults=[HOSTILE]
        )
        await referee.ask(judge, "And?", expect=Fields({"players.1": VOTE}))
        return answers

    def metrics(self, seats):
        return [Metric("n", -9, 9, epsilon=0.1)]


def end_at(length, text):
    """A text, filled up, and a key that begins so many characters in."""
    return text + "w" * (length - len(text)) + KEY


def hostile(view):
    if view.attempt == 0 and view.round == 1:
        return end_at(2_990, f"{HOSTILE} I am GPT-4 ")
    if view.round == 1:
        return Reply(HOSTILE + '{"n": 3}', reasoning=end_at(2_990, HOSTILE))
    return Reply(end_at(3_990, HOSTILE) + '{"n": 3}', reasoning=end_at(3_990, HOSTILE))


def judging(view):
    return json.dumps({"players.1": {"score": 3, "basis": end_at(1_990, HOSTILE)}})


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory):
    models = {"<i>bad</i>": hostile, "good": lambda view: '{"n": 4}'}
    place = tmp_path_factory.mktemp("hostile")
    return parley.run(
        Judged(), models, roles={"judge": {"jay": judging}}, repeats=1, store=place, seed=1
    ).ref


@pytest.fixture(scope="module")
def voted_run(tmp_path_factory):
    place = tmp_path_factory.mktemp("voted")
    result = evolve(place, {"m": "bot/student"}, count=2, evolve=PEOPLE)
    vote(result.ref)
    return parley.resume(result).ref


class Texts(HTMLParser):
    """The text of a page without the labels of what is folded."""

    def __init__(self, page):
        super().__init__()
        self.found, self.hidden = [], False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.hidden = tag in ("summary", "script", "style", "title")

    def handle_endtag(self, tag):
        self.hidden = False

    def handle_data(self, data):
        self.found += [] if self.hidden else [data]


def squeeze(text):
    """A text without what its layout is made of: spaces, lines, and fences around code."""
    text = re.sub(r"^[ │]*```.*$", "", text, flags=re.MULTILINE)
    return re.sub(r"[\s│]+", "", text).replace("−", "-")


@dataclass(frozen=True)
class Outputs:
    terminal: str
    page: str
    report: str
    data: dict

    @property
    def texts(self):
        pages = ("".join(Texts(page).found) for page in (self.page, self.report))
        return [squeeze(text) for text in (self.terminal, *pages)]


@pytest.fixture
def outputs(visit):
    """`outputs(ref, number)`: one match in all forms."""

    def made(ref, number):
        file = str(ref.location)
        asked = [("show", file, str(number)), ("show", file, str(number), "--json")]
        terminal, data = (
            CliRunner().invoke(command, words, catch_exceptions=False).stdout for words in asked
        )
        page = visit(Path(file).parent).get(f"/run/{ref.id}/match/{number}")
        assert page.status_code == 200, page.text[:500]
        result = RunResult(ref)
        with read_run(ref) as reader:
            options = PageOptions(matches=reader.info.planned)
        report = render_run(result, options, "m")
        (own,) = re.findall(
            rf'<details id="m-matches-{number}">.*?(?=<details id="m-matches-|</section>)',
            report,
            re.S,
        )
        return Outputs(terminal, page.text, own, json.loads(data))

    return made


def check_agreement(ref, found, number):
    """Turns, scores, faults, notes and votes are the same everywhere."""
    with read_run(ref) as reader:
        transcript = TranscriptReader(reader, str).read(reader.matches.find(number))
        metrics = map(parse_metric, reader.info.identity["metrics"])
        digits = {each.name: each.digits for each in metrics}
    replies = [turn for turn in transcript.turns if turn.kind == "reply"]
    said = [reply for each in found.data["rounds"] for reply in each["replies"]]
    assert [(each.seat.key, each.text) for each in replies] == [
        (each["seat"], each["reply"]) for each in said
    ]
    assert sum(len(each.faults) for each in replies) == len(found.data["violations"])
    for text in found.texts:
        at = 0
        for turn in transcript.turns:
            at = text.find(squeeze(turn.speaker), at)
            assert at >= 0, turn.speaker
            at = text.find(squeeze(turn.unread), at)
            assert at >= 0, turn.unread
        for turn in transcript.turns:
            for mark in (*turn.marks, *turn.faults):
                assert squeeze(mark.text) in text
        for each in transcript.rounds:
            for note in each.notes:
                assert squeeze(note.text) in text
        for words in (*transcript.votes, *(each.text for each in transcript.recalled)):
            assert squeeze(words) in text
        scores = text.partition("Scoresbyround")[0].rpartition("Scores")[2]
        for key, by in found.data["scores"].items():
            seat = str(parley.Seat(*key.split(".")[:1], *map(int, key.split(".")[1:])))
            assert squeeze(seat) in scores
            for name, value in by.items():
                assert format_number(value, digits[name]) in scores
    for fault in found.data["violations"]:
        words = (
            fault["detail"]
            if fault["outcome"] == "masked"
            else f"{fault['kind']}: {fault['detail']}; {fault['outcome']}"
        )
        assert all(squeeze(words) in text for text in found.texts)


@pytest.mark.parametrize(
    ("name", "number"),
    [("violations", 1), ("code_review", 1), ("word_guessing", 2), ("translation", 1), ("qa", 3)],
)
def test_all_outputs_say_the_same(outputs, tmp_path, name, number):
    with read_run(find_run(RUNS / f"{name}.parley")) as reader:
        copy = tmp_path / f"{reader.info.id}.parley"
    copy.write_bytes((RUNS / f"{name}.parley").read_bytes())
    ref = find_run(copy)
    check_agreement(ref, outputs(ref, number), number)


def test_all_outputs_tell_votes_of_people_and_what_was_recalled(outputs, voted_run):
    for number in (1, 3):
        check_agreement(voted_run, outputs(voted_run, number), number)
    first = outputs(voted_run, 1)
    assert all(squeeze("Student (m): a success (1 yes, 0 no, 0 cannot tell)") in text
               for text in first.texts)  # fmt: skip
    (verdict,) = first.data["people_verdicts"]
    assert verdict == {"seat": "student", "success": True, "yes": 1, "no": 0, "unsure": 0}


def test_a_hostile_match_is_text_in_all_outputs(outputs, hostile_run):
    found = outputs(hostile_run, 1)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", found.terminal)
    for line in found.terminal.splitlines():
        assert "</bdi></style>" not in line or line.startswith(("  │ ", "note: ", "      ", "  ! "))
    for page in (found.page, found.report):
        for tag in ("<script>alert", "<img src=x", "<i>bad", "</bdi></style>"):
            assert tag not in page
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", page)
        assert "{{7*7}} {% raw %}" in page
        assert "&lt;U+202E&gt;evil" in page
        assert page.count("<bdi>") == page.count("</bdi>")
    assert found.data["rounds"][0]["replies"][0]["reply"].startswith(HOSTILE)
    for text in found.texts:
        assert squeeze(make_visible(HOSTILE)) in text or squeeze(show_hidden(HOSTILE)) in text


def test_a_secret_is_hidden_in_all_outputs_wherever_its_text_is_cut(
    outputs, hostile_run, monkeypatch
):
    shown = outputs(hostile_run, 1)
    assert KEY in shown.terminal
    assert KEY in shown.page
    assert KEY in json.dumps(shown.data)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    found = outputs(hostile_run, 1)
    pieces = [KEY[at : at + 6] for at in range(len(KEY) - 5)]
    for text in (found.terminal, found.page, found.report, json.dumps(found.data)):
        assert not [piece for piece in pieces if piece in text]
