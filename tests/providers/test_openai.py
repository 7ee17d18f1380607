"""OpenAI's two interfaces, and endpoints that share the first of them but not all of it."""

import asyncio
import logging

import pytest

import parley
from parley.audit.audit import audit_run
from parley.errors import ParticipantError, Rejected, UsageError
from parley.match.protocol import Reply, Request, Usage
from parley.providers import _capabilities as capabilities
from parley.providers import _registry as providers
from parley.rules.pool import ContentPart, Turn
from parley.testing.server import Server, says, sent
from tests.wire import (
    FORM,
    KEY,
    SYSTEM,
    TURNS,
    Listening,
    after_a_break,
    asked,
    body_of,
    replied,
    served,
    wired,
)

pytestmark = pytest.mark.usefixtures(wired.__name__)

COINS = '{"reason": "fair", "coins": 5}'
REASONING = {
    "id": "rs_6820f383d7c08191846711c5df8233bc",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Counting."}],
    "encrypted_content": "gAAAAABoISQ24OyVRYbkYfukdJoqdzWT-3uiErKInHDC=",
}


def message(*texts, **more):
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {
        "id": "msg_6820f3854688",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": content,
        **more,
    }


def responds(*items, **more):
    return {
        "id": "resp_6820f382ee1c",
        "object": "response",
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": "gpt-served-1",
        "output": list(items),
        "usage": {
            "input_tokens": 75,
            "input_tokens_details": {"cached_tokens": 64},
            "output_tokens": 30,
            "output_tokens_details": {"reasoning_tokens": 20},
            "total_tokens": 105,
        },
        **more,
    }


def refuses(message, status=400, **more):
    return sent({"error": {"message": message, "type": "invalid_request_error", **more}}, status)


# Chat completions at OpenAI


def test_openai_takes_the_limit_under_its_newer_name_and_compatible_endpoints_under_the_older():
    options = {"max_tokens": 50, "seed": 7, "reasoning_effort": "none"}
    body = body_of("openai", says("x"), turns=TURNS[:1], **options)
    assert body == {
        "model": "m-1",
        "seed": 7,
        "reasoning_effort": "none",
        "max_completion_tokens": 50,
        "messages": [{"role": "user", "content": "How many?"}],
    }
    assert body_of("openai-compatible", says("x"), max_tokens=50)["max_tokens"] == 50


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"api": "responses", "seed": 1}, "does not accept `seed`"),
        ({"api": "responses", "stop": "END"}, "`seed` and `stop`"),
        ({"reasoning_summary": "auto"}, "set `api=responses`"),
        ({"api": "batch"}, "available: chat, responses"),
    ],
)
def test_what_cannot_be_asked_is_told_at_the_start(options, told):
    with pytest.raises(UsageError, match=told):
        providers.make_provider("openai", "m-1", options)


# Responses


def test_a_request_to_the_responses_api_is_as_documented():
    options = {
        "temperature": 0,
        "top_p": 0.5,
        "max_tokens": 50,
        "reasoning_effort": "low",
        "reasoning_summary": "auto",
    }
    _, server = asked(
        "openai",
        responds(message("x")),
        turns=[SYSTEM, *TURNS],
        schema=FORM,
        api="responses",
        **options,
    )
    [request] = server.asked
    assert request.path == "/v1/responses"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "m-1",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "temperature": 0,
        "top_p": 0.5,
        "max_output_tokens": 50,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {
            "format": {"type": "json_schema", "name": "reply", "strict": True, "schema": FORM}
        },
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "How many?"},
            {"role": "assistant", "content": "Five."},
            {"role": "user", "content": "And now?"},
        ],
    }


def test_nothing_is_sent_to_the_responses_api_that_was_not_set():
    body = body_of("openai", responds(message("x")), api="responses")
    assert body.keys() == {"model", "store", "include", "input"}


def test_parts_are_sent_as_their_words():
    turns = [Turn("user", (ContentPart("text", "How "), ContentPart("text", "many?")))]
    assert body_of("openai", responds(message("x")), turns=turns, api="responses")["input"] == [
        {"role": "user", "content": "How many?"}
    ]


def test_a_response_carries_words_reasoning_usage_and_what_is_wanted_back():
    reply = replied("openai", responds(REASONING, message("Six", ".")), api="responses")
    assert (reply.content, reply.reasoning, reply.finish, reply.model_served) == (
        "Six.",
        "Counting.",
        "stop",
        "gpt-served-1",
    )
    assert (reply.response_id, reply.system_fingerprint) == ("resp_6820f382ee1c", None)
    assert reply.usage == Usage(75, 64, 30, 20)
    assert reply.provider_state == {
        "responses": [REASONING, {"role": "assistant", "content": "Six."}]
    }
    turns = [
        *TURNS,
        Turn("assistant", reply.content, reply.provider_state),
        Turn("user", "And then?"),
    ]
    body = body_of("openai", responds(message("x")), turns=turns, api="responses")
    assert body["input"][3:] == [
        REASONING,
        {"role": "assistant", "content": "Six."},
        {"role": "user", "content": "And then?"},
    ]
    chat = body_of("openai", says("x"), turns=turns)  # the other interface knows no such items
    assert chat["messages"][3] == {"role": "assistant", "content": "Six."}


@pytest.mark.parametrize(
    "items",
    [
        [message("Six.")],
        [{**REASONING, "encrypted_content": None}, message("Six.")],
        [{"type": "reasoning", "id": "rs_1", "summary": []}, message("Six.")],
    ],
)
def test_what_would_be_a_reference_to_nothing_does_not_go_back(items):
    reply = replied("openai", responds(*items), api="responses")
    assert (reply.content, reply.provider_state) == ("Six.", None)


def test_reasoning_without_an_answer_does_not_go_back():
    reply = replied(
        "openai",
        responds(
            REASONING, status="incomplete", incomplete_details={"reason": "max_output_tokens"}
        ),
        api="responses",
    )
    assert (reply.content, reply.finish, reply.provider_state) == ("", "length", None)


def test_phases_go_back_and_commentary_is_no_answer():
    items = [message("I will count.", phase="commentary"), message("Six.", phase="final_answer")]
    reply = replied("openai", responds(*items), api="responses")
    assert reply.content == "Six."
    assert [item["phase"] for item in reply.provider_state["responses"]] == [
        "commentary",
        "final_answer",
    ]


@pytest.mark.parametrize(
    ("more", "finish"),
    [
        ({"status": "completed"}, "stop"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "filter"),
        ({"status": "incomplete", "incomplete_details": None}, "other"),
        ({"status": "cancelled"}, "other"),
    ],
)
def test_how_responses_end(more, finish):
    assert replied("openai", responds(message("x"), **more), api="responses").finish == finish


def test_a_refusal_is_what_was_said():
    refusal = {**message(), "content": [{"type": "refusal", "refusal": "I must not."}]}
    assert replied("openai", responds(refusal), api="responses").content == "I must not."


def test_a_response_that_failed_on_the_other_side_is_tried_again():
    failed = responds(
        status="failed",
        error={"code": "server_error", "message": "The model failed to generate a response."},
    )
    reply, server = asked("openai", failed, responds(message("x")), api="responses")
    assert (reply.content, len(server.asked)) == ("x", 2)


@pytest.mark.parametrize("answer", [[], {}, {"output": None}, {"choices": []}, "text", None])
def test_an_answer_without_a_response_is_the_endpoints_fault(answer):
    fault, _ = asked("openai", answer, api="responses")
    assert type(fault) is ParticipantError


def test_a_model_that_does_not_reason_is_asked_for_nothing_to_take_back():
    refusal = refuses(
        "Encrypted content is not supported with this model.", param="include", code=None
    )
    _, server = asked("openai", refusal, responds(message("x")), api="responses", calls=2)
    assert ["include" in request.body for request in server.asked] == [True, False, False]


def test_reasoning_goes_through_a_match_its_file_and_a_resumed_run(tmp_path):
    items = [{**REASONING, "id": f"rs_{n}"} for n in range(3)]
    bodies = after_a_break(
        "openai/m-1", [responds(item, message(COINS)) for item in items], tmp_path, api="responses"
    )
    assert len(bodies) == 4
    kept = [item for item in bodies[-1]["input"] if item.get("role") != "user"]
    said = {"role": "assistant", "content": COINS}
    assert kept == [items[0], said, items[1], said]
    assert [body["store"] for body in bodies] == [False] * 4


# Endpoints that take less

REFUSALS = {
    "deepseek": ("This response_format type is unavailable now", "json_schema"),
    "groq": (
        "'response_format.type' : value is not one of the allowed values ['text','json_object']",
        "json_schema",
    ),
    "openai, a keyword": (
        (
            "Invalid schema for response_format 'reply': In context=('properties', 'coins'), "
            "'minimum' is not permitted."
        ),
        "json_schema",
    ),
    "llama.cpp": ("failed to parse grammar", "json_schema"),
    "vllm, a grammar": (
        "The provided JSON schema contains features not supported by xgrammar.",
        "json_schema",
    ),
    "gemma on vllm": ("System role not supported", "system"),
    "mistral on vllm": ("Only user and assistant roles are supported!", "system"),
    "alternation": (
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "system",
    ),
    "limit": (
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead."
        ),
        "max_tokens",
    ),
    "o-series": (
        (
            "Unsupported value: 'temperature' does not support 0.5 with this model. Only the "
            "default (1) value is supported."
        ),
        "temperature",
    ),
    "mistral": (
        (
            '[{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not '
            'permitted","input":7}]'
        ),
        "seed",
    ),
    "grok": ("Argument not supported on this model: reasoning_effort", "reasoning_effort"),
    "stop": ("Unsupported parameter: 'stop' is not supported with this model.", "stop"),
    "top_p": ("Unsupported parameter: 'top_p' is not supported with this model.", "top_p"),
}
EVERYTHING = {
    "temperature": 0.5,
    "top_p": 0.9,
    "max_tokens": 9,
    "seed": 7,
    "stop": "END",
    "reasoning_effort": "low",
}


def features(body):
    """What a chat request asks for, by name."""
    found = set(body) - {"model", "messages", "response_format"}
    found |= {body["response_format"]["type"]} if "response_format" in body else set()
    return found | ({"system"} if body["messages"][0]["role"] == "system" else set())


@pytest.mark.parametrize(("said", "lacking"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("status", [400, 422])
def test_what_an_endpoint_rejects_by_name_is_left_out_at_once_and_from_then_on(
    said, lacking, status
):
    turns = [SYSTEM, *TURNS]
    reply, server = asked(
        "openai-compatible",
        refuses(said, status),
        says("x"),
        turns=turns,
        schema=FORM,
        calls=3,
        **EVERYTHING,
    )
    assert reply.content == "x"
    first, *rest = [features(request.body) for request in server.asked]
    assert first == {*EVERYTHING, "json_schema", "system"}
    instead = {"json_schema": {"json_object"}, "max_tokens": {"max_completion_tokens"}}.get(
        lacking, set()
    )
    # the first call paid for it, no later one does
    assert rest == [first - {lacking} | instead] * 3


def test_what_was_set_and_is_not_taken_is_told_once_and_stands_with_every_reply():
    listening = Listening()

    async def speak():
        refusals = [refuses("'temperature' is not supported"), refuses("System role not supported")]
        async with Server(*refusals, says("x")) as server:
            replies = []
            for _ in range(2):  # two models of a process, which share what was found
                provider = providers.make_provider(
                    "openai-compatible",
                    "m-1",
                    {"base_url": server.url, "temperature": 0.5, "seed": 1},
                )
                replies += [
                    await provider.complete(Request([SYSTEM, *TURNS], call=listening))
                    for _ in range(2)
                ]
                await provider.close()
            return replies

    assert [reply.left_out for reply in asyncio.run(speak())] == [("system", "temperature")] * 4
    assert (
        listening.told
        == [
            (
                "m-1 does not accept a system role, so Parley puts the system text at the start "
                "of the first message; the run records this with each reply"
            ),
            (
                "m-1 does not accept temperature, so Parley leaves it out; the run records this "
                "with each reply"
            ),
        ]
        * 2
    )  # each of them tells its own run


def test_what_was_not_set_is_not_missed():
    refusal = refuses("'temperature' is not supported")
    asked("openai-compatible", refusal, says("x"), temperature=1)
    reply, _ = asked("openai-compatible", says("x"))
    assert reply.left_out == ()


def test_options_that_were_not_taken_stand_in_the_run_and_its_result(tmp_path):
    with served(refuses("'temperature' is not supported"), says(COINS)) as server:
        players = {
            "model": {"model": "openai-compatible/m-1", "base_url": server.url, "temperature": 0},
            "bot": "bot/altruist",
        }
        result = parley.run("public_goods", players, repeats=1, seed=1, store=tmp_path, rounds=3)
    assert result.data["left_out"] == [{"alias": "model", "options": ["temperature"], "calls": 3}]
    line = "model: 3 calls sent without temperature, because the endpoint does not support this"
    assert line in result.render()
    assert line in audit_run(result.ref).cautions


NARROW = {**FORM, "properties": {"coins": {"type": "number", "multipleOf": 3}}}
ONE_SCHEMA = [
    (
        "Invalid schema for response_format 'reply': In context=('properties', 'coins'), "
        "'multipleOf' is not permitted."
    ),
    "The provided JSON schema contains features not supported by xgrammar.",
    "output_format.schema: For 'number' type, property 'multipleOf' is not supported",
    "Schema is too complex. Reduce the number of properties.",
]


@pytest.mark.parametrize("said", ONE_SCHEMA)
def test_a_schema_that_is_not_taken_speaks_against_no_other(said):
    async def picky(asked, writer):
        wanted = asked.body.get("response_format", {})
        await (refuses(said) if "multipleOf" in str(wanted) else sent(says("x")))(asked, writer)

    async def speak():
        async with Server(picky) as server:
            provider = providers.make_provider("openai-compatible", "m-1", {"base_url": server.url})
            for schema in (FORM, NARROW, dict(NARROW), FORM):
                await provider.complete(Request(TURNS, schema))
            await provider.close()
            return [request.body["response_format"]["type"] for request in server.asked]

    assert asyncio.run(speak()) == [
        "json_schema",
        "json_schema",
        "json_object",
        "json_object",
        "json_schema",
    ]


@pytest.mark.parametrize(
    "said",
    [
        "This response_format type is unavailable now",
        "This model does not support response format `json_schema`.",
        "'m-1' does not support output format.",
    ],
)
def test_an_endpoint_that_takes_no_schemas_is_asked_for_none_again(said):
    async def speak():
        async with Server(refuses(said), says("x")) as server:
            provider = providers.make_provider("openai-compatible", "m-1", {"base_url": server.url})
            for schema in (FORM, NARROW):
                await provider.complete(Request(TURNS, schema))
            await provider.close()
            return [request.body["response_format"]["type"] for request in server.asked]

    assert asyncio.run(speak()) == ["json_schema", "json_object", "json_object"]


def test_where_many_schemas_are_not_taken_no_further_one_is_tried():
    async def picky(asked, writer):
        wanted = asked.body.get("response_format", {}).get("type")
        await (refuses(ONE_SCHEMA[0]) if wanted == "json_schema" else sent(says("x")))(
            asked, writer
        )

    async def speak():
        async with Server(picky) as server:
            provider = providers.make_provider("openai-compatible", "m-1", {"base_url": server.url})
            for number in range(12):
                await provider.complete(Request(TURNS, {**FORM, "description": f"number {number}"}))
            await provider.close()
            return len(server.asked)

    assert asyncio.run(speak()) == 12 + capabilities.MOST_SCHEMAS


MODERATED = {
    "code": 403,
    "message": 'm-1 requires moderation on Some. Your input was flagged for "violence"',
    "metadata": {
        "reasons": ["violence"],
        "flagged_input": "How many?",
        "provider_name": "Some",
        "model_slug": "m-1",
    },
}
INVALID = {
    "message": "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
    "code": "invalid_prompt",
}


@pytest.mark.parametrize(
    ("family", "answer"),
    [
        ("openrouter", sent({"error": MODERATED}, 403)),
        ("openrouter", {"error": MODERATED}),
        ("openai", sent({"error": INVALID}, 400)),
        ("openai", refuses("The response was filtered", code="content_filter")),
        (
            "openai",
            refuses(
                "Your request was rejected by our safety system", code="content_policy_violation"
            ),
        ),
        (
            "azure",
            refuses(
                "The response was filtered",
                code="content_filter",
                innererror={"code": "ResponsibleAIPolicyViolation"},
            ),
        ),
    ],
)
def test_what_is_refused_for_its_content_is_a_reply_without_words(monkeypatch, family, answer):
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    reply, server = asked(family, answer, schema=FORM)
    assert isinstance(reply, Reply), reply
    assert (reply.content, reply.finish, len(server.asked)) == ("", "filter", 1)
    assert reply.latency > 0


@pytest.mark.parametrize(
    "answer",
    [
        sent({"error": {"code": 403, "message": "Key limit exceeded"}}, 403),
        refuses("Invalid prompt: it must not be empty", code="invalid_prompt"),
    ],
)
def test_other_refusals_are_still_told(monkeypatch, answer):
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    assert isinstance(asked("openrouter", answer)[0], ParticipantError)


def test_a_response_that_failed_for_its_content_is_a_reply_without_words():
    failed = responds(status="failed", error=INVALID)
    reply, _ = asked("openai", failed, api="responses")
    assert (reply.content, reply.finish) == ("", "filter")


def test_an_open_object_is_asked_for_without_being_strict():
    votes = {"type": "object", "additionalProperties": {"type": "number"}}
    schema = {
        "type": "object",
        "properties": {"votes": votes},
        "required": ["votes"],
        "additionalProperties": False,
    }
    wanted = body_of("openai", says("x"), schema=schema)["response_format"]["json_schema"]
    assert wanted == {"name": "reply", "strict": False, "schema": schema}


def test_an_equal_schema_is_encoded_once(monkeypatch):
    provider = providers.make_provider("openai", "m-1", {})
    made = []
    monkeypatch.setattr(provider, "encode_schema", lambda form, schema: made.append(form) or b"")
    for schema in (FORM, FORM, dict(FORM), {**FORM}):
        provider.body(Request(TURNS, schema))
    assert made == ["json_schema"]


def test_a_form_is_given_up_step_by_step():
    refusal = refuses("The response_format parameter is unsupported at the moment. Leave it unset.")
    _, server = asked("openai-compatible", refusal, refusal, says("x"), schema=FORM, calls=2)
    assert [request.body.get("response_format", {}).get("type") for request in server.asked] == [
        "json_schema", "json_object", None, None
    ]  # fmt: skip


def test_without_a_system_role_its_words_open_the_first_turn():
    _, server = asked(
        "openai-compatible", refuses("System role not supported"), says("x"), turns=[SYSTEM, *TURNS]
    )
    assert server.asked[1].body["messages"] == [
        {"role": "user", "content": "Be brief.\n\nHow many?"},
        {"role": "assistant", "content": "Five."},
        {"role": "user", "content": "And now?"},
    ]


@pytest.mark.parametrize(
    "said",
    [
        "temperature too high",
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum "
            "context length is 4096 tokens"
        ),
        (
            "max_tokens is too large: 5000. This model supports at most 4096 completion tokens, "
            "whereas you provided 5000."
        ),
        "temperature: must be in the range 0 to 2",
        "logprobs is not supported",
        "your prompt was flagged",
        "",
    ],
)
def test_a_rejection_that_names_no_such_feature_stands(said):
    fault, server = asked(
        "openai-compatible", refuses(said), turns=[SYSTEM, *TURNS], schema=FORM, **EVERYTHING
    )
    assert type(fault) is Rejected
    assert len(server.asked) == 1


def test_a_feature_that_was_not_asked_for_is_not_given_up():
    fault, server = asked("openai-compatible", refuses("'seed' is not supported"))
    assert type(fault) is Rejected
    assert len(server.asked) == 1


def test_what_did_not_help_is_not_remembered():
    known = capabilities.KNOWN
    fault, server = asked(
        "openai-compatible",
        refuses("unsupported: temperature, top_p, seed in 'what the user said'"),
        **EVERYTHING,
    )
    assert type(fault) is Rejected
    assert len(server.asked) == 4  # each of the named was left out once, and then it was told
    assert [each.unsupported for each in known.values()] == [frozenset()]


def test_who_insists_on_a_form_is_told():
    fault, server = asked(
        "openai-compatible",
        refuses("This response_format type is unavailable now"),
        schema=FORM,
        structured=True,
    )
    assert type(fault) is Rejected
    assert len(server.asked) == 1


def test_what_was_found_holds_for_the_endpoint_and_the_model_in_the_whole_process(caplog):
    async def speak():
        async with Server(refuses("'temperature' is not supported"), says("x")) as server:
            for name in ("m-1", "m-1", "m-2"):
                provider = providers.make_provider(
                    "openai-compatible", name, {"base_url": server.url, "temperature": 0.5}
                )
                await provider.complete(Request(TURNS))
                await provider.close()
            return [
                ("temperature" in request.body, request.body["model"]) for request in server.asked
            ]

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(speak()) == [
            (True, "m-1"),
            (False, "m-1"),
            (False, "m-1"),
            (True, "m-2"),
        ]
    assert caplog.messages == [
        "m-1: the endpoint does not accept temperature, so Parley leaves it out from now on"
    ]


def seeds_sent(family, *answers, **options):
    """The seeds of requests that have two different beginnings of chance, and their replies."""

    async def speak():
        async with Server(*answers) as server:
            provider = providers.make_provider(family, "m-1", {"base_url": server.url, **options})
            replies = [
                await provider.complete(Request(TURNS, sampling_seed=seed))
                for seed in (b"\xff" * 16, bytes(16))
            ]
            await provider.close()
            return [each.body.get("seed") for each in server.asked], replies

    return asyncio.run(speak())


@pytest.mark.parametrize("family", ["openai-compatible", "openai", "vllm", "llamacpp", "ollama"])
def test_every_call_has_a_seed_of_its_own_unless_one_is_set_or_none_is_wanted(family):
    assert seeds_sent(family, says("x"))[0] == [2**31 - 1, 0]
    assert seeds_sent(family, says("x"), seed="7")[0] == [7, 7]
    assert seeds_sent(family, says("x"), seed="none")[0] == [None, None]


def test_completions_have_seeds_and_responses_have_none():
    assert seeds_sent("completion", {"choices": [{"text": "x"}]})[0] == [2**31 - 1, 0]
    assert seeds_sent("openai", responds(message("x")), api="responses")[0] == [None, None]


def test_a_derived_seed_that_is_refused_is_left_out_without_a_warning(caplog):
    refusal = refuses("Unsupported parameter: 'seed' is not supported with this model.")
    with caplog.at_level(logging.WARNING):
        seeds, replies = seeds_sent("openai-compatible", refusal, says("x"))
    assert seeds == [2**31 - 1, None, None]
    assert [reply.left_out for reply in replies] == [(), ()]
    assert caplog.messages == []
    capabilities.KNOWN.clear()
    _, replies = seeds_sent("openai-compatible", refusal, says("x"), seed=7)
    assert [reply.left_out for reply in replies] == [("seed",), ("seed",)]


def test_calls_in_flight_find_out_together_and_within_bounds():
    async def picky(asked, writer):
        taken = (
            not {"temperature", "seed"} & asked.body.keys() and "response_format" not in asked.body
        )
        named = next(
            (name for name in ("response_format", "temperature", "seed") if name in asked.body), ""
        )
        await (sent(says("x")) if taken else refuses(f"'{named}' is not supported"))(asked, writer)

    async def speak():
        async with Server(picky, pause=0.02) as server:
            provider = providers.make_provider(
                "openai-compatible", "m-1", {"base_url": server.url, "temperature": 0, "seed": 1}
            )
            replies = await asyncio.gather(
                *(provider.complete(Request(TURNS, FORM)) for _ in range(20))
            )
            before = len(server.asked)
            await provider.complete(Request(TURNS, FORM))
            await provider.close()
            return replies, before, len(server.asked) - before

    replies, before, after = asyncio.run(speak())
    assert {reply.content for reply in replies} == {"x"}
    assert before <= 20 * 5  # the schema, the object, temperature, seed, and the reply
    assert after == 1


@pytest.mark.parametrize(
    ("family", "address"),
    [
        ("sglang", "http://localhost:30000/v1"),
        ("lmstudio", "http://localhost:1234/v1"),
        ("llamacpp", "http://localhost:8080/v1"),
        ("ollama", "http://localhost:11434/v1"),
    ],
)
def test_servers_on_this_machine_need_no_key(family, address):
    assert (
        providers.make_provider(family, "m-1", {})._transport.url == f"{address}/chat/completions"
    )


@pytest.mark.parametrize("family", ["groq", "together", "deepseek"])
def test_services_want_their_key(monkeypatch, family):
    monkeypatch.delenv(f"{family.upper()}_API_KEY", raising=False)
    with pytest.raises(UsageError, match=f"{family.upper()}_API_KEY"):
        providers.make_provider(family, "m-1", {})
    monkeypatch.setenv(f"{family.upper()}_API_KEY", KEY)
    assert asked(family, says("x"))[1].asked[0].headers["authorization"] == f"Bearer {KEY}"
