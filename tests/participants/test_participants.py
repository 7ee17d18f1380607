"""Participants: each kind answers a view, and what is wrong with one is said before the first
call."""

import asyncio
import json
import os
import pty
import re
import subprocess
import sys
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from io import StringIO

import pytest

import parley
from parley import Amount, Example, Metric, Role, Task, Text, UsageError
from parley.errors import Halted, ParticipantError, Refused, Rejected
from parley.match.match import Match, normalise_reply
from parley.match.protocol import UNLIMITED, Reply, Usage
from parley.match.record import RecordedCall
from parley.participants import _registry as participants
from parley.participants._model import Model
from parley.participants._registry import parse_model_name
from parley.participants.human import show_message
from parley.providers import _registry as providers
from parley.rules.pool import BotKnowledge, ContentPart, Seat, Turn, View, text_of
from parley.rules.quotations import mark_quotation
from parley.store.call_rows import call_row
from parley.tasks.public_goods import PublicGoods
from parley.testing.by_hand import QUOTATION_KEY
from parley.testing.server import Server, echo_of_the_key, says, sent

PLAYER = Seat("players", 1)
GAME = PublicGoods()


def view_of(*said, expect=None, examples=None, round=1, attempt=0, seed=0):
    """The view of a seat that heard the first of these words, said the second, and so on."""
    turns = [
        Turn("assistant" if n % 2 else "user", text)
        for n, text in enumerate(said or ("How many?",))
    ]
    reader = expect or Amount("coins", 0, 10)
    return View(
        PLAYER, round, attempt, turns, b"", reader, examples, BotKnowledge(GAME, None, seed)
    )


def made(model, **options):
    return participants.make_participant(model, options, PublicGoods, "a")


def said(participant, *views):
    """What a participant says to these views, one after the other."""

    async def speak():
        try:
            return [await participant.reply(view, UNLIMITED) for view in views or (view_of(),)]
        finally:
            await participant.close()

    return asyncio.run(speak())


# Names


@pytest.mark.parametrize(
    ("text", "alias", "model"),
    [
        ("bot/random", "random", "bot/random"),
        ("a=bot/random", "a", "bot/random"),
        ("vllm/Qwen/Qwen3-32B", "Qwen3-32B", "vllm/Qwen/Qwen3-32B"),
        ("ollama/llama3:8b", "llama3-8b", "ollama/llama3:8b"),
        ("python/my.players:first", "first", "python/my.players:first"),
        (
            "http/http://127.0.0.1:80/play?a=b",
            "127.0.0.1-80-play",
            "http/http://127.0.0.1:80/play?a=b",
        ),
        ("me@home=human/terminal", "me@home", "human/terminal"),
        ("scripted/a/b.txt", "b.txt", "scripted/a/b.txt"),
    ],
)
def test_a_model_has_the_alias_it_was_given_or_its_own_name(text, alias, model):
    assert parse_model_name(text) == (alias, model)


@pytest.mark.parametrize(
    ("text", "says_what"),
    [
        ("random", "PROVIDER/NAME"),
        ("bot/", "PROVIDER/NAME"),
        ("/random", "PROVIDER/NAME"),
        ("", "PROVIDER/NAME"),
        ("bto/random", "did you mean 'bot'"),
        ("a b=bot/random", "an alias may contain only"),
        ("=bot/random", "an alias may contain only"),
        ("vllm/my model", "choose one with -m ALIAS=vllm/my model"),
        ("http/http://[", "an alias may contain only"),
    ],
)
def test_a_name_that_cannot_be_one_is_told(text, says_what):
    with pytest.raises(UsageError, match=says_what):
        parse_model_name(text)


# Bots


def test_a_bot_says_the_same_to_the_same_view():
    for name in ("random", "free-rider", "altruist", "gradual", "reciprocator", "null"):
        views = [view_of(round=2, seed=3), view_of(round=2, seed=3)]
        first, again = said(made(f"bot/{name}"), *views)
        assert first == again


def test_a_random_bot_says_other_things_in_other_rounds_attempts_and_matches():
    views = [view_of(), view_of(round=2), view_of(attempt=1), view_of(seed=1)]
    assert len(set(said(made("bot/random"), *views))) == 4


def test_options_of_a_bot_have_the_types_of_its_function():
    @dataclass(frozen=True)
    class Game(Task):
        roles = {"players": Role()}

        async def play(self, referee, players):
            return {}

        def metrics(self, seats):
            return [Metric("points", 0, 1, 1)]

    def stubborn(bot, coins: int = 1, loud: bool = False) -> str:
        return parley.ReplyText(f"{coins + 1} {loud}")

    Game.bots = {"stubborn": stubborn}
    make = partial(participants.make_participant, "bot/stubborn", task=Game, where="a")
    assert said(make({"coins": "4", "loud": "yes"})) == ["5 True"]
    with pytest.raises(UsageError, match="did you mean 'coins'"):
        make({"coin": "4"})
    with pytest.raises(UsageError, match="must be a whole number, not 'four'"):
        make({"coins": "four"})
    with pytest.raises(UsageError, match="did you mean 'stubborn'"):
        participants.make_participant("bot/stuborn", {}, Game, "a")


# Scripted


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("a.txt", "5\n\n  \n7 coins\r\n", ["5", "7 coins", "7 coins"]),
        ("a.txt", '"two\\nlines"\n"open\n{"coins": 3}', ["two\nlines", '"open', '{"coins": 3}']),
        ("a.txt", "\ufeffa\u2028b\x0cc\nd", ["a\u2028b\x0cc", "d", "d"]),
        ("a.jsonl", '"a"\n{"coins": 1}\n', ["a", '{"coins": 1}', '{"coins": 1}']),
        ("a.json", '["a", {"coins": 1}, 7]', ["a", '{"coins": 1}', "7"]),
        ("A.JSON", '["é"]', ["é", "é", "é"]),
    ],
)
def test_scripted_replies_come_in_order_and_the_last_is_repeated(tmp_path, name, text, lines):
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    views = [view_of("1"), view_of("1", "x", "2"), view_of("1", "x", "2", "y", "3")]
    assert said(made(f"scripted/{tmp_path / name}"), *views) == lines


@pytest.mark.parametrize(
    ("name", "data", "says_what"),
    [
        ("none.txt", None, "cannot be read: No such file"),
        (".", None, "cannot be read: Is a directory"),
        ("a\0b", None, "cannot be read: embedded null byte"),
        ("empty.txt", b" \n\n", "has no replies"),
        ("empty.json", b"[]", "has no replies"),
        ("bad.json", b"[1,", "not valid JSON"),
        ("deep.json", b"[" * 100_000, "not valid JSON"),
        ("object.json", b'{"a": 1}', "must be a JSON list"),
    ],
)
def test_a_file_without_replies_is_told(tmp_path, name, data, says_what):
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=says_what):
        made(f"scripted/{tmp_path / name}")


def test_a_file_in_another_encoding_is_read_as_far_as_it_goes(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\n")
    assert said(made(f"scripted/{tmp_path / 'a.txt'}")) == ["caf\ufffd"]


# Functions


class Counting:
    """Counts its calls, in an instance that can be called."""

    def __init__(self):
        self.calls = 0

    def __call__(self, view, step: int = 1):
        self.calls += step
        return str(self.calls)


class Waiting:
    async def __call__(self, view):
        await asyncio.sleep(0)
        return view.text


async def waits(view, coins: float = 1):
    await asyncio.sleep(0)
    return f"{coins:g} of {len(view)}"


def fails(view):
    return next(iter([]))


def leaves(view):
    sys.exit(1)


class Odd(BaseException):
    pass


class Mute(Exception):
    def __str__(self):
        raise ValueError


def raises(wrong):
    def function(view):
        raise wrong

    return function


def waiting(function):
    """The same function, async."""

    async def waits(view):
        return function(view)

    return waits


def test_functions_plain_async_and_instances_all_speak():
    assert said(made(lambda view: view.text + "!")) == ["How many?!"]
    assert said(made(waits, coins="2.5")) == ["2.5 of 1"]
    assert said(made(Counting(), step="2"), view_of(), view_of()) == ["2", "4"]
    assert said(made(Waiting())) == ["How many?"]
    assert said(made(partial(waits, coins=3))) == ["3 of 1"]
    assert said(made(lambda view: Reply("x", model_served="mine"))) == [
        Reply("x", model_served="mine")
    ]
    assert said(made(lambda view: b"caf\xe9")) == ["caf\ufffd"]


@pytest.mark.parametrize(
    ("function", "says_what"),
    [
        (
            lambda view: None,
            r"must return a text, a dict .*, not NoneType \(.* in test_participants.py, line ",
        ),
        (lambda view: 5, "must return a text, a dict .*, not int"),
        (lambda view: Reply(None), "must return a reply whose content is text, not NoneType"),
        (lambda view: 1 / 0, "ZeroDivisionError: division by zero"),
        (fails, "StopIteration"),
        (leaves, "SystemExit: 1"),
        (lambda: "", "TypeError"),
        (lambda view: {1: 2}, "TypeError"),
        (lambda view: Reply(("a",)), r"an invalid part \(str\)"),
        (lambda view: Reply((ContentPart("text", None),)), r"an invalid part \(ContentPart\)"),
        (lambda view: Reply(["a"]), "whose content is text, not list"),
        (lambda view: Reply("x", provider_state={1, 2}), "a provider_state that is not JSON"),
        (lambda view: Reply("x", provider_state=2**70), "a provider_state that is not JSON"),
        (raises(Halted("the run is over")), "Halted: the run is over"),
        (raises(KeyboardInterrupt()), "KeyboardInterrupt"),
        (raises(GeneratorExit()), "GeneratorExit"),
        (raises(asyncio.CancelledError()), "CancelledError"),
        (raises(Odd()), "Odd"),
        (raises(Mute()), "Mute: .the message cannot be printed"),
        (raises(ValueError("\ud800\0" + "x" * 10**6)), "ValueError"),
    ],
)
def test_a_function_that_gives_no_text_is_a_fault_of_the_participant(function, says_what):
    for form in (function, waiting(function)) if "TypeError" not in says_what else (function,):
        with pytest.raises(ParticipantError, match=says_what) as told:
            said(made(form))
        assert type(told.value) is ParticipantError
        assert len(str(told.value).encode()) < 5000


@pytest.mark.parametrize("kind", [ParticipantError, Refused, Rejected])
def test_a_function_may_say_itself_that_it_cannot_answer(kind):
    class Sub(kind):
        def __init__(self, *, why):
            super().__init__(why)

    for form in (raises(Sub(why="no")), waiting(raises(Sub(why="no")))):
        with pytest.raises(ParticipantError, match=r"^no$") as told:
            said(made(form))
        assert type(told.value) is kind


@pytest.mark.parametrize(
    "odd",
    [
        {"reasoning": None},
        {"reasoning": b"x"},
        {"finish": None},
        {"finish": ["stop"]},
        {"usage": None},
        {"usage": Usage(2**70, -1, True, 1.5)},
        {"model_served": 5, "latency": "long"},
        {"model_served": "\ud800\0", "latency": float("nan"), "sent": 3},
        {"response_id": "\ud800", "request_id": "x" * 201, "system_fingerprint": 7},
        {"content": (ContentPart("text", "\ud800\0"),), "latency": 10**400},
        {"provider_state": {"a": (1, float("nan"))}},
    ],
    ids=str,
)
def test_an_odd_reply_is_made_fit_for_the_record(odd):
    class Serves:
        async def complete(self, request):
            return Reply(**{"content": "x", **odd})

        async def close(self):
            pass

    for participant in (made(lambda view: Reply(**{"content": "x", **odd})), Model(Serves())):
        [reply] = said(participant)
        call_row(1, RecordedCall(1, PLAYER, 0, b"", normalise_reply(reply), 0.0))
        text_of(reply.content).encode()
        assert reply.usage == Usage()
        assert reply.finish in ("stop", "other")
        assert reply.response_id is reply.request_id is reply.system_fingerprint is None
        assert reply.provider_state in (None, {"a": [1, None]})


def test_a_real_cancellation_passes_through_a_function():
    async def stubborn(view):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("no") from None

    async def cancelled(function):
        task = asyncio.ensure_future(made(function).reply(view_of(), UNLIMITED))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    async def sleeps(view):
        await asyncio.sleep(60)

    for function in (sleeps, stubborn, lambda view: time.sleep(0.5)):
        assert asyncio.run(cancelled(function))


def test_plain_functions_wait_for_one_another_however_many_they_are():
    number = (os.cpu_count() or 1) + 40
    barrier = threading.Barrier(number, timeout=20)

    def meets(view):
        barrier.wait()
        return "met"

    async def speak():
        player = made(meets)
        return await asyncio.gather(*(player.reply(view_of(), UNLIMITED) for _ in range(number)))

    assert asyncio.run(speak()) == ["met"] * number


def test_a_function_that_never_answers_does_not_keep_the_program():
    code = """
import asyncio, time
from parley.participants.python import Python
async def main():
    try:
        await asyncio.wait_for(Python(lambda view: time.sleep(60), {}, "f").reply(None, None), 0.1)
    except TimeoutError:
        print("given up")
asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert (ran.stdout, ran.stderr) == ("given up\n", "")


def test_a_plain_function_sees_the_context_of_its_call():
    place = ContextVar("place", default="nowhere")

    async def speak():
        place.set("here")
        return await made(lambda view: place.get()).reply(view_of(), UNLIMITED)

    assert asyncio.run(speak()) == "here"


def test_a_value_given_to_a_function_shows_in_no_error(monkeypatch):
    monkeypatch.setenv("MYCRED", "given-0123456789")

    def function(view, to: str = ""):
        raise ValueError(f"cannot reach {to}")

    with pytest.raises(ParticipantError, match=r"cannot reach \[key\]"):
        said(made(function, to="${MYCRED}"))


def test_a_provider_that_is_not_ours_gets_its_address_in_full(monkeypatch):
    @dataclass
    class Foreign:
        name: str
        base_url: str = ""

    monkeypatch.setenv("WHERE", "host")
    monkeypatch.setattr(providers, "provider_class", lambda family: Foreign)
    assert made("foreign/m", base_url="http://${WHERE}/v1").provider.base_url == "http://host/v1"


@pytest.mark.parametrize(
    ("model", "options", "says_what"),
    [
        ("python/nowhere", {}, "must have the form python/package.module:function"),
        ("python/nowhere:f", {}, "cannot be imported: ModuleNotFoundError"),
        ("python/players:missing", {}, "cannot be imported: AttributeError"),
        ("python/players:NUMBER", {}, "must be a function, not int"),
        ("python/players:Player", {}, "is a class"),
        ("python/players:play", {"coin": "1"}, "did you mean 'coins'"),
        ("python/players:play", {"api_key": "x"}, "api_key_env"),
    ],
)
def test_a_function_that_cannot_be_used_is_told_at_the_start(
    tmp_path, monkeypatch, model, options, says_what
):
    (tmp_path / "players.py").write_text(
        "NUMBER = 1\nclass Player:\n    def first(view): return 'first'\n"
        "def play(view, coins: int = 2): return str(coins)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "players", raising=False)
    with pytest.raises(UsageError, match=says_what):
        made(model, **options)
    assert said(made("python/players:play", coins="3")) == ["3"]
    assert said(made("python/players:Player.first")) == ["first"]


# Services


def served(*answers, url="", views=(), **options):
    """What a service's answers become, and what it was asked."""

    async def speak():
        async with Server(*answers) as server:
            service = made(f"http/{url or server.url}", **options)
            try:
                return [
                    await service.reply(view, UNLIMITED) for view in views or (view_of(),)
                ], server
            finally:
                await service.close()

    return asyncio.run(speak())


def test_a_service_is_sent_the_view_and_answers_with_a_reply():
    view = view_of("How many?", "Five.", "And now?", round=2, attempt=1)
    [reply, plain], server = served(
        {"reply": "Six.", "model": "mine"}, "Seven.", views=(view, view)
    )
    assert server.asked[0].path == "/v1"
    assert server.asked[0].body == {
        "seat": "Player 1",
        "round": 2,
        "attempt": 1,
        "messages": [
            {"role": "user", "content": "How many?"},
            {"role": "assistant", "content": "Five."},
            {"role": "user", "content": "And now?"},
        ],
        "schema": Amount("coins", 0, 10).schema,
    }
    assert (reply.content, reply.model_served, plain.content, plain.model_served) == (
        "Six.",
        "mine",
        "Seven.",
        None,
    )
    assert reply.latency > 0


@pytest.mark.parametrize("answer", [{}, {"reply": 5}, {"reply": None}, [], 3, None], ids=str)
def test_a_service_that_answers_otherwise_is_told_what_was_wanted(answer):
    with pytest.raises(
        ParticipantError, match=re.escape('the service must answer with {"reply": "…"}')
    ):
        served(answer)


DEEP = b"[" * 1000 + b"]" * 1000


@pytest.mark.parametrize("name", [b"reply", b"error", b"message"])
@pytest.mark.parametrize("status", [200, 400])
def test_a_service_that_nests_too_deep_is_a_fault_and_no_crash(name, status):
    for body in (
        b'{"%s": %s}' % (name, DEEP),
        b'{"error": {"message": %s, "code": %s, "type": %s}}' % (DEEP, DEEP, DEEP),
    ):
        with pytest.raises(ParticipantError) as told:
            served(sent(body, status))
        assert len(str(told.value)) < 700


def test_a_service_with_a_date_that_no_calendar_has_is_asked_again(monkeypatch):
    monkeypatch.setattr("parley.providers._endpoint_health.FIRST_PAUSE", 0.001)
    late = sent(b"", 429, Retry_After="Mon, 01 Jan 99999999999999 00:00:00 GMT")
    [reply], server = served(late, {"reply": "x"})
    assert (reply.content, len(server.asked)) == ("x", 2)


def test_what_nobody_foresaw_in_a_service_is_a_fault_of_the_participant(monkeypatch):
    async def broken(self, body, call):
        raise OverflowError("unforeseen")

    monkeypatch.setattr("parley.providers._transport.Transport.post", broken)
    with pytest.raises(ParticipantError, match="the call failed: OverflowError: unforeseen"):
        served({"reply": "x"})


def test_a_value_in_a_services_address_is_not_shown(monkeypatch):
    monkeypatch.setenv("GATEWAY", "gw-0123456789abcdef")

    async def ask():
        async with Server(sent(b"no entry for gw-0123456789abcdef", 401)) as server:
            service = made("http/" + server.url + "/${GATEWAY}/?key=${GATEWAY}")
            try:
                await service.reply(view_of(), UNLIMITED)
            finally:
                assert server.asked[0].path == "/v1/gw-0123456789abcdef/?key=gw-0123456789abcdef"
                await service.close()

    with pytest.raises(
        Refused, match=r"/v1/\$\{GATEWAY\}/: HTTP 401: no entry for \[key\] "
    ) as told:
        asyncio.run(ask())
    assert "gw-" not in str(told.value)


def test_a_services_key_goes_into_the_header_and_nowhere_else(monkeypatch):
    monkeypatch.setenv("MY_CREDENTIAL", "my-secret-credential")
    [reply], server = served(
        echo_of_the_key(200, lambda said: {"reply": said}), api_key_env="MY_CREDENTIAL"
    )
    assert server.asked[0].headers["authorization"] == "Bearer my-secret-credential"
    assert reply.content == "Bearer [key]"
    with pytest.raises(Refused, match=r"HTTP 403: \"no, Bearer \[key\]\""):
        served(echo_of_the_key(403, lambda said: f"no, {said}"), api_key_env="MY_CREDENTIAL")


@pytest.mark.parametrize(
    ("url", "options", "says_what"),
    [
        ("localhost", {}, "an address like"),
        ("http://me:hunter22@host", {"deadlin": 1}, "user name or password"),
        ("http://host/?api_key=hunter22", {}, "contains an API key"),
        ("http://host", {"deadlin": 1}, "did you mean 'deadline'"),
        ("http://host", {"deadline": -1}, "more than 0"),
        ("http://host", {"api_key_env": "NOT_SET_HERE"}, "NOT_SET_HERE"),
    ],
)
def test_a_service_that_cannot_be_asked_is_told_at_the_start(url, options, says_what):
    with pytest.raises(UsageError, match=says_what) as told:
        made(f"http/{url}", **options)
    assert "hunter22" not in str(told.value)


# Models


class Listening:
    """A provider that keeps what it is asked."""

    def __init__(self):
        self.requests = []

    async def complete(self, request):
        self.requests.append([(turn.role, turn.content) for turn in request.turns])
        return Reply("fine")

    async def close(self):
        pass


def test_a_system_text_stands_first_or_is_folded_into_the_first_turn():
    view = view_of("How many?", "Five.", "And now?")
    for folded, first in (
        (False, [("system", "Be brief."), ("user", "How many?")]),
        (True, [("user", "Be brief.\n\nHow many?")]),
    ):
        provider = Listening()
        said(Model(provider, "Be brief.", folded), view)
        assert provider.requests == [[*first, ("assistant", "Five."), ("user", "And now?")]]


def test_the_system_text_is_an_option_and_folding_is_yes_or_no():
    async def speak(**options):
        async with Server(says()) as server:
            model = made("vllm/m", base_url=server.url, **options)
            await model.reply(view_of(), UNLIMITED)
            await model.close()
            return server.asked[0].body["messages"]

    user = {"role": "user", "content": "How many?"}
    assert asyncio.run(speak()) == [user]
    assert asyncio.run(speak(system="Be brief.")) == [
        {"role": "system", "content": "Be brief."},
        user,
    ]
    folded = asyncio.run(speak(system="Be brief.", no_system_role="on"))
    assert folded == [{"role": "user", "content": "Be brief.\n\nHow many?"}]
    with pytest.raises(UsageError, match="true or false"):
        made("vllm/m", no_system_role="perhaps")


@dataclass(frozen=True)
class Quiz(Task):
    """Two questions with examples, after one without."""

    roles = {"student": Role()}

    async def play(self, referee, student):
        await referee.ask(student, "Ready?")
        for question in ("2+2?", "3+3?"):
            await referee.ask(
                student, question, examples=[Example("1+1?", "2"), Example("0+1?", "1")]
            )
        return {student: 1}

    def metrics(self, seats):
        return [Metric("points", 0, 1, 1)]


@pytest.mark.parametrize("folded", [False, True])
def test_examples_stand_once_before_the_question_they_belong_to_and_roles_alternate(folded):
    provider = Listening()
    cast = {Seat("student"): Model(provider, "Be brief.", folded)}
    asyncio.run(Match(Quiz(), cast, quotation_key=QUOTATION_KEY).play())
    first = (
        [("user", "Be brief.\n\nReady?")]
        if folded
        else [("system", "Be brief."), ("user", "Ready?")]
    )
    shown = [("user", "1+1?"), ("assistant", "2"), ("user", "0+1?"), ("assistant", "1")]
    last = [
        *first,
        ("assistant", "fine"),
        *shown,
        ("user", "2+2?"),
        ("assistant", "fine"),
        ("user", "3+3?"),
    ]
    assert provider.requests == [first, last[:-2], last]
    roles = [role for role, _ in last if role != "system"]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]


def test_the_digest_of_examples_is_kept_with_the_reply():
    views = [
        view_of("2+2?", expect=Text(), examples=given)
        for given in (None, (0, (Example("1", "2"),)), (0, (Example("1", "3"),)))
    ]
    none, one, other = [reply.sent for reply in said(Model(Listening()), *views)]
    assert none is None
    assert one
    assert other
    assert one != other


def test_a_provider_of_somebody_elses_that_breaks_is_a_fault_of_the_participant():
    class Broken(Listening):
        async def complete(self, request):
            raise KeyError("choices")

    with pytest.raises(ParticipantError, match="the provider failed: KeyError: 'choices'"):
        said(Model(Broken()))


def test_a_server_never_sees_more_at_once_than_the_limit_of_its_model(tmp_path):
    async def season(**options):
        async with Server(says('{"coins": 5}'), pause=0.02) as server:
            model = {"model": "vllm/m", "base_url": server.url, **options}
            result = await parley.run_async(
                "public_goods",
                {"a": model, "b": "bot/altruist"},
                repeats=8,
                store=tmp_path,
                concurrency=8,
                rounds=2,
            )
            assert len(server.asked) == 16
            assert result.data["run"]["state"] == "done"
            return server.most

    assert asyncio.run(season()) > 2
    assert asyncio.run(season(concurrency="2")) == 2


def test_a_key_shows_nowhere_in_a_run_that_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_CREDENTIAL", "my-secret-credential")

    async def season():
        async with Server(echo_of_the_key(401, lambda said: {"error": said})) as server:
            model = {"model": "vllm/m", "base_url": server.url, "api_key_env": "MY_CREDENTIAL"}
            return await parley.run_async(
                "public_goods", {"a": model, "b": "bot/altruist"}, repeats=1, store=tmp_path
            )

    result = asyncio.run(season())
    assert result.data["run"]["state"] == "stopped"
    assert "[key]" in json.dumps(result.data)
    for path in tmp_path.iterdir():
        assert b"my-secret-credential" not in path.read_bytes()


def test_planted_keys_are_in_nothing_that_a_run_writes_or_says(tmp_path, monkeypatch):
    """An endpoint that repeats the key in words, errors and model names; then everything the run
    left is searched."""
    keys = {"MY_CREDENTIAL": "my-secret-credential", "OTHER_API_KEY": "sk-other-0123456789"}
    for name, key in keys.items():
        monkeypatch.setenv(name, key)
    (tmp_path / ".env").write_text("THIRD_TOKEN=third-token-987654\n")
    outputs = []

    async def season():
        def words(said):
            return {
                **says(f'{{"coins": 5, "reason": "{said}"}}'),
                "model": said,
                "system_fingerprint": said,
            }

        echo = echo_of_the_key(200, words)
        async with Server(
            echo, echo, echo_of_the_key(500, lambda said: {"error": said}), echo
        ) as server:
            model = {"model": "vllm/m", "base_url": server.url, "api_key_env": "MY_CREDENTIAL"}
            result = await parley.run_async(
                "public_goods",
                {"a": model, "b": "bot/altruist"},
                repeats=3,
                store=tmp_path / "runs",
            )
            outputs.extend(
                [
                    repr(result),
                    result._repr_html_(),
                    json.dumps(result.data),
                    json.dumps(result.matches),
                ]
            )
            outputs.extend(result.render("text", part) for part in ("pairs", "cost"))

    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        asyncio.run(season())
        for words in (
            ["ls"],
            ["show", "last"],
            ["show", "last", "1"],
            ["audit", "last"],
            ["models"],
            ["doctor", "--no-calls"],
        ):
            said = subprocess.run(
                [sys.executable, "-m", "parley", *words],
                capture_output=True,
                text=True,
                check=False,
            )
            outputs += [said.stdout, said.stderr]
    kept = [path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert kept
    for key in [*keys.values(), "third-token-987654"]:
        assert not any(key in text for text in outputs)
        assert not any(key.encode() in data for data in kept)


def test_whatever_an_endpoint_sends_a_match_is_played_to_its_end(tmp_path):
    odd = {
        **says("5 coins \ud800\0"),
        "model": "\ud800",
        "usage": {"prompt_tokens": 10**40, "completion_tokens": "x"},
    }

    async def season():
        async with Server(sent(odd), says(None), says('<think>x</think>{"coins": 5}')) as server:
            model = {"model": "vllm/m", "base_url": server.url}
            return await parley.run_async(
                "public_goods",
                {"a": model, "b": "bot/altruist"},
                repeats=1,
                store=tmp_path,
                rounds=1,
            )

    result = asyncio.run(season())
    assert result.data["run"]["state"] == "done"
    (found,) = result.data["violations"]
    assert (found["kind"], found["count"], found["attempts"]) == ("unreadable", 1, 2)


# People


COMMAND = [
    sys.executable,
    "-m",
    "parley",
    "run",
    "public_goods",
    "-m",
    "me=human/terminal",
    "-m",
    "bot/altruist",
]
COMMAND += ["--repeats", "1", "--set", "rounds=2", "--json"]


def test_a_person_plays_through_a_pipe(tmp_path):
    # an empty line first, a reason, the end in place of the second reason
    lines = "\n5\nit is fair\n10\n"
    ran = subprocess.run(
        COMMAND, input=lines, capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    payoff = {row["alias"]: row["mean"] for row in json.loads(ran.stdout)["results"]}
    assert payoff["me"] == pytest.approx(5 + 15 * 0.6 + 0 + 20 * 0.6)
    assert "Round 1 of 2 begins" in ran.stderr
    assert "pool paid you" in ran.stderr
    assert "Coins, a number from 0 to 10:" in ran.stderr
    assert "JSON" not in ran.stderr


def test_a_person_who_leaves_stops_the_run_so_that_it_can_be_resumed(tmp_path):
    ran = subprocess.run(
        COMMAND, input="5\n\n", capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert ran.returncode == 3, ran.stderr
    assert "there is no answer, because the input has ended" in ran.stderr


def test_a_person_plays_at_a_terminal(tmp_path):
    leader, terminal = pty.openpty()
    with subprocess.Popen(
        COMMAND, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, cwd=tmp_path
    ) as process:
        os.close(terminal)
        shown = b""
        for _ in range(2):
            while not shown.rstrip().endswith(b"from 0 to 10:"):
                shown += os.read(leader, 1000)
            os.write(leader, b"10\n\n")
            shown += b"|"
        out = process.stdout.read()
    os.close(leader)
    assert process.returncode == 0
    assert {row["mean"] for row in json.loads(out)["results"]} == {24}


@pytest.mark.parametrize(
    ("model", "options", "says_what"),
    [
        ("human/phone", {}, "use human/web or human/terminal"),
        ("human/terminal", {"x": 1}, "unknown option"),
        ("human/web", {"x": 1}, "unknown option"),
        ("human/web", {"deadline": 0}, "more than 0 seconds"),
    ],
)
def test_people_have_only_the_options_that_exist(model, options, says_what):
    with pytest.raises(UsageError, match=says_what):
        made(model, **options)


def test_people_who_share_a_terminal_are_asked_one_after_the_other(monkeypatch):
    class Keyboard:
        lines = iter(["5\n", "\n"] * 3)  # coins, no reason
        reading = most = 0

        def readline(self):
            self.reading += 1
            self.most = max(self.most, self.reading)
            time.sleep(0.01)
            self.reading -= 1
            return next(self.lines)

    keyboard = Keyboard()
    monkeypatch.setattr(sys, "stdin", keyboard)

    async def speak():
        people = [made("human/terminal") for _ in range(3)]
        return await asyncio.gather(*(person.reply(view_of(), UNLIMITED) for person in people))

    assert asyncio.run(speak()) == ['{"reason":"","coins":5}'] * 3
    assert keyboard.most == 1


def test_the_provider_and_participant_names_do_not_overlap():
    assert not set(participants.participant_kinds()) & set(providers.provider_names())
    assert participants.participant_kinds() == ["bot", "http", "human", "python", "scripted"]


@pytest.mark.parametrize(
    ("given", "said"), [("0", "at least 1"), ("many", "a whole number"), (-3, "at least 1")]
)
def test_a_limit_that_is_none_is_refused(given, said):
    with pytest.raises(UsageError, match=said):
        participants.read_limit({"concurrency": given}, "concurrency", "a")
    assert participants.read_limit({}, "concurrency", "a") is None
    assert participants.read_limit({"concurrency": "4"}, "concurrency", "a") == 4


DEMONSTRATION = (0, (Example("How many of 2?", "Two."), Example("How many of 3?", "Three.")))


def test_a_person_is_shown_demonstrations_once(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", StringIO("5\n\n6\n\n7\n\n"))
    first = view_of("How many of 4?", examples=DEMONSTRATION)
    again = view_of("How many of 4?", examples=DEMONSTRATION, attempt=1)
    later = view_of("How many of 4?", "5", "And now?", examples=DEMONSTRATION, round=2)
    given = [
        json.loads(each)["coins"] for each in said(made("human/terminal"), first, again, later)
    ]
    assert given == [5, 6, 7]
    shown = capsys.readouterr().err
    assert shown.count("How many of 2?") == shown.count("Three.") == 1
    assert shown.index("Three.") < shown.index("How many of 4?")


def test_a_service_is_sent_demonstrations_before_the_question():
    _, server = served({"reply": "4"}, views=(view_of("How many of 4?", examples=DEMONSTRATION),))
    words = [(turn["role"], turn["content"]) for turn in server.asked[0].body["messages"]]
    assert words == [
        ("user", "How many of 2?"),
        ("assistant", "Two."),
        ("user", "How many of 3?"),
        ("assistant", "Three."),
        ("user", "How many of 4?"),
    ]


def test_what_was_told_stands_once_before_the_demonstrations():
    asked = [Turn("user", "The rules.\n\nHow many of 4?")]
    reader = Amount("coins", 0, 10)
    view = View(PLAYER, 1, 0, asked, b"", reader, None, told="The rules.")
    shown = view.with_examples(DEMONSTRATION[1], lessons="Count twice.")
    at, (first, second) = shown.examples
    assert (at, first.question, second.question) == (
        0,
        "The rules.\n\nHow many of 2?",
        "How many of 3?",
    )
    assert shown.text == "Count twice.\n\nHow many of 4?"
    assert view.text == "The rules.\n\nHow many of 4?"  # which stays as it was
    assert view.with_examples(()).text == view.text


def test_a_person_at_the_terminal_reads_quotations_without_marks():
    quoted = mark_quotation("0123456789ab", "Player 2 said", "hi\n\nthere")
    assert show_message(f"The last round:\n{quoted}\nYour turn.") == [
        "The last round:",
        "Player 2 said:\n  │ hi\n  │ \n  │ there",
        "Your turn.",
    ]
