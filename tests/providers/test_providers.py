"""Providers against a real server that misbehaves on purpose."""

import asyncio
import gzip
import json
import time
from copy import deepcopy
from dataclasses import dataclass, is_dataclass
from email.utils import formatdate
from itertools import chain, pairwise, repeat
from pathlib import Path
from socket import socket
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.cli import models
from parley.config.prices import prices_for
from parley.config.task_catalogue import task_class
from parley.errors import Halted, ParleyError, ParticipantError, Refused, Rejected, UsageError
from parley.match.match import normalise_reply
from parley.match.protocol import UNLIMITED, Call, Request, Usage, split_thinking
from parley.providers import (
    _capabilities as capabilities,
)
from parley.providers import (
    _connections as connections,
)
from parley.providers import (
    _endpoint_health as endpoint_health,
)
from parley.providers import (
    _error_bodies as error_bodies,
)
from parley.providers import _registry as providers
from parley.providers import (
    _secrets as secrets,
)
from parley.providers import (
    _transport as transport,
)
from parley.providers._endpoint import Endpoint
from parley.providers._env_file import find_setting
from parley.providers._secrets import complete_address, redact
from parley.rules.pool import Turn
from parley.runs import event_loop
from parley.runs.progress import Progress
from parley.runs.stand_ins import USUAL, StandIn
from parley.testing.server import (
    Server,
    echo_of_the_key,
    flood,
    raw,
    reset,
    says,
    sent,
    silence,
    trickle,
)
from tests import wire
from tests.clock import clock as clock
from tests.wire import FORM, KEY, TURNS, Listening


@pytest.fixture(autouse=True)
def nothing_set_and_no_waiting(monkeypatch, tmp_path):
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "VLLM_BASE_URL",
        "VLLM_API_KEY",
        "OPENAI_COMPATIBLE_BASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(endpoint_health, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(capabilities, "KNOWN", {})


def asked(*answers, family="openai-compatible", **options):
    return wire.asked(family, *answers, **options)


def replied(answer, family="openai-compatible", **options):
    return wire.replied(family, answer, **options)


# What is sent


def test_a_request_holds_the_model_and_the_turns_and_nothing_that_was_not_set():
    _, server = asked(says())
    [request] = server.asked
    assert request.path == "/v1/chat/completions"
    assert request.body == {
        "model": "m-1",
        "messages": [
            {"role": "user", "content": "How many?"},
            {"role": "assistant", "content": "Five."},
            {"role": "user", "content": "And now?"},
        ],
    }
    assert "authorization" not in request.headers


def test_options_are_sent_as_numbers_and_texts_whatever_a_shell_made_of_them():
    _, server = asked(
        says(), temperature="0", max_tokens="50", seed="7", top_p=0.5, stop=r"END,\n\n"
    )
    body = server.asked[0].body
    del body["messages"]
    assert body == {
        "model": "m-1",
        "temperature": 0,
        "max_tokens": 50,
        "seed": 7,
        "top_p": 0.5,
        "stop": ["END", "\n\n"],
    }


def test_a_schema_is_sent_wherever_there_is_one_unless_that_is_switched_off():
    assert "response_format" not in asked(says(), schema=FORM, structured="false")[1].asked[0].body
    assert "response_format" not in asked(says(), structured=True)[1].asked[0].body
    for structured in ("true", None):
        form = asked(says(), schema=FORM, structured=structured)[1].asked[0].body["response_format"]
        assert form == {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": FORM},
        }


@pytest.mark.parametrize("family", ["openai", "openai-compatible", "vllm", "openrouter"])
def test_the_key_comes_from_the_providers_own_variable(monkeypatch, family):
    monkeypatch.setenv(f"{family.upper().replace('-', '_')}_API_KEY", KEY + "\n")
    assert asked(says(), family=family)[1].asked[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "line",
    [
        "MY_CREDENTIAL={}",
        "export MY_CREDENTIAL='{}'",
        'MY_CREDENTIAL = "{}"  # mine',
        "MY_CREDENTIAL={} # mine",
    ],
)
def test_the_key_comes_from_a_named_variable_in_dotenv(tmp_path, line):
    (tmp_path / ".env").write_text(f"# keys\nOTHER=1\n{line.format(KEY)}\n")
    assert (
        asked(says(), api_key_env="MY_CREDENTIAL")[1].asked[0].headers["authorization"]
        == f"Bearer {KEY}"
    )


def test_a_value_in_dotenv_may_hold_a_hash_and_the_environment_comes_first(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("A=b#c\nB='x # y'\nC=dotenv\nD=\n")
    monkeypatch.setenv("C", "environment")
    assert [find_setting(name) for name in "ABCDE"] == ["b#c", "x # y", "environment", None, None]


@pytest.mark.parametrize(
    ("family", "options", "says_what"),
    [
        ("openai", {}, "OPENAI_API_KEY"),
        ("vllm", {"api_key_env": "NOT_SET_HERE"}, "NOT_SET_HERE"),
        ("openai-compatible", {}, "base_url"),
        ("vllm", {"base_url": "localhost:8000"}, "http://localhost:8000/v1"),
        ("vllm", {"base_url": "http://localhost:port"}, "an address like"),
        ("vllm", {"base_url": "http://[::1"}, "an address like"),
        ("vllm", {"base_url": "http://a b/v1"}, "an address like"),
        ("vllm", {"base_url": "http://${NOT_SET_HERE}/v1"}, "NOT_SET_HERE"),
        ("vllm", {"temprature": "0"}, "did you mean 'temperature'"),
        ("vllm", {"temperature": "hot"}, "must be a number"),
        ("vllm", {"deadline": "0"}, "deadline must be more than 0"),
        ("vllm", {"timeout": "0"}, "timeout must be more than 0"),
        ("completion", {"base_url": "http://x", "human_tag": r"\n"}, "must not be empty"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_sent(family, options, says_what):
    with pytest.raises(UsageError, match=says_what):
        providers.make_provider(family, "m-1", options)


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter22@host/v1",
        "https://hunter22@host",
        "ftp://me:hunter22@h",
        "http://me:hunter22@",
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(url):
    with pytest.raises(UsageError, match="environment") as refused:
        complete_address(url, "base_url")
    assert "hunter22" not in str(refused.value)


def test_the_address_is_the_option_else_the_variable_else_the_providers_own(monkeypatch):
    assert (
        providers.make_provider("vllm", "m", {})._transport.url
        == "http://localhost:8000/v1/chat/completions"
    )
    monkeypatch.setenv("VLLM_BASE_URL", "http://other:1/v1/")
    assert (
        providers.make_provider("vllm", "m", {})._transport.url
        == "http://other:1/v1/chat/completions"
    )
    monkeypatch.setenv("WHERE", "third:2")
    assert (
        providers.make_provider("vllm", "m", {"base_url": "http://${WHERE}/v1"})._transport.url
        == "http://third:2/v1/chat/completions"
    )


def test_an_unknown_provider_is_told_with_the_nearest_name():
    with pytest.raises(UsageError, match="did you mean 'openai'"):
        providers.make_provider("opnai", "m", {})


METHODS = "    async def complete(self, request): ...\n\n    async def close(self): ...\n\n"


def test_a_package_may_bring_a_provider_of_its_own(monkeypatch, tmp_path):
    (tmp_path / "mine-1.dist-info").mkdir()
    (tmp_path / "mine-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: mine\nVersion: 1\n"
    )
    (tmp_path / "mine-1.dist-info" / "entry_points.txt").write_text(
        "[parley.providers]\nmine = mine:Mine\n"
    )
    fields = f"    name: str\n    mood: str = 'calm'\n    strength: float = 0\n{METHODS}"
    (tmp_path / "mine.py").write_text(
        f"from dataclasses import dataclass\n\n\n@dataclass\nclass Mine:\n{fields}"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert "mine" in providers.provider_names()
    made = providers.make_provider("mine", "m", {"strength": "0.5"})
    assert (made.name, made.mood, made.strength) == ("m", "calm", 0.5)
    with pytest.raises(UsageError, match="did you mean 'mood'"):
        providers.make_provider("mine", "m", {"moood": "x"})


def test_what_another_provider_says_of_itself_is_heard_like_ours(monkeypatch, tmp_path):
    (tmp_path / "mine-1.dist-info").mkdir()
    (tmp_path / "mine-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: mine\nVersion: 1\n"
    )
    (tmp_path / "mine-1.dist-info" / "entry_points.txt").write_text(
        "[parley.providers]\nmine = mine_too:Mine\n"
    )
    said = (
        "    seller, small, caches, thinks_by = 'openai', 'tiny', True, ('mood',)\n"
        "    key_env, key_needed = 'MINE_KEY', True\n"
    )
    fields = f"    name: str\n    mood: str = ''\n{METHODS}"
    source = (
        f"from dataclasses import dataclass\n\n\n@dataclass\nclass Mine:\n    'Mine.'\n"
        f"{fields}{said}"
    )
    (tmp_path / "mine_too.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("MINE_KEY", "a-key-of-mine")
    row = models.describe_model("mine")
    assert (row["key"], row["key_found"], row["key_needed"], row["about"]) == (
        "MINE_KEY",
        True,
        True,
        "Mine.",
    )
    assert row["abilities"] == {
        "structured": False,
        "reasoning": True,
        "caching": True,
        "system_role": True,
    }
    assert providers.provider_traits("mine").small == "tiny"
    assert (
        prices_for({"a": {"model": "mine/gpt-4o"}}).of("a")
        == prices_for({"a": {"model": "openai/gpt-4o"}}).of("a")
        is not None
    )
    assert StandIn(
        "a", {"model": "mine/m", "mood": "grim"}, task_class("public_goods"), USUAL
    )._thinks


def test_every_file_without_an_underscore_is_a_provider():
    folder = Path(providers.__file__).parent
    files = {path.stem.replace("_", "-") for path in folder.iterdir() if path.name[0] != "_"}
    assert files == set(providers.provider_names())
    for name in files:
        assert is_dataclass(providers.provider_class(name))
    for name in (
        "_transport",
        "-transport",
        "transport",
        "hf.checkpoint",
        "openai_compatible",
        "",
        "Openai",
    ):
        assert not providers.is_provider(name)


def test_an_endpoint_without_its_parts_cannot_be_made():
    @dataclass
    class Half(Endpoint):
        def head(self, lacks):
            return {}

    with pytest.raises(TypeError, match="abstract"):
        Half("m", base_url="http://host/v1")


def test_what_providers_share_is_no_provider():
    assert {
        "openai",
        "anthropic",
        "google",
        "azure",
        "ollama",
        "vllm",
        "openrouter",
        "openai-compatible",
        "completion",
    } <= set(providers.provider_names())


# What comes back


def test_a_reply_carries_words_usage_finish_and_the_model_as_served():
    usage = {
        "prompt_tokens": 90,
        "completion_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 20},
        "completion_tokens_details": {"reasoning_tokens": 8},
    }
    reply = replied({**says("Five."), "usage": usage})
    assert (reply.content, reply.reasoning, reply.finish, reply.model_served) == (
        "Five.",
        "",
        "stop",
        "served-1",
    )
    assert reply.usage == Usage(90, 64, 12, 8, 20)
    assert reply.latency > 0
    assert replied(
        {**says(), "usage": {"prompt_tokens": 90, "prompt_cache_hit_tokens": 64}}
    ).usage == Usage(90, 64)


@pytest.mark.parametrize("api", ["openai-compatible", "completion"])
def test_a_reply_carries_how_the_endpoint_names_its_answer(api, monkeypatch):
    monkeypatch.setenv("A_KEY", KEY)
    named = {"id": "chatcmpl-1", "system_fingerprint": "fp_2", "model": "served-1"}
    said = {"choices": [{"text": "Five.", "message": {"content": "Five."}}]}
    reply = replied({**said, **named}, api)
    names = reply.response_id, reply.system_fingerprint, reply.model_served
    assert names == ("chatcmpl-1", "fp_2", "served-1")
    body = json.dumps(said).encode()
    assert replied(sent(body, X_Request_ID="req_1"), api).request_id == "req_1"
    assert replied(sent(body, Request_ID="req_2"), api).request_id == "req_2"
    masked = replied(sent(body, X_Request_ID=f"of {KEY}"), api, api_key_env="A_KEY")
    assert masked.request_id == "of [key]"
    assert replied(sent(body, X_Request_ID="x" * 201), api).request_id is None
    for odd in (7, None, "", ["x"], "x" * 201, "a\nb"):
        reply = replied({**said, "id": odd, "system_fingerprint": odd}, api)
        assert reply.response_id is reply.system_fingerprint is None


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        "many",
        {},
        {"prompt_tokens": "9"},
        {"prompt_tokens": 1.5},
        {"prompt_tokens": True},
        {"completion_tokens": -1},
    ]
    + [
        {"prompt_tokens": 10**30},
        {"prompt_tokens": 2**40},
        {"prompt_tokens_details": 7},
        {"completion_tokens_details": [1]},
    ],
    ids=str,
)
def test_usage_that_makes_no_sense_is_unknown_never_zero(usage):
    assert replied({**says(), "usage": usage}).usage == Usage()


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        (None, "stop"),
        ("length", "length"),
        ("content_filter", "filter"),
        ("tool_calls", "other"),
        (["x"], "other"),
    ]
    + [("eos_token", "stop"), ("max_tokens", "length")],
)
def test_finish_reasons(reason, finish):
    answer = says()
    answer["choices"][0]["finish_reason"] = reason
    assert replied(answer).finish == finish


@pytest.mark.parametrize(
    ("answer", "content", "reasoning"),
    [
        (says([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "ab", ""),
        (says([{"type": "image"}, None, "a", {"text": None}, {"text": 3}]), "a", ""),
        (says(None), "", ""),
        (says(None, refusal="I must not."), "I must not.", ""),
        (says("", refusal="I must not."), "I must not.", ""),
        (says({"odd": 1}), "", ""),
        (says("x", reasoning_content="because"), "x", "because"),
        (says("x", reasoning="because"), "x", "because"),
        (says("x", reasoning={"odd": 1}), "x", ""),
    ],
)
def test_content_and_reasoning_in_all_their_forms(answer, content, reasoning):
    reply = replied(answer)
    assert (reply.content, reply.reasoning) == (content, reasoning)


@pytest.mark.parametrize("name", [None, 3, "", "\x1b\x00"])
def test_a_model_name_that_cannot_be_printed_is_unknown(name):
    assert replied({**says(), "model": name}).model_served is None


@pytest.mark.parametrize(
    ("text", "said", "thought"),
    [
        ("<think>hmm</think>\n\nFive.", "Five.", "hmm"),
        (" <Thinking>hmm</THINKING>Five.", "Five.", "hmm"),
        ("<think>a</think><think>b</think>Five.", "Five.", "a\nb"),
        ("<think></think>Five.", "Five.", ""),
        ("<think>cut off by the lim", "", "cut off by the lim"),
        ("Okay, let me see.\n</think>\n\nFive.", "Five.", "Okay, let me see."),
        ("Five.", "Five.", ""),
        ("2 < 3 </b>", "2 < 3 </b>", ""),
        ("Write <think>why</think> first.", "Write <think>why</think> first.", ""),
        (
            '{"reason": "it said </think>", "coins": 5}',
            '{"reason": "it said </think>", "coins": 5}',
            "",
        ),
    ],
)
def test_thinking_is_told_apart_from_the_reply(text, said, thought):
    assert split_thinking(text) == (said, thought)


def test_many_thoughts_are_told_apart_in_a_moment():
    began = time.process_time()
    assert split_thinking("<think></think>" * 200_000 + "Five.") == ("Five.", "")
    assert split_thinking("<think>a</think>\n" * 100_000) == ("", "\n".join("a" * 100_000))
    assert split_thinking("</b>" + "<thin" * 500_000)[1] == ""
    assert time.process_time() - began < 20  # it is linear; a quadratic one takes hours


@settings(deadline=None)
@given(st.text())
def test_a_text_without_tags_is_all_reply(text):
    assert split_thinking(text.replace("<", "")) == (text.replace("<", ""), "")


@pytest.mark.parametrize(
    ("body", "content"),
    [
        (b'{"choices": [{"message": {"content": "a\\ud800b"}}]}', "a?b"),
        (b'{"choices": [{"message": {"content": "a\\u0000b"}}]}', "a\ufffdb"),
        (b'{"choices": [{"message": {"content": "a\xffb"}}]}', "a\ufffdb"),
        (b'{"choices": [{"message": {"content": "a\nb"}}]}', "a\nb"),
        (b'\xef\xbb\xbf{"choices": [{"message": {"content": "ab"}}]}', "ab"),
        (
            (
                b'{"choices": [{"message": {"content": "ab"}}], "usage": {"prompt_tokens": NaN}, '
                b'"model": "\\udfff"}'
            ),
            "ab",
        ),
    ],
)
def test_text_that_is_not_quite_text_still_arrives_and_can_be_encoded(body, content):
    reply = normalise_reply(replied(body))
    assert reply.content == content
    json.dumps([reply.content, reply.model_served]).encode()
    assert reply.model_served is None or reply.model_served.encode()


# What goes wrong


def test_sequential_calls_share_one_connection():
    _, server = asked(says(), calls=5)
    assert (len(server.asked), server.connections) == (5, 1)


@pytest.mark.parametrize("act", [silence, trickle])
def test_a_call_ends_at_its_deadline(clock, act):
    began = clock.now
    fault, _ = asked(act, deadline=0.3, play=clock.run)
    assert isinstance(fault, ParticipantError)
    assert "no answer within 0.3 s" in str(fault)
    assert 0.3 <= clock.now - began < 0.4


def test_a_deadline_that_passes_between_tries_says_what_was_wrong(clock, monkeypatch):
    monkeypatch.setattr(error_bodies, "LONGEST_PAUSE", 60.0)
    fault, server = asked(sent(b"slow down", 429, Retry_After="60"), deadline=0.2, play=clock.run)
    assert "no answer within 0.2 s (the error before that was: HTTP 429: slow down)" in str(fault)
    assert len(server.asked) == 1


def test_a_wait_that_the_endpoint_asks_for_is_kept_but_not_longer_than_the_longest(
    clock, monkeypatch
):
    def waited(answer):
        began = clock.now
        assert asked(answer, says(), play=clock.run)[0].content == "hello"
        return clock.now - began

    assert 0.2 <= waited(sent(b"", 429, Retry_After="0.2")) < 0.3
    monkeypatch.setattr(error_bodies, "LONGEST_PAUSE", 0.1)
    assert 0.1 <= waited(sent(b"", 503, Retry_After="3600")) < 0.2


def test_a_wait_in_milliseconds_is_the_most_exact(clock):
    for wait, least, most in (
        ({"Retry_After_Ms": "200", "Retry_After": "25"}, 0.2, 0.3),
        ({"Retry_After_Ms": "soon", "Retry_After": "0.01"}, 0.01, 0.1),
    ):
        began = clock.now
        assert asked(sent(b"", 429, **wait), says(), play=clock.run)[0].content == "hello"
        assert least <= clock.now - began < most


def test_a_wait_may_be_given_as_a_date_and_nonsense_is_no_wait():
    assert 0 < error_bodies.parse_retry_after(formatdate(time.time() + 10, usegmt=True)) <= 10
    assert error_bodies.parse_retry_after(formatdate(0)) == 0
    assert [error_bodies.parse_retry_after(odd) for odd in ("", "soon", "-5", "nan", "inf")] == [
        0,
        0,
        0,
        0,
        error_bodies.LONGEST_PAUSE,
    ]
    for odd in (
        "Mon, 01 Jan 99999999999999 00:00:00 GMT",
        "Mon, 99 Jan 2030 99:99:99 +9999999999",
        "1" * 5000,
        "Mon,",
    ):
        assert 0 <= error_bodies.parse_retry_after(odd) <= error_bodies.LONGEST_PAUSE


def test_pauses_grow_up_to_the_longest(monkeypatch):
    pauses = []

    async def noted(seconds, call):
        pauses.append(seconds)

    monkeypatch.setattr(endpoint_health, "FIRST_PAUSE", 8.0)
    monkeypatch.setattr(endpoint_health.random, "uniform", lambda low, high: 1)
    monkeypatch.setattr(transport, "sleep_unless_stopped", noted)
    # nobody listens there
    provider = providers.make_provider("vllm", "m", {"base_url": "http://127.0.0.1:9"})

    async def call():
        try:
            await provider.complete(Request(TURNS))
        finally:
            await provider.close()

    with pytest.raises(ParticipantError, match="5 tries"):
        asyncio.run(call())
    assert pauses == [8, 16, 30, 30]


FAULTS = {
    "500": sent(b"oops", 500),
    "503 with a page": sent(b"<html>" + b"x" * 100_000, 503),
    "overload said with status 200": {"error": {"type": "overloaded_error", "message": "later"}},
    "no JSON": sent(b"<html>hello</html>"),
    "broken JSON": sent(b'{"choices": ['),
    "empty body": sent(b""),
    "too deep": sent(b"[" * 200_000),
    "cut body": raw(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"choices": []}'),
    "cut chunks": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n"),
    "reset": reset,
    "closed": raw(b""),
    "no HTTP": raw(b"hello, this is not HTTP\r\n\r\n"),
    "false gzip": sent(b"{}", Content_Encoding="gzip"),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize(
    "play", [asyncio.run, event_loop.run_in_new_loop], ids=["asyncio", "uvloop"]
)
def test_a_fault_that_may_pass_is_tried_again_a_bounded_number_of_times(fault, play):
    recovered, server = asked(fault, fault, says("at last"), play=play)
    assert (recovered.content, len(server.asked)) == ("at last", 3)
    failed, server = asked(fault, play=play)
    assert type(failed) is ParticipantError
    assert "(5 tries)" in str(failed)
    assert len(server.asked) == 5
    assert len(str(failed)) < 700


def test_being_told_to_wait_is_no_fault_of_the_call_and_ends_with_its_deadline(clock, monkeypatch):
    monkeypatch.setattr(endpoint_health, "LONGEST_PAUSE", 0.01)
    bodies = [
        {"error": {"code": 429, "message": "later"}},
        {"error": {"code": "rate_limit_exceeded", "message": "later"}},
    ]
    bodies += [
        {"error": {"status": "RESOURCE_EXHAUSTED"}},
        {"object": "error", "message": "later", "code": 429},
    ]
    for limit in (sent(b"later", 429), sent(b"", 529), *bodies):
        recovered, server = asked(*[limit] * 20, says("at last"), play=clock.run)
        assert (recovered.content, len(server.asked)) == ("at last", 21)
        failed, server = asked(limit, deadline=0.2, play=clock.run)
        assert "no answer within 0.2 s (the error before that was: " in str(failed)
        assert len(server.asked) > 12


def together(server, count, url, **options):
    """So many calls at once to one model by two of its aliases, and what the person was told."""
    listening = Listening()

    async def call():
        made = [
            providers.make_provider("vllm", "m", {"base_url": url, **options}) for _ in range(2)
        ]
        requests = [Request(TURNS, call=listening) for _ in range(count)]
        replies = await asyncio.gather(
            *(made[n % 2].complete(request) for n, request in enumerate(requests)),
            return_exceptions=True,
        )
        for provider in made:
            await provider.close()
        return replies

    return call, listening.told


def test_all_calls_of_an_endpoint_share_one_back_off(clock):
    """One 429 makes everybody wait: no call leaves before the time that the endpoint asks for, then
    half as many at a time."""
    times, told, answered = [], [], []

    async def whole():
        all_there = asyncio.Event()

        async def busy(asked, writer):
            times.append(clock.now)
            if len(times) == 8:
                all_there.set()
            await all_there.wait()
            if not told:
                told.append(clock.now)
                await sent(b"later", 429, Retry_After="0.4")(asked, writer)
                return
            await asyncio.sleep(0.1)
            answered.append(len(times))
            await sent(says())(asked, writer)

        async with Server(busy) as server:
            call, _ = together(server, 8, server.url)
            first = asyncio.create_task(call())
            await all_there.wait()
            await asyncio.sleep(0.05)  # one is told, the others are not answered yet
            # other providers of the same model, which were told nothing
            more, _ = together(server, 20, server.url)
            return [*await more(), *await first]

    replies = clock.run(whole())
    assert [reply.content for reply in replies] == ["hello"] * 28
    assert min(times[8:]) - told[0] >= 0.4
    # those that had come when the first of them was answered: half of eight, and a little
    assert answered[7] - 8 <= 6


def test_an_endpoint_that_goes_down_is_left_alone_and_tried_by_one_call_first(clock, monkeypatch):
    monkeypatch.setattr(endpoint_health, "FIRST_REST", 0.3)
    seen, answered = [], []

    async def whole():
        all_there = asyncio.Event()

        async def ailing(asked, writer):
            seen.append(clock.now)
            number = len(seen)
            if number == 14:
                all_there.set()
            if 2 < number <= 14:
                await all_there.wait()
            await asyncio.sleep(0.05)
            answered.append(len(seen))
            down = 2 < number <= 15  # twelve calls at once, and the first that tries again
            await (sent(b"oops", 503) if down else sent(says()))(asked, writer)

        async with Server(ailing) as server:
            call, told = together(server, 2, server.url)
            await call()
            call, told = together(server, 12, server.url)
            return await call(), told

    replies, told = clock.run(whole())
    assert all(getattr(reply, "content", None) == "hello" for reply in replies)
    assert any("sends it no calls for" in text and "other models continue" in text for text in told)
    assert any("answers again" in text for text in told)
    # one alone fails, and one alone is answered before the others follow
    assert answered[14:16] == [15, 16]
    assert seen[14] - seen[13] >= 0.3
    assert seen[15] - seen[14] >= 0.6
    assert len(seen) == 14 + 1 + 12


def test_those_who_wait_are_served_in_turn_and_cost_next_to_nothing(clock):
    """Four hundred wait for one place: each is woken once, in the order in which they came,
    newcomers behind them."""

    async def whole():
        bears, order = endpoint_health.EndpointHealth("here"), []
        bears.limit = 1

        async def call(number):
            place = (
                bears.take_slot()
                if bears.has_free_slot
                else (await bears.wait_for_slot(60, UNLIMITED))[0]
            )
            order.append(number)
            await asyncio.sleep(0)
            bears.release_slot(place)

        tasks = [asyncio.create_task(call(number)) for number in range(400)]
        await asyncio.sleep(0)
        before = clock.callbacks
        late = [asyncio.create_task(call(number)) for number in range(400, 410)]
        await asyncio.gather(*tasks, *late)
        assert bears.in_flight == 0
        return order, clock.callbacks - before

    order, callbacks = clock.run(whole())
    assert order == list(range(410))
    assert callbacks < 10 * 410


def test_who_gives_up_waiting_leaves_its_place_to_the_next():
    async def whole():
        bears = endpoint_health.EndpointHealth("here")
        bears.limit, place = 1, bears.take_slot()
        waiting = [asyncio.create_task(bears.wait_for_slot(60, UNLIMITED)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        bears.release_slot(place)
        waiting[1].cancel()  # it has the place, and does not know yet
        assert (await waiting[2])[0] == 0
        bears.release_slot(0)
        return bears.in_flight, bears.has_free_slot

    assert asyncio.run(whole()) == (0, True)


@pytest.mark.parametrize("reads", range(1, 7))
def test_a_pause_that_ends_while_it_is_looked_at_leaves_nobody_waiting(monkeypatch, reads):
    """The clock passes the end of the pause after so many looks at it."""

    async def wait():
        now = chain([0.0] * reads, repeat(2.0))
        bears = endpoint_health.EndpointHealth("here")
        bears._until = 1.0
        monkeypatch.setattr(endpoint_health, "time", SimpleNamespace(monotonic=lambda: next(now)))
        if not bears.has_free_slot:
            async with asyncio.timeout(5):
                await bears.wait_for_slot(60, UNLIMITED)

    asyncio.run(wait())


def test_a_stop_sends_those_away_who_wait_for_an_endpoint_and_only_those_of_its_run(clock):
    async def whole():
        bears, stopped = endpoint_health.EndpointHealth("here"), []
        bears.limit, place = 1, bears.take_slot()

        class Stopping(Call):
            def check_running(self):
                if stopped:
                    raise Halted("enough")

        mine = [asyncio.create_task(bears.wait_for_slot(60, Stopping())) for _ in range(50)]
        other = asyncio.create_task(bears.wait_for_slot(60, UNLIMITED))
        await asyncio.sleep(0.1)
        stopped.append(True)
        began = clock.now
        ends = await asyncio.gather(*mine, return_exceptions=True)
        took = clock.now - began
        assert not other.done()
        bears.release_slot(place)
        await other
        return ends, took

    ends, took = clock.run(whole())
    assert all(isinstance(end, Halted) for end in ends)
    assert took <= endpoint_health.TICK


def test_waiting_for_others_is_not_counted_against_a_call_as_long_as_they_are_answered(clock):
    """Sixteen calls of 0.25 s, few at a time, each with a deadline of a second: all are
    answered."""

    async def slow(asked, writer):
        await asyncio.sleep(0.25)
        await sent(says())(asked, writer)

    async def whole():
        async with Server(slow) as server:
            provider = providers.make_provider("vllm", "m", {"base_url": server.url, "deadline": 1})
            await provider.complete(Request(TURNS))
            provider._transport._health.limit = 1.0
            replies = await asyncio.gather(
                *(provider.complete(Request(TURNS)) for _ in range(16)), return_exceptions=True
            )
            await provider.close()
            return replies

    began = clock.now
    replies = clock.run(whole())
    assert [getattr(reply, "content", reply) for reply in replies] == ["hello"] * 16
    assert clock.now - began > 1.5


def test_who_waits_for_an_endpoint_that_answers_nobody_gives_up_after_its_deadline(clock):
    async def whole():
        async with Server(sent(b"later", 429, Retry_After="20")) as server:
            call, _ = together(server, 10, server.url, deadline=0.3)
            return await call(), server

    began = clock.now
    replies, server = clock.run(whole())
    assert all("no answer within 0.3 s" in str(reply) for reply in replies)
    assert clock.now - began < 2
    assert len(server.asked) == 10


def test_a_probe_that_is_refused_shows_that_the_endpoint_answers(clock, monkeypatch):
    """Five faults, then a request that is at fault itself, then all is well: nobody waits for
    ever."""
    monkeypatch.setattr(endpoint_health, "FIRST_REST", 0.2)
    faults = [sent(b"oops", 500)] * 5

    async def whole():
        async with Server(
            says(), *faults, sent({"error": {"message": "too long"}}, 400), says("at last")
        ) as server:
            provider = providers.make_provider("vllm", "m", {"base_url": server.url, "deadline": 5})
            found = []
            for _ in range(4):
                try:
                    found.append((await provider.complete(Request(TURNS))).content)
                except ParticipantError as fault:
                    found.append(type(fault).__name__)
            await provider.close()
            return found

    began = clock.now
    assert clock.run(whole())[-1] == "at last"
    assert clock.now - began < 5


def test_an_answer_nested_without_end_is_no_reply_and_no_crash():
    deep = b'{"choices":[{"message":{"content":' + b"[" * 900 + b"]" * 900 + b"}}]}"
    found, _ = asked(sent(deep))
    assert isinstance(found, ParticipantError) or found.content == ""


def test_a_burst_of_faults_is_one_rest_and_one_notice(monkeypatch):
    monkeypatch.setattr(endpoint_health, "FIRST_REST", 0.3)
    bad, listening = endpoint_health.EndpointHealth("here"), Listening()

    async def whole():
        bad.succeeded(listening)
        for _ in range(32):
            bad.failed(endpoint_health.Retryable("reset"), listening)

    asyncio.run(whole())
    assert len(listening.told) == 1
    assert bad.down


@pytest.mark.parametrize(
    ("waits", "times"), [([0.1], 0), ([5, 5], 1), ([0] * 9, 1)], ids=["a moment", "long", "often"]
)
def test_being_told_to_wait_for_more_than_a_moment_is_told_once(monkeypatch, waits, times):
    now, listening = [1000.0], Listening()
    monkeypatch.setattr(endpoint_health, "FIRST_PAUSE", 0.5)
    monkeypatch.setattr(endpoint_health, "time", SimpleNamespace(monotonic=lambda: now[0]))

    async def whole():
        busy = endpoint_health.EndpointHealth("http://here", "m-1")
        for seconds in waits:
            pause = endpoint_health.Retryable("HTTP 429: slow down", seconds, limited=True)
            busy.failed(pause, listening)
            now[0] += max(seconds, 2)

    asyncio.run(whole())
    said = "m-1 is rate limited (HTTP 429: slow down), so Parley now sends fewer requests at a time"
    assert listening.told == [said] * times


@pytest.mark.parametrize("act", [reset, silence], ids=["reset", "timeout"])
def test_what_may_have_been_paid_is_told_and_tried_again_under_the_same_key(clock, act):
    listening = Listening()
    began = clock.now
    reply, server = asked(
        act,
        says("at last"),
        calls=2,
        call=listening,
        play=clock.run,
        timeout="0.2",
        idempotency_header="Idempotency-Key",
    )
    assert reply.content == "at last"
    first, second, third = (request.headers["idempotency-key"] for request in server.asked)
    assert first == second != third
    assert any("may be billed" in text for text in listening.told)
    assert clock.now - began < 4


def test_without_the_option_no_key_of_that_kind_is_sent():
    assert "idempotency-key" not in asked(says())[1].asked[0].headers


class Noting(Call):
    """Notes what becomes of requests."""

    def __init__(self):
        self.seen = []

    async def wait_for_rate(self):
        self.seen.append("turn")

    async def before_request(self):
        self.seen.append("leaves")

    def refused(self, fault):
        self.seen.append("refused")

    def unanswered(self, fault):
        self.seen.append("unanswered")


CUT = raw(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"choices": []}')


@pytest.mark.parametrize(
    ("answers", "options", "fate"),
    [
        ([says()], {}, []),
        ([sent(b"oops", 503), says()], {}, ["refused"]),
        (
            [sent(b"late", 408), sent(b"late", 504), sent(b"late", 524), says()],
            {},
            ["unanswered", "unanswered", "unanswered"],
        ),
        ([sent(b"later", 429), says()], {}, ["refused"]),
        (
            [sent({"error": {"message": "temperature is not supported"}}, 400), says()],
            {"temperature": 1},
            ["refused"],
        ),
        ([reset, says()], {}, ["unanswered"]),
        ([CUT, says()], {}, ["unanswered"]),
        ([sent(b"<html>"), says()], {}, ["unanswered"]),
        ([silence, says()], {"timeout": 0.1}, ["unanswered"]),
        ([silence], {"deadline": 0.1}, ["unanswered"]),
    ],
)
def test_every_request_waits_for_its_turn_and_what_becomes_of_it_is_told(answers, options, fate):
    noting = Noting()
    _, server = asked(*answers, call=noting, **options)
    found = [each for each in noting.seen if each not in ("turn", "leaves")]
    assert found == fate
    assert noting.seen.count("turn") == noting.seen.count("leaves") == len(server.asked)


def test_a_deadline_that_passes_on_the_way_speaks_against_the_endpoint_and_may_have_been_paid(
    monkeypatch,
):
    monkeypatch.setattr(endpoint_health, "BREAK", 1)
    listening = Listening()

    async def call():
        async with Server(says(), silence) as server:
            provider = providers.make_provider(
                "vllm", "m", {"base_url": server.url, "deadline": 0.2}
            )
            await provider.complete(Request(TURNS))
            with pytest.raises(ParticipantError, match=r"no answer within 0\.2 s$"):
                await provider.complete(Request(TURNS, call=listening))
            down = provider._transport._health.down
            await provider.close()
            return down

    assert asyncio.run(call())
    assert any("may be billed" in text for text in listening.told)


def test_a_call_that_never_reaches_its_endpoint_is_late_and_not_paid():
    noting = Noting()

    async def call():
        # its queue of connections is full, so that nobody is let in and nobody is refused
        with socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            waiting = [socket() for _ in range(4)]
            for each in waiting:
                each.setblocking(False)
                each.connect_ex(full.getsockname())
            provider = providers.make_provider(
                "vllm",
                "m",
                {"base_url": f"http://127.0.0.1:{full.getsockname()[1]}/v1", "deadline": 0.5},
            )
            with pytest.raises(
                ParticipantError,
                match=r"no answer within 0\.5 s \(the error before that was: cannot "
                r"connect: timeout",
            ):
                await provider.complete(Request(TURNS, call=noting))
            await provider.close()
            for each in waiting:
                each.close()

    asyncio.run(call())
    assert "unanswered" not in noting.seen
    assert "refused" in noting.seen


def test_all_requests_of_one_call_share_its_deadline(clock):
    """An endpoint that always names something else that it does not take has no further call's
    time."""

    async def slowly(asked, writer):
        await asyncio.sleep(0.3)
        name = next(name for name in ("temperature", "top_p", "stop") if name in asked.body)
        await sent({"error": {"message": f"{name} is not supported"}}, 400)(asked, writer)

    began = clock.now
    fault, server = asked(slowly, deadline=0.5, temperature=1, top_p=0.5, stop="x", play=clock.run)
    assert isinstance(fault, ParticipantError)
    assert "no answer within 0.5 s" in str(fault)
    assert clock.now - began < 0.6
    assert len(server.asked) == 2


def test_a_connection_is_given_up_before_usual_servers_close_it(monkeypatch):
    """A server that tears down what comes after a while of silence: the next request takes a new
    connection."""
    assert connections.KEEPALIVE < 5  # uvicorn's
    monkeypatch.setattr(connections, "KEEPALIVE", 0.1)
    last, listening = {}, Listening()

    async def strict(asked, writer):
        now, before = time.monotonic(), last.get(writer)
        last[writer] = now
        await (reset if before and now - before > 0.2 else sent(says()))(asked, writer)

    async def call():
        async with Server(strict) as server:
            provider = providers.make_provider("vllm", "m", {"base_url": server.url})
            await provider.complete(Request(TURNS, call=listening))
            await asyncio.sleep(0.3)
            await provider.complete(Request(TURNS, call=listening))
            await provider.close()
            return server

    server = asyncio.run(call())
    assert (len(server.asked), server.connections, listening.told) == (2, 2, [])


# a loop that ends does not close its connections
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_provider_may_be_asked_from_one_event_loop_after_another():
    made = []

    async def call():
        async with Server(says()) as server:
            if not made:
                made.append(providers.make_provider("vllm", "m", {"base_url": server.url}))
            made[0]._transport.url = f"{server.url}/chat/completions"
            return (await made[0].complete(Request(TURNS))).content

    async def close():
        await made[0].close()

    assert [asyncio.run(call()), event_loop.run_in_new_loop(call()), asyncio.run(call())] == [
        "hello"
    ] * 3
    asyncio.run(close())
    assert asyncio.run(call()) == "hello"
    asyncio.run(close())


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        (sent({"error": "bad key"}, 401), "check the API key"),
        (sent(b"no", 403), "check the API key"),
        (sent(b"no such model", 404), "check the model's name and base_url"),
        (sent({"error": {"code": "insufficient_quota"}}, 429), "check the account's credit"),
        (
            sent(b"", 307, Location="http://elsewhere/v1"),
            "the endpoint redirects to http://elsewhere/v1",
        ),
        ({"error": {"message": "no such model", "code": 404}}, "no such model"),
    ],
)
def test_what_asking_again_will_not_help_is_refused_at_once_with_a_hint(answer, hint):
    fault, server = asked(answer)
    assert isinstance(fault, Refused)
    assert hint in str(fault)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (sent({"error": {"message": "temperature too high"}}, 400), "temperature too high"),
        ({"error": "prompt too long"}, "prompt too long"),
        ({"error": {"message": "filtered"}, "choices": []}, "filtered"),
    ],
)
def test_what_may_lie_in_one_request_fails_it_at_once_but_does_not_speak_against_the_model(
    answer, said
):
    fault, server = asked(answer)
    assert type(fault) is Rejected
    assert said in str(fault)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        None,
        7,
        "text",
        [],
        {},
        {"choices": []},
        {"choices": None},
        {"choices": {"0": 1}},
        {"choices": [None]},
        {"choices": ["x"]},
    ]
    + [
        {"choices": [{}]},
        {"choices": [{"message": None}]},
        {"choices": [{"message": "x"}]},
        {"choices": [{"error": {"code": 502}}]},
    ],
    ids=str,
)
@pytest.mark.parametrize("family", ["openai-compatible", "completion"])
def test_an_answer_without_a_reply_is_the_endpoints_fault_not_a_crash(answer, family):
    fault, _ = asked(answer, family=family)
    assert type(fault) is ParticipantError
    assert "m-1: the " in str(fault)


@pytest.mark.parametrize(
    "answer",
    [
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n{"),
        flood,
        sent(gzip.compress(b" " * 40_000_000), Content_Encoding="gzip"),
    ],
    ids=["said", "chunked", "packed"],
)
def test_an_answer_that_is_too_large_is_not_read_to_its_end(answer):
    fault, server = asked(answer)
    assert type(fault) is ParticipantError
    assert "larger than 16 MB" in str(fault)
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [200, 400, 401, 500])
@pytest.mark.parametrize("filling", [0, 465])  # the key also where an error's text is cut
@pytest.mark.parametrize("variable", ["OPENAI_COMPATIBLE_API_KEY", "MY_CREDENTIAL"])
def test_the_key_appears_in_no_error(monkeypatch, status, filling, variable):
    monkeypatch.setenv(variable, KEY)
    answer = echo_of_the_key(status, lambda said: {"error": {"message": "x" * filling + said}})
    fault, _ = asked(answer, api_key_env=variable)
    assert isinstance(fault, ParticipantError)
    assert "sk-" not in str(fault)


@pytest.mark.parametrize("escaped", [False, True])
def test_the_key_appears_in_no_reply(monkeypatch, escaped):
    monkeypatch.setenv("MY_CREDENTIAL", KEY)

    def words(said):
        text = json.dumps({**says(said, reasoning=said), "model": said})
        return (text.replace("/", "\\/") if escaped else text).encode()

    reply, _ = asked(echo_of_the_key(200, words), api_key_env="MY_CREDENTIAL")
    assert [reply.content, reply.reasoning, reply.model_served] == ["Bearer [key]"] * 3


def test_the_key_appears_in_no_notice(monkeypatch):
    """What cannot be read as HTTP is quoted by the library that reads it."""
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)
    monkeypatch.setattr(endpoint_health, "BREAK", 2)
    listening = Listening()

    async def malformed(asked, writer):
        await raw(
            b"HTTP/1.1 200 OK\r\nX-Bad\x00Key "
            + asked.headers["authorization"].encode()
            + b"\r\n\r\n"
        )(asked, writer)

    fault, _ = asked(says(), malformed, calls=2, deadline=2, call=listening)
    assert "[key]" in "".join(listening.told)
    assert KEY[:12] not in "".join(listening.told) + str(fault)
    tally = Progress()
    tally.notify(f"it says {KEY}")
    assert tally.notices == ["it says [key]"]


def test_a_placeholder_of_a_key_does_not_blacken_replies(monkeypatch):
    monkeypatch.setenv("VLLM_API_KEY", "EMPTY")
    assert replied(says("The box is EMPTY."), family="vllm").content == "The box is EMPTY."


def test_a_key_that_no_header_can_carry_is_refused(monkeypatch):
    monkeypatch.setenv("VLLM_API_KEY", "abc\r\nX-Evil: 1")
    with pytest.raises(UsageError, match="not allowed in an HTTP header") as refused:
        providers.make_provider("vllm", "m", {})
    assert "Evil" not in str(refused.value)


def test_a_secret_in_an_address_does_not_show_in_errors(monkeypatch):
    monkeypatch.setenv("PLACE_TOKEN", "very-secret-place")
    fault, _ = asked(sent(b"", 404), base_url="http://127.0.0.1:9/${PLACE_TOKEN}/v1")
    assert "very-secret-place" not in str(fault)
    assert "http://127.0.0.1:9/${PLACE_TOKEN}/v1/chat/completions: " in str(fault)
    assert redact("at very-secret-place") == "at [key]"


def as_escapes(text):
    return "".join(f"\\u{ord(sign):04x}" for sign in text)


def half_escaped(text):
    return as_escapes(text[:3]) + text[3:]


ECHOES = {
    "redirect": sent(b"", 302, Location=f"https://else.where/{KEY}/login?x={KEY}"),
    "redirect, encoded": sent(b"", 302, Location=f"/login/{quote(KEY, safe='')}"),
    "error with status 200, escaped": sent(
        f'{{"error": {{"message": "bad {as_escapes(KEY)}"}}}}'.encode()
    ),
    "error with status 200, half escaped": sent(f'{{"error": "bad {half_escaped(KEY)}"}}'.encode()),
    "error with status 200, in a name": sent(f'{{"error": {{"{half_escaped(KEY)}": 1}}}}'.encode()),
    "error with status 400, escaped": sent(
        f'{{"error": {{"message": "bad {as_escapes(KEY)}"}}}}'.encode(), 400
    ),
    "error with status 401, half escaped": sent(
        f'{{"error": "bad {half_escaped(KEY)}"}}'.encode(), 401
    ),
    "error, in an address": sent(f"no /x?key={quote(KEY, safe='')}".encode(), 400),
    "error, in an address of small letters": sent(
        f"no /x?key={quote(KEY, safe='').replace('%2F', '%2f')}".encode(), 400
    ),
    "error, cut short with dots": sent(f"bad key: {KEY[:12]}***".encode(), 401),
    "error that is cut here": sent(b"x" * 490 + KEY.encode(), 400),
    "no JSON": sent(b"<html>" + b"x" * 64 + KEY.encode()),
    "no HTTP": raw(f"{KEY} is what you sent\r\n\r\n".encode()),
    "no reply": {"choices": [{"text": KEY, "odd": {KEY: quote(KEY)}}]},
    "broken off": sent(f'{{"choices": [{{"error": "{as_escapes(KEY)}"}}]}}'.encode()),
}


@pytest.mark.parametrize("answer", ECHOES.values(), ids=ECHOES)
def test_a_key_of_any_name_shows_in_no_error(monkeypatch, answer):
    monkeypatch.setenv("MYCRED", KEY)
    fault, _ = asked(answer, api_key_env="MYCRED")
    assert isinstance(fault, ParticipantError)
    said = str(fault)
    for form in (
        KEY,
        quote(KEY, safe=""),
        as_escapes(KEY),
        KEY[3:],
        KEY.partition("/")[0],
    ):
        assert form[:8] not in said
    assert "[key]" in said


def test_a_key_in_parts_is_not_put_together_again(monkeypatch):
    monkeypatch.setenv("MYCRED", KEY)
    parts = f"{KEY[:9]}\u200b{KEY[9:]}"
    reply, _ = asked({**says(), "model": parts}, api_key_env="MYCRED")
    assert reply.model_served == "[key]"


HALF_SHOWN = [
    "Incorrect API key provided: {head}{stars}{tail}. You can find your API key at the console.",
    "invalid x-api-key: {head}...{tail}",
    'API key "{head}…" is not valid',
    "the key ending in {tail} has been disabled",
    "key •••{tail} is over its limit",
]


@pytest.mark.parametrize("said", HALF_SHOWN)
@pytest.mark.parametrize("family", ["openai", "anthropic", "google", "azure"])
def test_no_part_of_a_key_shows_around_stars_and_dots(monkeypatch, family, said):
    monkeypatch.setenv("MYCRED", KEY)
    words = said.format(head=KEY[:7], stars="*" * 12, tail=KEY[-4:])
    fault, _ = asked(sent({"error": {"message": words}}, 401), family=family, api_key_env="MYCRED")
    assert isinstance(fault, Refused)
    assert "[key]" in str(fault)
    assert KEY[-4:] not in str(fault)
    assert KEY[:7] not in str(fault)


def test_stars_and_dots_around_other_words_stay(monkeypatch):
    monkeypatch.setenv("MYCRED", KEY)
    said = "So... it ends in tears… **bold** *** and sk-... or abc***xyz."
    assert replied(says(said), api_key_env="MYCRED").content == said


LONG = "sk-proj-Zq8Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zBc7D+/Tail9"


HALF_MASKED = {
    "masked by x": f"{LONG[:16]}xxxxxx{LONG[-16:]}",
    "masked by large X": f"{LONG[:6]}XXXX{LONG[-8:]}",
    "masked by hashes": f"{LONG[:16]}####{LONG[-6:]}",
    "masked by a word": f"{LONG[:8]}[REDACTED]{LONG[-8:]}",
    "masked behind an equals sign": f"api_key={LONG[:6]}****{LONG[-6:]}",
    "masked in a path": f"/v1/{LONG[:6]}****{LONG[-6:]}/models",
    "masked in an address": f"?x=Bearer%20{LONG[:6]}...{LONG[-6:]}&y",
}


@pytest.mark.parametrize("form", HALF_MASKED.values(), ids=HALF_MASKED)
def test_no_part_of_a_key_shows_around_other_masks(monkeypatch, form):
    monkeypatch.setenv("MYCRED", LONG)
    reply = replied(says(f"so {form} it is"), api_key_env="MYCRED")
    fault, _ = asked(sent(f"bad {form}".encode(), 400), api_key_env="MYCRED")
    for said in (reply.content, str(fault)):
        assert "[key]" in said
        assert LONG[:6] not in said
        assert LONG[-6:] not in said
    assert reply.content.startswith("so ")
    assert reply.content.endswith(" it is")


def test_words_that_only_begin_like_a_key_stay(monkeypatch):
    monkeypatch.setenv("MYCRED", LONG)
    said = "a task-project... and xxxx, ### ends in Tail: sk-proj- [redacted] \u200b<wbr> 9"
    assert replied(says(said), api_key_env="MYCRED").content == said


def test_a_key_shows_in_no_reply(monkeypatch):
    monkeypatch.setenv("MYCRED", KEY)
    for form in (
        KEY,
        as_escapes(KEY),
        half_escaped(KEY),
        quote(KEY, safe=""),
    ):
        text = (
            f'{{"choices": [{{"message": {{"content": "so {form}.", "reasoning": "{form}"}}}}], '
            f'"model": "{form}"}}'
        )
        reply = replied(text.encode(), api_key_env="MYCRED")
        assert [reply.content, reply.reasoning, reply.model_served] == [
            "so [key].",
            "[key]",
            "[key]",
        ]


def test_a_text_that_was_no_secret_is_masked_once_it_is_one():
    answer = {"opener-7": ["walnuts-9", 1], "role": "assistant"}
    secrets.keep_secret(KEY)
    assert secrets.mask_in_json(deepcopy(answer)) == answer
    secrets.keep_secret("walnuts-9")
    assert secrets.mask_in_json(deepcopy(answer)) == {**answer, "opener-7": ["[key]", 1]}
    secrets.keep_secret("opener-7")
    assert secrets.mask_in_json(answer) == {"[key]": ["[key]", 1], "role": "assistant"}


def test_looking_for_a_key_takes_a_moment_whatever_is_sent(monkeypatch):
    monkeypatch.setenv("MYCRED", KEY)
    began = time.process_time()
    like = (KEY[:6], KEY[:11], KEY[:12], f"{KEY[:9]} ")
    for odd in (*like, "\\", "%", "&", "\\u004", "***", "a...", "a" * 199 + "( ***", " ends in s"):
        assert replied(says(odd * (2**20 // len(odd))), api_key_env="MYCRED").content
    assert time.process_time() - began < 60  # it is linear; a quadratic one takes hours


def test_a_reply_without_a_key_is_left_as_it_is(monkeypatch):
    monkeypatch.setenv("MYCRED", KEY)
    said = "100%25 of C:\\u0041 &amp; \\/ <b> %zz sk-test-"
    assert replied(says(said), api_key_env="MYCRED").content == said


@pytest.mark.parametrize("value", ["gw-0123456789abcdef", "deep/gw-0123456789/abc"])
@pytest.mark.parametrize("form", ["/{}/v1", "/v1?to={}", "/v1?key={}&x=1"])
def test_a_value_in_an_address_shows_in_no_error_and_no_reply(monkeypatch, form, value):
    monkeypatch.setenv("GATEWAY", value)
    down, _ = asked(says(), base_url="http://127.0.0.1:9" + form.format("${GATEWAY}"))
    assert "http://127.0.0.1:9/" in str(down)

    async def call(answer):
        async with Server(answer) as server:
            provider = providers.make_provider(
                "vllm", "m", {"base_url": server.url + form.format("${GATEWAY}")}
            )
            try:
                return await provider.complete(Request(TURNS)), server
            except ParleyError as fault:
                return fault, server
            finally:
                await provider.close()

    told, server = asyncio.run(call(sent(f"no route {server_path(form, value)}".encode(), 404)))
    reply, _ = asyncio.run(call(says(f"I live at {value}.")))
    assert value in server.asked[0].path.replace("%2F", "/")
    assert value not in str(down) + str(told)
    assert reply.content == "I live at [key]."


def server_path(form, value):
    return form.format(quote(value, safe=""))


def test_a_host_or_a_whole_address_from_a_variable_is_not_named_and_blackens_no_reply(monkeypatch):
    monkeypatch.setenv("WHERE", "127.0.0.1")
    monkeypatch.setenv("WHOLE", "http://127.0.0.1:9/v1")
    for base, place in (
        ("http://${WHERE}:9/v1", "http://${WHERE}:9/v1/chat"),
        ("${WHOLE}", "${WHOLE}/chat"),
    ):
        fault, _ = asked(says(), base_url=base)
        assert str(fault).startswith(place)
        assert "127.0.0.1" not in str(fault)
    assert redact("http://127.0.0.1:9/v1") == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    "name", ["api_key", "key", "token", "secret", "access_token", "API-KEY", "%6bey"]
)
def test_a_key_written_out_in_an_address_is_refused_and_not_repeated(monkeypatch, name):
    with pytest.raises(UsageError, match=r"\$\{NAME\}") as refused:
        complete_address(f"http://host/v1?a=b&{name}=sk-written-out", "base_url")
    assert "written" not in str(refused.value)
    monkeypatch.setenv("MYCRED", "from-the-environment")
    assert complete_address(f"http://host/v1?{name}=${{MYCRED}}", "base_url").endswith(
        "=from-the-environment"
    )


def test_a_path_comes_before_the_query_of_an_address():
    provider = providers.make_provider("vllm", "m", {"base_url": "http://host/v1/?version=2"})
    assert provider._transport.url == "http://host/v1/chat/completions?version=2"
    assert (
        complete_address("http://host?version=2", "base_url", "/models")
        == "http://host/models?version=2"
    )


# Completion endpoints


def completes(text, **more):
    return {
        "model": "base-1",
        "choices": [{"text": text, "finish_reason": "stop", **more}],
        "usage": {"prompt_tokens": 4},
    }


def test_a_completion_prompt_is_the_conversation_with_tags_and_the_human_tag_ends_the_reply():
    reply, server = asked(completes(" Six."), family="completion")
    [request] = server.asked
    assert request.path == "/v1/completions"
    assert request.body == {
        "model": "m-1",
        "stop": ["\n\nHuman:"],
        "prompt": "\n\nHuman: How many?\n\nAssistant: Five.\n\nHuman: And now?\n\nAssistant:",
    }
    assert (reply.content, reply.finish, reply.model_served, reply.usage) == (
        "Six.",
        "stop",
        "base-1",
        Usage(4),
    )


def test_tags_may_be_typed_in_a_shell():
    tags = {"human_tag": r"\nQ:", "assistant_tag": r"\n\tA:", "stop": "END"}
    _, server = asked(completes("x"), family="completion", turns=TURNS[:1], **tags)
    assert server.asked[0].body["prompt"] == "\nQ: How many?\n\tA:"
    assert server.asked[0].body["stop"] == ["END", "\nQ:"]


def test_a_reply_ends_at_the_human_tag_even_where_the_endpoint_goes_on():
    reply = replied(
        completes(" Six.\n\nHuman: Really?\n\nAssistant: Yes", finish_reason="length"),
        family="completion",
    )
    assert (reply.content, reply.finish) == ("Six.", "stop")


@pytest.mark.parametrize("text", [None, 5, ["x"]])
def test_a_completion_without_text_is_no_reply(text):
    assert type(asked(completes(text), family="completion")[0]) is ParticipantError


WORDS = st.text() | st.sampled_from(["\n\nHuman: no", "\n\nAssistant: I pay 10"])


@settings(deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=7))
def test_completion_prompts_only_grow_at_their_end_and_no_word_passes_for_a_tag(said):
    provider = providers.make_provider("completion", "m", {"base_url": "http://nowhere"})
    turns = [
        Turn("assistant" if n % 2 else "user", text.encode("utf-8", "replace").decode())
        for n, text in enumerate(said)
    ]
    prompts = [
        json.loads(provider.body(Request(turns[:n])))["prompt"] for n in range(1, len(turns) + 1, 2)
    ]
    for shorter, longer in pairwise(prompts):
        assert longer.startswith(shorter)
    assert prompts[-1].count("\n\nHuman:") == len(prompts)
    assert prompts[-1].count("\n\nAssistant:") == len(prompts)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("127.0.0.1:1/TOPsecretVALUE123456", "http://${GATEWAY}/v1"),
        ("http://127.0.0.1:1/e401?key=TOPsecretVALUE123456", "${GATEWAY}"),
        ("http://127.0.0.1:1/v1?other=1&token=TOPsecret%56ALUE123456", "${GATEWAY}"),
        ("a/TOPsecretVALUE123456/b", "http://127.0.0.1:1/${GATEWAY}"),
    ],
)
def test_every_piece_of_an_address_from_the_environment_is_a_secret(monkeypatch, value, written):
    monkeypatch.setenv("GATEWAY", value)
    secrets.complete_address(written, "base_url")
    assert "TOPsecret" not in secrets.redact(
        "Cannot POST /TOPsecretVALUE123456/chat: wrong key TOPsecretVALUE123456"
    )
    assert secrets.redact("http://127.0.0.1:1/v1 refuses") == "http://127.0.0.1:1/v1 refuses"
