"""Anthropic's Messages API, as it is documented."""

import pytest

from parley.errors import ParticipantError, Refused, Rejected, UsageError
from parley.match.protocol import Usage
from parley.providers import _registry as providers
from parley.rules.pool import Turn
from parley.testing.server import sent
from tests.wire import FORM, KEY, SYSTEM, TURNS, after_a_break, asked, body_of, replied, wired

pytestmark = pytest.mark.usefixtures(wired.__name__)

MARK = {"cache_control": {"type": "ephemeral"}}
THINKING = {
    "type": "thinking",
    "thinking": "Let me count.",
    "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h/+=",
}
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4a"}
COINS = '{"reason": "fair", "coins": 5}'


def says(*content, stop="end_turn", **usage):
    blocks = [
        {"type": "text", "text": block} if isinstance(block, str) else block for block in content
    ]
    return {
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL",
        "type": "message",
        "role": "assistant",
        "model": "claude-served-1",
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5, **usage},
    }


def failing(kind, message, status):
    return sent(
        {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"},
        status,
    )


def text(words, **more):
    return {"type": "text", "text": words, **more}


# What is sent


def test_a_request_is_as_documented():
    _, server = asked("anthropic", says("Six."), turns=[SYSTEM, *TURNS])
    [request] = server.asked
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.headers["content-type"] == "application/json"
    assert "authorization" not in request.headers
    assert request.body == {
        "model": "m-1",
        "max_tokens": 16384,
        "system": [text("Be brief.", **MARK)],
        "messages": [
            {"role": "user", "content": [text("How many?", **MARK)]},
            {"role": "assistant", "content": "Five."},
            {"role": "user", "content": [text("And now?", **MARK)]},
        ],
    }


@pytest.mark.parametrize(
    ("base", "path"),
    [("/v1", "/v1/messages"), ("", "/v1/messages"), ("/gate/v1/", "/gate/v1/messages")],
)
def test_an_address_with_or_without_its_version_leads_to_the_same_place(base, path):
    assert asked("anthropic", says("x"), at=base)[1].asked[0].path == path


def test_options_have_the_names_of_the_api():
    body = body_of(
        "anthropic", says("x"), temperature="0", top_p=0.5, max_tokens="50", stop=r"END,\n\n"
    )
    del body["messages"]
    assert body == {
        "model": "m-1", "max_tokens": 50, "temperature": 0, "top_p": 0.5,
        "stop_sequences": ["END", "\n\n"]
    }  # fmt: skip


def test_marks_move_with_the_conversation_and_are_never_more_than_four():
    turns = [SYSTEM] + [Turn("assistant" if n % 2 else "user", f"words {n}") for n in range(9)]
    body = body_of("anthropic", says("x"), turns=turns)
    marked = [n for n, turn in enumerate(body["messages"]) if isinstance(turn["content"], list)]
    assert marked == [6, 8]  # the last question, and the one whose mark the cache was written at
    assert str(body).count("cache_control") == 3
    assert "cache_control" not in str(body_of("anthropic", says("x"), turns=turns, cache="off"))


def test_requests_only_grow_at_their_end():
    def spoken(turns):
        said = body_of("anthropic", says("x"), turns=turns)["messages"]
        return [
            (
                turn["role"],
                turn["content"] if isinstance(turn["content"], str) else turn["content"][0]["text"],
            )
            for turn in said
        ]

    turns = [
        Turn("assistant" if n % 2 else "user", "" if n == 3 else f"words {n}") for n in range(7)
    ]
    shorter, longer = spoken(turns[:5]), spoken(turns)
    assert longer[: len(shorter)] == shorter


def test_a_reply_without_words_is_left_out_of_the_next_request_because_the_api_takes_none():
    turns = [Turn("user", "How many?"), Turn("assistant", " \n"), Turn("user", "And now?")]
    assert [turn["role"] for turn in body_of("anthropic", says("x"), turns=turns)["messages"]] == [
        "user",
        "user",
    ]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (
            {"thinking_budget": "2048"},
            {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 8192 + 2048},
        ),
        ({"thinking": "adaptive"}, {"thinking": {"type": "adaptive", "display": "summarized"}}),
        ({"thinking": "disabled"}, {"thinking": {"type": "disabled"}}),
        ({"effort": "xhigh"}, {"output_config": {"effort": "xhigh"}}),
        (
            {"thinking": "adaptive", "effort": "low", "max_tokens": 9000},
            {"output_config": {"effort": "low"}, "max_tokens": 9000},
        ),
    ],
)
def test_thinking_is_asked_for_as_documented(options, wanted):
    body = body_of("anthropic", says("x"), **options)
    assert {name: body[name] for name in wanted} == wanted
    assert ("thinking" in body) == bool({"thinking", "thinking_budget"} & options.keys())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"thinking_budget": 500}, "at least 1024"),
        ({"thinking_budget": 2000, "max_tokens": 2000}, "less than `max_tokens`"),
        (
            {"thinking_budget": 2000, "thinking": "adaptive"},
            "set either `thinking` or `thinking_budget`",
        ),
        ({"effort": "huge"}, "xhigh"),
        ({"seed": 1}, "unknown option"),
    ],
)
def test_what_cannot_be_asked_is_told_at_the_start(options, told):
    with pytest.raises(UsageError, match=told):
        providers.make_provider("anthropic", "m-1", options)


def test_a_key_is_needed(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY"):
        providers.make_provider("anthropic", "m-1", {})


def test_a_form_is_sent_in_the_dialect_that_the_api_takes():
    wide = {
        "type": "object",
        "properties": {
            "coins": {"type": "integer", "minimum": 0, "maximum": 10},
            "side": {"enum": ["left", "right"]},
            "list": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"a": {"type": "string", "maxLength": 3}},
                },
            },
            "other": {
                "anyOf": [{"type": "number", "minimum": 1}, {"type": "null"}],
                "description": "perhaps",
            },
        },
        "required": ["coins"],
    }
    form = body_of("anthropic", says(COINS), schema=wide, effort="low")["output_config"]
    assert form["effort"] == "low"
    assert form["format"] == {
        "type": "json_schema",
        "schema": {
            "type": "object",
            "properties": {
                "coins": {"type": "integer", "description": "minimum 0, maximum 10"},
                "side": {"enum": ["left", "right"], "type": "string"},
                "list": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"a": {"type": "string", "description": "maxLength 3"}},
                        "required": ["a"],
                        "additionalProperties": False,
                    },
                },
                "other": {
                    "anyOf": [{"type": "number", "description": "minimum 1"}, {"type": "null"}],
                    "description": "perhaps",
                },
            },
            "required": ["coins", "side", "list", "other"],
            "additionalProperties": False,
        },
    }
    assert "output_config" not in body_of("anthropic", says(COINS), schema=FORM, structured="false")
    assert "output_config" not in body_of("anthropic", says(COINS))


def test_a_model_without_forms_is_asked_without_and_that_is_remembered():
    refusal = failing("invalid_request_error", "'m-1' does not support output format.", 400)
    reply, server = asked("anthropic", refusal, says(COINS), schema=FORM, calls=3)
    assert reply.content == COINS
    assert ["output_config" in request.body for request in server.asked] == [
        True,
        False,
        False,
        False,
    ]
    fault, server = asked("anthropic", refusal, says(COINS), schema=FORM, structured=True)
    assert isinstance(fault, Rejected)  # who insists is told
    assert len(server.asked) == 1


def too_many(asked_for, most):
    message = (
        f"max_tokens: {asked_for} > {most}, which is the maximum allowed number of "
        f"output tokens for m-1"
    )
    return failing("invalid_request_error", message, 400)


def test_a_model_with_less_room_is_asked_for_as_much_as_it_has_from_then_on():
    reply, server = asked("anthropic", too_many(16384, 4096), says("x"), calls=3)
    assert reply.content == "x"
    assert [request.body["max_tokens"] for request in server.asked] == [16384, 4096, 4096, 4096]
    assert reply.left_out == ()


@pytest.mark.parametrize("options", [{"max_tokens": 9000}, {"thinking_budget": 8192}])
def test_a_limit_of_ones_own_that_a_model_has_no_room_for_stands(options):
    fault, server = asked("anthropic", too_many(9000, 8192), says("x"), **options)
    assert type(fault) is Rejected
    assert len(server.asked) == 1


def test_a_model_that_says_the_same_number_again_is_not_asked_for_ever():
    fault, server = asked("anthropic", too_many(16384, 8192))
    assert type(fault) is Rejected
    assert len(server.asked) == 2


@pytest.mark.parametrize("step", [1, -1], ids=["more each time", "less each time"])
def test_a_model_that_says_another_number_each_time_is_not_asked_for_ever(step):
    fault, server = asked("anthropic", *(too_many(16384, 9000 + step * n) for n in range(9)))
    assert type(fault) is Rejected
    assert len(server.asked) == (2 if step == 1 else 3)


def test_counts_that_make_too_large_a_sum_are_unknown():
    usage = {f"{kind}input_tokens": 2**31 - 1 for kind in ("", "cache_read_", "cache_creation_")}
    assert replied("anthropic", {**says("x"), "usage": usage}).usage.tokens_in is None


def test_what_the_content_filter_holds_back_is_a_reply_without_words():
    reply, server = asked(
        "anthropic",
        failing("invalid_request_error", "Output blocked by content filtering policy", 400),
    )
    assert (reply.content, reply.finish, len(server.asked)) == ("", "filter", 1)


def test_a_model_that_takes_no_temperature_is_asked_without():
    refusal = failing("invalid_request_error", "`temperature` is deprecated for this model.", 400)
    _, server = asked("anthropic", refusal, says("x"), temperature=0, calls=2)
    assert ["temperature" in request.body for request in server.asked] == [True, False, False]


# What comes back


def test_a_reply_carries_words_usage_finish_and_the_model_as_served():
    usage = {"cache_read_input_tokens": 700, "cache_creation_input_tokens": 90}
    reply = replied("anthropic", says("Six", ".", **usage))
    assert (
        reply.content,
        reply.reasoning,
        reply.finish,
        reply.model_served,
        reply.provider_state,
    ) == (
        "Six.",
        "",
        "stop",
        "claude-served-1",
        None,
    )
    assert reply.response_id == "msg_01XFDUDYJgAACzvnptvVoYEL"
    # what was written to the cache is input too, and some pay more for it
    assert reply.usage == Usage(800, 700, 5, None, 90)
    thought = replied("anthropic", says("x", output_tokens_details={"thinking_tokens": 3}))
    assert thought.usage == Usage(10, None, 5, 3)


@pytest.mark.parametrize(
    "usage", [{"input_tokens": None}, {"input_tokens": "10"}, {"input_tokens": -1}]
)
def test_usage_that_makes_no_sense_is_unknown(usage):
    assert replied("anthropic", says("x", **usage)).usage.tokens_in is None


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "filter"),
        ("pause_turn", "other"),
        ("tool_use", "other"),
        ("something_new", "other"),
        (None, "stop"),
    ],
)
def test_stop_reasons(reason, finish):
    assert replied("anthropic", says("x", stop=reason)).finish == finish


def test_a_refusal_without_words_is_a_reply_without_words():
    reply = replied("anthropic", says(stop="refusal"))
    assert (reply.content, reply.finish) == ("", "filter")


def test_thinking_is_told_apart_and_goes_back_as_it_came():
    blocks = [THINKING, REDACTED, text("Six.", citations=None)]
    reply = replied("anthropic", says(*blocks), thinking_budget=1024)
    assert (reply.content, reply.reasoning) == ("Six.", "Let me count.")
    turns = [
        *TURNS,
        Turn("assistant", reply.content, reply.provider_state),
        Turn("user", "And then?"),
    ]
    body = body_of("anthropic", says("x"), turns=turns, thinking_budget=1024)
    assert body["messages"][3] == {"role": "assistant", "content": blocks}


def test_thinking_whose_text_is_kept_from_us_goes_back_all_the_same():
    hidden = {"type": "thinking", "thinking": "", "signature": "EosnCkYICxIMMb3LzNrMu"}
    reply = replied("anthropic", says(hidden, "Six."))
    assert (reply.reasoning, reply.provider_state) == ("", {"anthropic": [hidden, text("Six.")]})


def test_thinking_that_the_limit_cut_off_before_any_word_does_not_go_back():
    reply = replied("anthropic", says(THINKING, "", stop="max_tokens"))
    assert (reply.content, reply.finish, reply.provider_state) == ("", "length", None)


def test_what_another_provider_carried_is_not_sent():
    turns = [TURNS[0], Turn("assistant", "Five.", {"google": [{"text": "secret"}]}), TURNS[2]]
    assert "secret" not in str(body_of("anthropic", says("x"), turns=turns))


def test_thinking_goes_through_a_match_its_file_and_a_resumed_run(tmp_path):
    answers = [says({**THINKING, "signature": f"sig-{n}"}, COINS) for n in range(3)]
    bodies = after_a_break("anthropic/m-1", answers, tmp_path, thinking_budget=1024)
    assert len(bodies) == 4  # one reply, one break, two replies: nothing is asked twice
    last = [turn["content"] for turn in bodies[-1]["messages"] if turn["role"] == "assistant"]
    assert last == [[{**THINKING, "signature": f"sig-{n}"}, text(COINS)] for n in range(2)]


# What goes wrong


def test_overload_and_limits_pass():
    reply, server = asked(
        "anthropic",
        failing("overloaded_error", "Overloaded", 529),
        failing("rate_limit_error", "later", 429),
        failing("api_error", "Internal server error", 500),
        says("at last"),
    )
    assert (reply.content, len(server.asked)) == ("at last", 4)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (failing("authentication_error", f"invalid x-api-key {KEY}", 401), Refused),
        (failing("not_found_error", "model: m-1", 404), Refused),
        (
            failing(
                "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", 400
            ),
            Rejected,
        ),
        (
            failing(
                "invalid_request_error",
                '"thinking.type.enabled" is not supported for this model.',
                400,
            ),
            Rejected,
        ),
    ],
)
def test_errors_are_told_once_and_without_the_key(answer, kind):
    fault, server = asked("anthropic", answer, thinking_budget=1024)
    assert type(fault) is kind
    assert "sk-" not in str(fault)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "answer", [[], {}, {"content": None}, {"content": "text"}, {"type": "message"}, "text", None]
)
def test_an_answer_without_a_reply_is_the_endpoints_fault(answer):
    fault, _ = asked("anthropic", answer)
    assert type(fault) is ParticipantError
    assert "m-1: the endpoint's response contains no reply" in str(fault)


def test_odd_blocks_are_left_out():
    assert (
        replied(
            "anthropic",
            says("a", None, 7, {"type": "text"}, {"type": "server_tool_use", "id": "x"}, "b"),
        ).content
        == "ab"
    )
