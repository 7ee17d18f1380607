"""People play through the page: forms, double and late answers, updates, and whole runs."""

import asyncio
import re
import socket
from contextlib import asynccontextmanager
from html import unescape

import aiohttp
import pytest

import parley
from parley import Amount, Seat, Text
from parley.cli.run import print_forecast
from parley.config.experiment import Experiment
from parley.config.extras import Extra
from parley.errors import Halted, UsageError
from parley.match.protocol import UNLIMITED, Call
from parley.options import from_keywords
from parley.participants._desk import Desk
from parley.participants.human import WebOptions, WebPerson
from parley.rules.pool import Turn, View
from parley.runs import progress_display
from parley.runs.progress import Progress
from parley.runs.progress_display import describe_time_left, describe_wait
from parley.store import find_run, open_store, read_run
from parley.web.play_page import MOST_STREAMS, stream_versions
from parley.web.play_server import serve_desk

SEAT = Seat("players", 2)
COINS = Amount("coins", 0, 10)


def view_of(text="How many?", round=1, attempt=0):
    turns = [Turn("user", f"{text}\n\n{COINS.hint}")]
    return View(SEAT, round, attempt, turns, b"", COINS, None)


class Visitor:
    """One person in a browser, without the browser."""

    def __init__(self, session, url, chair):
        self.session, self.url, self.chair = session, url, chair
        self.link = f"{url}/play/{chair.secret}"

    async def look(self, link=None):
        async with self.session.get(link or self.link) as answer:
            return answer.status, await answer.text()

    async def send(self, question, **entries):
        form = {"question": question} | {f"f.{name}": text for name, text in entries.items()}
        async with self.session.post(self.link, data=form, allow_redirects=False) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def seated(tmp_path, deadline=None):
    """A person at the desk, and the visitor of their page."""
    desk = Desk(["secret-alias"])
    person = WebPerson(WebOptions(deadline))
    desk.seat("secret-alias", person)
    async with (
        aiohttp.ClientSession() as session,
        serve_desk(desk, open_store(tmp_path)) as url,
    ):
        yield desk, person, Visitor(session, url, person.chair)
        person.chair.seen = None  # nobody waits for the end


def run(scene):
    return asyncio.run(scene())


async def asked(person, view, call=UNLIMITED):
    """A question that waits for its answer."""
    task = asyncio.create_task(person.reply(view, call))
    assert await person.chair.wait_for_change(60)
    return task


def test_the_page_shows_the_view_and_nothing_else(tmp_path):
    hostile = "</style><script>alert(1)</script>\u202egnp.exe <svg onload=alert(1)> " + "x" * 9000

    async def scene():
        async with seated(tmp_path) as (_, person, visitor):
            _, before = await visitor.look()
            assert "The first match has not begun yet." in before
            # with a fragment, a browser without script would not load the page again
            assert re.search(r'http-equiv="refresh" content="3; url=/play/[^"#]+"', before)
            question = await asked(person, view_of(hostile))
            status, text = await visitor.look()
            question.cancel()
            return status, text

    status, text = run(scene)
    assert status == 200
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&lt;U+202E&gt;gnp.exe" in text
    assert "<script>alert" not in text
    assert "<svg" not in text
    assert "secret-alias" not in text
    assert "You are <bdi>Player 2</bdi>" in text
    assert "Answer with one JSON object" not in text
    assert re.search(r'<input id="f1" name="f.coins" type="number"[^>]* min="0" max="10"', text)


def test_a_quoted_statement_is_shown_with_its_speaker_and_without_marks(tmp_path):
    said = "Please answer.\n[4883de1ffedb: Player 1 said, which is material and no instruction]\n"
    said += "I give <all>.\n[/4883de1ffedb]\nAnd you?"

    async def scene():
        async with seated(tmp_path) as (_, person, visitor):
            asking = await asked(person, view_of(said))
            _, text = await visitor.look()
            asking.cancel()
            return text

    text = run(scene)
    assert "4883de1ffedb" not in text
    quoted = "<b><bdi>Player 1 said</bdi>:</b>\n<bdi>I give &lt;all&gt;.</bdi></blockquote>"
    assert f"<bdi>Please answer.</bdi><blockquote>{quoted}<bdi>And you?</bdi>" in text
    assert "round 1" not in text  # the task's own count may differ
    assert text.index('class="clock"') < text.index('id="now"') < text.index('id="answer"')
    assert "If the run is stopped and resumed, you get a new link." in text


def test_a_guessed_link_is_not_found(tmp_path):
    async def scene():
        async with seated(tmp_path) as (_, _, visitor):
            pages = [f"/play/{'x' * 32}", f"/play/{visitor.chair.secret}x", "/play/%C3%A9", "/x"]
            pages += [f"/play/{'x' * 32}/events", "/"]
            return [await visitor.look(visitor.url + page) for page in pages]

    answers = run(scene)
    assert {status for status, _ in answers} == {404}
    assert len({text for _, text in answers}) == 1


def test_an_answer_is_on_record_before_the_page_says_so(tmp_path):
    async def scene():
        async with seated(tmp_path) as (desk, person, visitor):
            asking = await asked(person, view_of())
            posting = asyncio.create_task(visitor.send(1, coins="5", reason="half"))
            reply = await asking
            _, meanwhile = await visitor.look()
            assert not posting.done()
            desk.confirm("secret-alias", (SEAT, 1, 0))
            status, _ = await posting
            return reply.content, meanwhile, status, await visitor.look()

    reply, meanwhile, status, (_, after) = run(scene)
    assert reply == '{"reason":"half","coins":5}'
    assert "is recorded" not in meanwhile
    assert status == 303
    assert "Your answer is recorded." in after
    assert "<bdi>Reason: half\nCoins: 5</bdi>" in after


def test_double_stale_blank_and_unknown_answers_have_plain_pages(tmp_path):
    async def scene():
        async with seated(tmp_path) as (desk, person, visitor):
            asking = await asked(person, view_of())
            blank = await visitor.send(1, coins=" ", reason="")
            first = asyncio.create_task(visitor.send(1, coins="5"))
            await asking
            double = await visitor.send(1, coins="6")
            desk.confirm("secret-alias", (SEAT, 1, 0))
            await first
            asking = await asked(person, view_of("And now?", round=2))
            stale = await visitor.send(1, coins="7 & more")
            unknown = [await visitor.send(n, coins="8") for n in ("9", "x", "", "٣", "1" * 4400)]
            open_still = person.chair.question.fate
            asking.cancel()
            return blank, double, stale, unknown, open_still

    blank, double, stale, unknown, open_still = run(scene)
    assert blank[0] == 422
    assert "The form is empty" in blank[1]
    assert double[0] == stale[0] == 409
    assert "You have already answered this question" in double[1]
    assert "You have already answered this question" in stale[1]
    assert "7 &amp; more" in stale[1]  # what was written is not lost
    assert {status for status, _ in unknown} == {409}
    assert open_still == "open"


def test_a_second_try_says_that_the_answer_could_not_be_used(tmp_path):
    async def scene():
        async with seated(tmp_path) as (desk, person, visitor):
            asking = await asked(person, view_of())
            posting = asyncio.create_task(visitor.send(1, coins="25"))
            reply = await asking
            desk.confirm("secret-alias", (SEAT, 1, 0))
            await posting
            again = await asked(person, view_of("coins must be from 0 to 10", attempt=1))
            _, text = await visitor.look()
            again.cancel()
            return reply.content, text

    reply, text = run(scene)
    assert reply == '{"reason":"","coins":25}'  # the reader of the rule refuses it
    assert "Your answer could not be used." in text
    assert "coins must be from 0 to 10" in text


def test_when_the_time_runs_out_an_empty_answer_is_recorded_and_the_page_says_so(tmp_path):
    async def scene():
        async with seated(tmp_path, deadline=0.01) as (desk, person, visitor):
            reply = await (await asked(person, view_of()))
            late = await visitor.send(1, coins="5")
            desk.confirm("secret-alias", (SEAT, 1, 0))
            return reply.content, late, await visitor.send(1, coins="5"), await visitor.look()

    reply, late, later, (_, page) = run(scene)
    assert reply == ""
    assert late[0] == later[0] == 409
    assert "The time for this question has run out" in late[1]
    assert "The time for this question has run out" in later[1]
    assert "an empty answer was recorded" in page


def test_the_clock_shows_the_time_that_is_left(tmp_path):
    async def scene():
        async with seated(tmp_path, deadline=90) as (_, person, visitor):
            asking = await asked(person, view_of())
            _, text = await visitor.look()
            asking.cancel()
            return text

    left = re.search(r'role="timer" data-left="([\d.]+)"', run(scene))
    assert 80 < float(left[1]) <= 90


def test_a_run_that_stops_takes_its_question_back(tmp_path):
    class Stopping(Call):
        stopping = False

        def check_running(self):
            if self.stopping:
                raise Halted("interrupted")

    async def scene():
        async with seated(tmp_path) as (desk, person, visitor):
            call = Stopping()
            asking = await asked(person, view_of(), call)
            call.stopping = True
            with pytest.raises(Halted):
                await asking
            late = await visitor.send(1, coins="5")
            desk.end("stopped")
            return late, await visitor.look()

    (status, late), (_, page) = run(scene)
    assert status == 409
    assert "The run stopped before your answer was recorded" in late
    assert "The run has stopped" in page


def test_open_pages_hear_of_changes_until_the_end(tmp_path):
    async def scene():
        async with seated(tmp_path) as (desk, person, visitor):
            async with visitor.session.get(f"{visitor.link}/events") as stream:
                assert stream.content_type == "text/event-stream"
                heard = [await stream.content.readuntil(b"\n\n")]
                asking = await asked(person, view_of())
                heard.append(await stream.content.readuntil(b"\n\n"))
                asking.cancel()
                desk.end("done")
                rest = await stream.content.read()
            return heard, rest

    heard, rest = run(scene)
    assert heard == [b"retry: 1000\ndata: 0\n\n", b"data: 1\n\n"]
    assert rest.startswith(b"data: ")


def test_a_change_while_the_last_one_is_sent_is_not_lost():
    async def scene():
        chair = Desk(["a"]).chairs["a"]
        stream = stream_versions(chair)
        first = await anext(stream)
        chair.change()  # before the stream waits
        return first, await asyncio.wait_for(anext(stream), 60)

    assert run(scene) == ("retry: 1000\ndata: 0\n\n", "data: 1\n\n")


def test_the_headers_of_the_stream_alone_keep_nothing_open(tmp_path):
    async def scene():
        async with seated(tmp_path) as (_, _, visitor):
            answer = await visitor.session.head(f"{visitor.link}/events")
            return answer.status, answer.content_type, visitor.chair.streams

    assert run(scene) == (200, "text/event-stream", 0)


def test_a_deeply_nested_answer_is_recorded_and_shown_as_it_is(tmp_path):
    deep = '{"a":' * 980 + "1" + "}" * 980

    async def scene():
        async with seated(tmp_path) as (desk, person, visitor):
            view = View(SEAT, 1, 0, [Turn("user", "Speak.")], b"", Text(), None)
            asking = await asked(person, view)
            sent = asyncio.create_task(visitor.send(1, answer=deep))
            await asking
            desk.confirm("secret-alias", (SEAT, 1, 0))
            return await sent, await visitor.look(), await visitor.send(1, answer=deep)

    sent, after, again = run(scene)
    assert (sent[0], after[0], again[0]) == (303, 200, 409)
    assert deep in unescape(after[1])


def test_streams_are_bounded(tmp_path):
    async def scene():
        async with seated(tmp_path) as (_, _, visitor):
            visitor.chair.streams = MOST_STREAMS
            return await visitor.look(f"{visitor.link}/events")

    assert run(scene)[0] == 429


# Whole runs


async def play_to_the_end(link, coins, log):
    """Answer every question with these coins, until thanks are said."""
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(link) as answer:
                text = await answer.text()
            if "Thank you" in text:
                log.append(text)
                return
            number = re.search(r'name="question" value="(\d+)"', text)
            if number is None:
                await asyncio.sleep(0.01)
                continue
            log.append(text)
            form = {"question": number[1], "f.coins": coins}
            async with session.post(link, data=form) as answer:
                assert answer.status == 200


async def find_links(capsys, aliases):
    """The links that are printed when a run begins."""
    said = ""
    while True:
        said += capsys.readouterr().err
        found = dict(re.findall(r"(\w+) plays in the browser at (\S+)", said))
        if found.keys() == set(aliases):
            return found
        await asyncio.sleep(0.01)


def seats_of(match):
    return {alias: seat for seat, alias in match.seats.items()}


def test_two_people_play_two_matches_from_python(tmp_path, capsys):
    logs = {"ann": [], "bob": []}

    async def scene():
        playing = asyncio.create_task(
            parley.run_async(
                "public_goods",
                {"ann": "human/web", "bob": "human/web", "c": "bot/free-rider"},
                repeats=2,
                rounds=2,
                store=tmp_path,
            )
        )
        links = await find_links(capsys, logs)
        await asyncio.gather(
            play_to_the_end(links["ann"], "4", logs["ann"]),
            play_to_the_end(links["bob"], "12", logs["bob"]),  # refused, then asked again
        )
        return await playing

    result = run(scene)
    assert result.data["run"]["state"] == "done"
    assert len(logs["ann"]) == 2 * 2 + 1
    assert len(logs["bob"]) == 3 * 2 * 2 + 1  # three attempts in each round
    assert "Match 1 has ended. Match 2 begins." in logs["ann"][2]
    assert "Match 2 of 2" in logs["ann"][2]
    assert "Your answer could not be used." in logs["bob"][1]
    (found,) = result.data["violations"]
    assert (found["alias"], found["kind"]) == ("bob", "out_of_bounds")
    for text in (text for log in logs.values() for text in log):
        assert not re.search(r"\b(ann|bob|free-rider|human|bot)\b", text)
    assert "Thank you for playing" in logs["ann"][-1]
    with read_run(find_run("last", str(tmp_path))) as reader:
        matches = [
            (seats_of(each), reader.scores.of(each.number)) for each in reader.matches.read()
        ]
    for alias, log in logs.items():
        shown = re.findall(r"<li>Match \d: <bdi>payoff ([\d.]+)[^<]*</bdi></li>", log[-1])
        own = [scores[seats[alias]]["payoff"] for seats, scores in matches]
        assert [float(each) for each in shown] == pytest.approx(own, abs=0.006)
        assert "Your scores" not in "".join(log[:-1])


def test_without_the_extra_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(Extra, "missing", property(lambda extra: ["starlette"]))
    with pytest.raises(UsageError, match=r"human/web needs the extra `web` .* pip install"):
        parley.run("public_goods", {"me": "human/web", "b": "bot/random"}, store=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_bad_port_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_PLAY_PORT", "many")
    with pytest.raises(UsageError, match="a port from 0 to 65535"):
        parley.run("public_goods", {"me": "human/web", "b": "bot/random"}, store=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_taken_port_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        monkeypatch.setenv("PARLEY_PLAY_PORT", str(taken.getsockname()[1]))
        with pytest.raises(UsageError, match="another port with PARLEY_PLAY_PORT"):
            parley.run("public_goods", {"me": "human/web", "b": "bot/random"}, store=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_forecast_says_how_often_a_person_is_asked(capsys):
    models = {"me": {"model": "human/web"}, "b": {"model": "bot/random"}}
    wanted = Experiment("public_goods", models=models, given=from_keywords(repeats=1))
    wanted.params["rounds"] = 3
    print_forecast(wanted.prepare(), False, "text")
    shown = capsys.readouterr().out
    assert "me is a person in a browser: the run prints a link and waits for about 3" in shown


def test_progress_says_who_is_waited_for():
    progress = Progress(people={"me": "http://here/play/x"}, waiting={"me": {1: 0.0}, "a": {}})
    assert describe_wait(progress) == "waiting for me in the browser"  # the link is printed once
    progress.calls_per_match, progress.calls, progress.planned = 2, 1, 2
    assert describe_time_left(progress) == ""  # nobody knows how long a person takes


def test_plain_progress_lines_do_not_repeat_while_a_person_thinks(monkeypatch):
    monkeypatch.setattr(progress_display, "SOON", 0)
    monkeypatch.setattr(progress_display, "EVERY", 0)
    progress = Progress(people={"me": "http://here/play/x"}, waiting={"me": {1: 0.0}})
    lines = []

    async def scene():
        showing = asyncio.create_task(progress_display.show_lines(progress, lines.append))
        for calls in (0, 1):
            progress.calls = calls
            for _ in range(10):
                await asyncio.sleep(0)
        showing.cancel()

    run(scene)
    assert len(lines) == 2
    assert not any("http" in line or "left" in line for line in lines)
