"""Google's Gemini API, as it is documented."""

import asyncio

import pytest

from parley.cli import models
from parley.errors import ParticipantError, Refused, Rejected, UsageError
from parley.match.protocol import Request, Usage
from parley.providers import _registry as providers
from parley.rules.pool import Turn
from parley.testing.server import Server, sent
from tests.clock import clock as clock
from tests.wire import FORM, KEY, SYSTEM, TURNS, after_a_break, asked, body_of, replied, wired

pytestmark = pytest.mark.usefixtures(wired.__name__)

COINS = '{"reason": "fair", "coins": 5}'
CONTENTS = [
    {"role": "user", "parts": [{"text": "How many?"}]},
    {"role": "model", "parts": [{"text": "Five."}]},
    {"role": "user", "parts": [{"text": "And now?"}]},
]


def says(*parts, finish="STOP", **usage):
    found = [{"text": part} if isinstance(part, str) else part for part in parts]
    return {
        "candidates": [
            {
                "content": {"parts": found, "role": "model"},
                "finishReason": finish,
                "index": 0,
                "safetyRatings": [],
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 10,
            "candidatesTokenCount": 5,
            "totalTokenCount": 15,
            **usage,
        },
        "modelVersion": "gemini-served-1",
        "responseId": "Il0taoSYJ5Cez7IP",
    }


def failing(code, status, message, reason=None):
    details = (
        [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}] if reason else []
    )
    return sent(
        {"error": {"code": code, "message": message, "status": status, "details": details}}, code
    )


# What is sent


def test_a_request_is_as_documented():
    _, server = asked(
        "google", says("Six."), turns=[SYSTEM, *TURNS], name="gemini-2.5-flash", at="/v1beta"
    )
    [request] = server.asked
    assert request.path == "/v1beta/models/gemini-2.5-flash:generateContent"
    assert request.headers["x-goog-api-key"] == KEY
    assert "authorization" not in request.headers
    assert request.body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": CONTENTS,
    }


def test_nothing_is_sent_that_was_not_set():
    assert body_of("google", says("x")) == {"contents": CONTENTS}


@pytest.mark.parametrize(
    ("base", "name", "path"),
    [
        ("", "m-1", "/v1beta/models/m-1:generateContent"),
        ("/v1beta", "models/m-1", "/v1beta/models/m-1:generateContent"),
        ("/gate/v1alpha/", "tunedModels/mine", "/gate/v1alpha/tunedModels/mine:generateContent"),
        ("/v1", "odd name?", "/v1/models/odd%20name%3F:generateContent"),
    ],
)
def test_the_address_names_the_version_and_the_model(base, name, path):
    assert asked("google", says("x"), at=base, name=name)[1].asked[0].path == path


def test_options_have_the_names_of_the_api():
    options = {
        "temperature": "0",
        "top_p": 0.5,
        "max_tokens": "50",
        "seed": "7",
        "stop": r"END,\n\n",
    }
    body = body_of("google", says("x"), **options, thinking_budget="0")
    assert body["generationConfig"] == {
        "temperature": 0,
        "topP": 0.5,
        "maxOutputTokens": 50,
        "seed": 7,
        "stopSequences": ["END", "\n\n"],
        "thinkingConfig": {"thinkingBudget": 0},
    }


def test_a_call_has_a_seed_of_its_own_beside_its_other_settings():
    async def speak(**options):
        async with Server(says("x")) as server:
            provider = providers.make_provider(
                "google", "m-1", {"base_url": server.url, "temperature": 0, **options}
            )
            await provider.complete(Request(TURNS, FORM, sampling_seed=b"\xff" * 16))
            await provider.close()
            return server.asked[0].body["generationConfig"]

    found = asyncio.run(speak())
    assert (found["seed"], found["temperature"]) == (2**31 - 1, 0)
    assert "responseJsonSchema" in found
    assert "seed" not in asyncio.run(speak(seed="none"))


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"thinking_budget": -1}, {"thinkingBudget": -1, "includeThoughts": True}),
        ({"thinking_budget": 2048, "include_thoughts": "false"}, {"thinkingBudget": 2048}),
        ({"thinking_level": "low"}, {"thinkingLevel": "low", "includeThoughts": True}),
        ({"include_thoughts": True}, {"includeThoughts": True}),
    ],
)
def test_thinking_is_asked_for_as_documented(options, wanted):
    assert body_of("google", says("x"), **options)["generationConfig"] == {"thinkingConfig": wanted}


def test_a_form_is_a_json_schema_with_its_type():
    schema = {
        **FORM,
        "properties": {"coins": {"type": "number", "minimum": 0}, "side": {"enum": ["a", "b"]}},
    }
    assert body_of("google", says(COINS), schema=schema, seed=1)["generationConfig"] == {
        "seed": 1,
        "responseMimeType": "application/json",
        "responseJsonSchema": {
            **FORM,
            "properties": {
                "coins": {"type": "number", "minimum": 0},
                "side": {"enum": ["a", "b"], "type": "string"},
            },
            "required": ["coins", "side"],
        },
    }
    assert "generationConfig" not in body_of("google", says(COINS), schema=FORM, structured=False)


def test_what_a_model_does_not_take_is_left_out_step_by_step_and_remembered():
    reply, server = asked(
        "google",
        failing(400, "INVALID_ARGUMENT", "JSON mode is not enabled for models/gemma-3-27b-it"),
        failing(400, "INVALID_ARGUMENT", "JSON mode is not enabled for models/gemma-3-27b-it"),
        failing(
            400,
            "INVALID_ARGUMENT",
            "Developer instruction is not enabled for models/gemma-3-27b-it",
        ),
        says(COINS),
        schema=FORM,
        turns=[SYSTEM, *TURNS],
        calls=2,
    )
    assert reply.content == COINS
    first, second, third, *rest = [request.body for request in server.asked]
    assert "responseJsonSchema" in first["generationConfig"]
    assert second["generationConfig"] == {"responseMimeType": "application/json"}
    assert "generationConfig" not in third
    folded = [{"role": "user", "parts": [{"text": "Be brief.\n\nHow many?"}]}, *CONTENTS[1:]]
    assert rest == [{"contents": folded}] * 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"thinking_budget": 1, "thinking_level": "low"}, "cannot be combined"),
        ({"thinking_levl": "low"}, "did you mean 'thinking_level'"),
    ],
)
def test_what_cannot_be_asked_is_told_at_the_start(options, told):
    with pytest.raises(UsageError, match=told):
        providers.make_provider("google", "m-1", options)


def test_the_key_has_two_names_and_is_needed(monkeypatch):
    monkeypatch.delenv("GEMINI_API_KEY")
    with pytest.raises(UsageError, match="GEMINI_API_KEY"):
        providers.make_provider("google", "m-1", {})
    monkeypatch.setenv("GOOGLE_API_KEY", "another-key-123")
    assert asked("google", says("x"))[1].asked[0].headers["x-goog-api-key"] == "another-key-123"
    assert models.describe_model("google")["key_found"]
    # where both are set, the other wins: so do Google's own clients
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    assert asked("google", says("x"))[1].asked[0].headers["x-goog-api-key"] == "another-key-123"


# What comes back


def test_a_reply_carries_words_usage_finish_and_the_model_as_served():
    reply = replied("google", says("Six", ".", cachedContentTokenCount=8, thoughtsTokenCount=20))
    assert (reply.content, reply.reasoning, reply.finish, reply.model_served) == (
        "Six.",
        "",
        "stop",
        "gemini-served-1",
    )
    assert reply.response_id == "Il0taoSYJ5Cez7IP"
    assert reply.usage == Usage(10, 8, 25, 20)  # thoughts are output, and paid as such
    assert reply.provider_state is None


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "filter"),
        ("RECITATION", "filter"),
        ("BLOCKLIST", "filter"),
        ("PROHIBITED_CONTENT", "filter"),
        ("SPII", "filter"),
        ("MALFORMED_FUNCTION_CALL", "other"),
        ("OTHER", "other"),
        (None, "stop"),
    ],
)
def test_finish_reasons(reason, finish):
    assert replied("google", says("x", finish=reason)).finish == finish


@pytest.mark.parametrize(
    "answer",
    [
        {
            "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
            "usageMetadata": {"promptTokenCount": 4},
        },
        {"candidates": [], "promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []}},
        {"candidates": [{"finishReason": "SAFETY", "index": 0}]},
        {"candidates": [{"finishReason": "RECITATION", "content": {}}]},
    ],
)
def test_what_was_blocked_is_a_reply_without_words(answer):
    reply = replied("google", answer)
    assert (reply.content, reply.finish) == ("", "filter")


def test_a_reply_without_words_is_left_out_of_the_next_request():
    turns = [TURNS[0], Turn("assistant", ""), TURNS[2]]
    assert body_of("google", says("x"), turns=turns)["contents"] == [CONTENTS[0], CONTENTS[2]]


def test_thoughts_are_told_apart_and_signatures_go_back_as_they_came():
    parts = [
        {"text": "Let me count.", "thought": True},
        {"text": "Six."},
        {"text": "", "thoughtSignature": "EjQKMgEMabc/+="},
    ]
    reply = replied("google", says(*parts), thinking_level="high")
    assert (reply.content, reply.reasoning) == ("Six.", "Let me count.")
    turns = [
        *TURNS,
        Turn("assistant", reply.content, reply.provider_state),
        Turn("user", "And then?"),
    ]
    assert body_of("google", says("x"), turns=turns)["contents"][3] == {
        "role": "model",
        "parts": parts,
    }


def test_signatures_go_through_a_match_its_file_and_a_resumed_run(tmp_path):
    answers = [says({"text": COINS, "thoughtSignature": f"sig-{n}"}) for n in range(3)]
    bodies = after_a_break("google/m-1", answers, tmp_path, at="/v1beta")
    assert len(bodies) == 4
    last = [content["parts"] for content in bodies[-1]["contents"] if content["role"] == "model"]
    assert last == [[{"text": COINS, "thoughtSignature": f"sig-{n}"}] for n in range(2)]


# What goes wrong


def test_a_wrong_key_is_told_as_such_although_it_comes_as_a_bad_request():
    fault, server = asked(
        "google",
        failing(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    )
    assert type(fault) is Refused
    assert "check the API key" in str(fault)
    assert len(server.asked) == 1


def test_limits_pass_and_other_faults_of_a_request_do_not():
    reply, _ = asked(
        "google",
        failing(429, "RESOURCE_EXHAUSTED", "later"),
        failing(503, "UNAVAILABLE", "busy"),
        says("x"),
    )
    assert reply.content == "x"
    fault, server = asked(
        "google", failing(400, "INVALID_ARGUMENT", f"The input token count exceeds the limit {KEY}")
    )
    assert type(fault) is Rejected
    assert "sk-" not in str(fault)
    assert len(server.asked) == 1


def test_the_wait_that_an_error_names_in_its_details_is_kept(clock):
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.3s"}]
    error = {
        "error": {
            "code": 429,
            "message": "later",
            "status": "RESOURCE_EXHAUSTED",
            "details": details,
        }
    }
    for answer in (sent(error, 429), error):  # some say it with status 200
        began = clock.now
        assert asked("google", answer, says("x"), play=clock.run)[0].content == "x"
        assert 0.3 <= clock.now - began < 0.4


@pytest.mark.parametrize(
    "answer",
    [[], {}, {"candidates": []}, {"candidates": [None]}, {"candidates": "x"}, "text", None],
)
def test_an_answer_without_a_reply_is_the_endpoints_fault(answer):
    fault, _ = asked("google", answer)
    assert type(fault) is ParticipantError
    assert "m-1: the endpoint's response contains no reply" in str(fault)
