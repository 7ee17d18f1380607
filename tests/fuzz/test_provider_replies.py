"""Answers of endpoints: a reply that fits the record, or an error of the participant."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.errors import ParleyError
from parley.match.match import normalise_reply
from parley.match.protocol import Reply
from parley.match.record import RecordedCall
from parley.providers import _registry as providers
from parley.providers._endpoint_health import Retryable
from parley.providers._error_bodies import find_error, parse_answer, read_error
from parley.rules.pool import Seat
from parley.store.call_rows import call_row
from parley.store.digests import CALL_SPECIAL, digest_row
from tests.fuzz.bounded import few_or_many, of_size

USUAL = {
    "openai": {
        "model": "m",
        "choices": [{"message": {"content": "hi", "refusal": None}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 3,
            "completion_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": 1},
        },
    },
    "anthropic": {
        "model": "m",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 2},
    },
    "google": {
        "modelVersion": "m",
        "candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1},
    },
    "openai-compatible": {
        "choices": [
            {"message": {"content": "hi", "reasoning_content": "hm"}, "finish_reason": "length"}
        ],
        "usage": None,
    },
    "completion": {"choices": [{"text": "hi", "finish_reason": "stop"}], "usage": {}},
}
OPTIONS = {
    family: {"base_url": "http://localhost:1/v1"}
    if family in ("openai-compatible", "completion")
    else {}
    for family in USUAL
}
KEYS = ["type", "text", "content", "parts", "message", "choices", "usage", "x"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=10)
    | st.sampled_from(["text", "thinking", "stop", "\ud800", "\0", "\u202e"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def places_in(value, at=()):
    """Every place in a nested value."""
    yield at
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places_in(each, (*at, key))


def with_value(value, place, new):
    """A copy of a nested value with something else in one place."""
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = with_value(value[place[0]], place[1:], new)
    return copy


@pytest.fixture(scope="module")
def made():
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
            patch.setenv(name, "sk-test-0123456789abcdef")
        yield {
            family: providers.make_provider(family, "m", options)
            for family, options in OPTIONS.items()
        }


@few_or_many
@pytest.mark.parametrize("family", USUAL)
def test_any_answer_is_a_reply_for_the_record_or_an_error(sized, family, made):
    provider, usual = made[family], USUAL[family]
    changed = st.builds(with_value, st.just(usual), st.sampled_from([*places_in(usual)]), JSON)

    @of_size(sized)
    @given(changed | JSON)
    @example(usual)
    def check(answer):
        body = json.dumps(answer).encode("utf-8", "surrogatepass")
        try:
            reply = provider.reply(parse_answer(body))
        except (ParleyError, Retryable):
            return
        assert isinstance(reply, Reply)
        row = call_row(1, RecordedCall(1, Seat("players", 1), 0, b"", normalise_reply(reply), 1.5))
        assert digest_row(row, "", CALL_SPECIAL) == digest_row(row)
        for count in row[10:15]:
            assert count is None or 0 <= count < 2**63

    check()


@few_or_many
def test_any_body_of_an_error_is_read(sized):
    @of_size(sized)
    @given(st.binary(max_size=100) | JSON.map(json.dumps).map(str.encode))
    @example(b"[" * 100_000)
    @example(b'{"error": {"code": "429"}}')
    @example(b"\xff\xfe")
    @example(b"9" * 5000)
    def check(body):
        try:
            found = find_error(parse_answer(body))
        except (ParleyError, Retryable):
            return
        status, said, whole = read_error(found)
        assert isinstance(status, int)
        assert isinstance(said, str)
        assert isinstance(whole, str)

    check()
