"""The providers of inspect-ai in a seat: its own mock plays, and ones that misbehave."""

import asyncio
import os
import subprocess
import sys
from importlib import import_module

import pytest

import parley
from parley.errors import ParticipantError, Refused, Rejected, UsageError
from parley.match.protocol import Reply, Request, Usage
from parley.providers import _registry as providers
from parley.rules.pool import Turn
from parley.runs import event_loop

# set where inspect-ai must be there: nothing is skipped then
HEAVY = bool(os.environ.get("PARLEY_HEAVY"))
FORM = {
    "type": "object",
    "properties": {"coins": {"type": "number"}},
    "required": ["coins"],
    "additionalProperties": False,
}
TURNS = [
    Turn("system", "Be brief."),
    Turn("user", "How many?"),
    Turn("assistant", "Five."),
    Turn("user", "And now?"),
]
FAIR = '{"reason": "fair", "coins": 5}'

slow = pytest.mark.slow
# inspect-ai asks tenacity for a pause by a name that tenacity has since changed; nothing of ours.
old_name = pytest.mark.filterwarnings(
    "ignore:The 'initial' parameter is deprecated:DeprecationWarning"
)


def test_without_the_extra_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    with pytest.raises(UsageError, match=r"needs inspect-ai: pip install 'parley-eval\[inspect\]'"):
        parley.run(
            "public_goods",
            models={"a": "inspect/mockllm/model", "b": "bot/altruist"},
            store=tmp_path,
        )


def test_the_module_stands_in_nobodys_way():
    code = (
        "import sys, inspect\nfrom parley.providers._registry import provider_class\n"
        "found = provider_class('inspect')\n"
        "assert found.__module__ == 'parley.providers.inspect' and inspect.signature and "
        "'inspect_ai' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def api():
    """inspect-ai's models; only where it was not promised is its absence a reason to skip."""
    return import_module("inspect_ai.model") if HEAVY else pytest.importorskip("inspect_ai.model")


@pytest.fixture
def mock(api, monkeypatch):
    """Its mock, answering with this output or as this function says, and what it was asked."""
    get_model = api.get_model

    def answering(outputs):
        seen = []

        def noted(messages, tools, choice, config):
            seen.append((messages, config))
            return outputs(len(seen)) if callable(outputs) else outputs

        monkeypatch.setattr(
            api, "get_model", lambda name, **given: get_model(name, custom_outputs=noted, **given)
        )
        return seen

    return answering


def output(api, content=FAIR, stop_reason="stop", **usage):
    message = api.ChatMessageAssistant(content=content)
    counts = api.ModelUsage(**{"input_tokens": 90, "output_tokens": 12, **usage})
    return api.ModelOutput(
        model="mock-1", choices=[{"message": message, "stop_reason": stop_reason}], usage=counts
    )


def asked(name="mockllm/model", turns=TURNS, schema=None, play=asyncio.run, **options):
    """What comes of one call: the reply or the error."""

    async def call():
        provider = providers.make_provider("inspect", name, options)
        try:
            return await provider.complete(Request(turns, schema))
        except ParticipantError as fault:
            return fault
        finally:
            await provider.close()

    return play(call())


@slow
@old_name
def test_its_mock_plays_a_match(api, mock, tmp_path):
    seen = mock(output(api))
    models = {
        "mock": {"model": "inspect/mockllm/model", "temperature": 0.5},
        "rider": "bot/free-rider",
    }
    result = parley.run("public_goods", models=models, repeats=3, rounds=2, seed=1, store=tmp_path)
    assert result.state == "done"
    assert result.data["violations"] == []
    row = next(row for row in result.data["results"] if row["alias"] == "mock")
    assert row["model_served"] == ["mock-1"]
    assert row["mean"] == pytest.approx(2 * (5 + 1.2 * 5 / 2))
    cost = next(row for row in result.data["cost"] if row["alias"] == "mock")
    assert cost["calls"] == len(seen) == 6
    assert (cost["tokens_in"], cost["tokens_out"]) == (90 * 6, 12 * 6)
    assert sys.excepthook.__module__ != "inspect_ai._util.error"


@slow
@old_name
@pytest.mark.parametrize(
    "play", [asyncio.run, event_loop.run_in_new_loop], ids=["asyncio", "uvloop"]
)
def test_the_conversation_and_the_options_arrive(api, mock, play):
    seen = mock(output(api))
    options = {
        "temperature": "0.5",
        "top_p": 0.9,
        "top_k": 5,
        "max_tokens": "50",
        "seed": "7",
        "stop": r"END,\n\n",
    }
    reply = asked(play=play, reasoning_effort="none", reasoning_tokens=100, **options)
    assert isinstance(reply, Reply), reply
    [(messages, config)] = seen
    assert [(message.role, message.text) for message in messages] == [
        (turn.role, turn.content) for turn in TURNS
    ]
    assert (config.temperature, config.top_p, config.top_k, config.max_tokens, config.seed) == (
        0.5,
        0.9,
        5,
        50,
        7,
    )
    assert (config.stop_seqs, config.reasoning_effort, config.reasoning_tokens) == (
        ["END", "\n\n"],
        "none",
        100,
    )
    assert (config.max_retries, config.timeout, config.response_schema) == (4, 600, None)


@slow
@old_name
def test_a_schema_is_sent_only_where_structured_output_was_asked_for(api, mock):
    seen = mock(output(api))
    asked(schema=FORM)
    asked(schema=FORM, structured="true")
    asked(structured=True)
    forms = [config.response_schema for _, config in seen]
    assert [form and form.json_schema.required for form in forms] == [None, ["coins"], None]


@slow
@old_name
def test_a_reply_carries_words_thoughts_usage_and_the_model(api, mock):
    content = import_module("inspect_ai.model")
    thinking = content.ContentReasoning(reasoning="five is fair", signature="x")
    hidden = content.ContentReasoning(reasoning="gAAAA", summary="a summary", redacted=True)
    mock(
        output(
            api,
            [thinking, hidden, content.ContentText(text="Fi"), content.ContentText(text="ve.")],
            input_tokens_cache_read=64,
            input_tokens_cache_write=6,
            reasoning_tokens=8,
        )
    )
    reply = asked()
    assert (reply.content, reply.reasoning, reply.model_served) == (
        "Five.",
        "five is fair\na summary",
        "mock-1",
    )
    assert reply.usage == Usage(160, 64, 12, 8, 6)
    assert reply.latency > 0


@slow
@old_name
@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("max_tokens", "length"),
        ("model_length", "length"),
        ("content_filter", "filter"),
        ("tool_calls", "other"),
        ("unknown", "other"),
    ],
)
def test_stop_reasons(api, mock, reason, finish):
    mock(output(api, stop_reason=reason))
    assert asked().finish == finish


@slow
@old_name
def test_an_answer_without_a_choice_is_no_reply(api, mock):
    mock(api.ModelOutput(model="mock-1", choices=[], error="moderated", usage=api.ModelUsage()))
    fault = asked()
    assert type(fault) is ParticipantError
    assert "the endpoint's response contains no reply: moderated" in str(fault)


class Said(Exception):
    """An error as the libraries of endpoints raise it."""

    def __init__(self, status, words="it says no"):
        super().__init__(words)
        self.status_code = status


def raising(wrong):
    def fail(count):
        raise wrong

    return fail


@slow
@old_name
@pytest.mark.parametrize(
    ("wrong", "kind", "says_what"),
    [
        (Said(401), Refused, r"it says no \(check the API key\)"),
        (Said(404), Refused, "check the model's name"),
        (Said(400), Rejected, "it says no"),
        (Said(500), ParticipantError, "it says no"),
        (ValueError("odd"), ParticipantError, "odd"),
        (ExceptionGroup("several", [ValueError("odd")]), ParticipantError, "several"),
        (TimeoutError(), ParticipantError, "no answer within"),
    ],
    ids=str,
)
def test_errors_speak_against_the_model_the_request_or_the_moment(mock, wrong, kind, says_what):
    mock(raising(wrong))
    fault = asked()
    assert type(fault) is kind
    with pytest.raises(kind, match=f"^inspect/mockllm/model: .*{says_what}"):
        raise fault


@slow
@old_name
def test_a_key_shows_in_no_error_and_no_reply(api, mock, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-test-0123456789")
    mock(raising(Said(500, "bad key sk-test-0123456789")))
    assert "bad key [key]" in str(asked())
    mock(output(api, "it is sk-test-0123456789"))
    assert asked().content == "it is [key]"


@slow
@old_name
def test_a_call_ends_at_its_deadline(api, mock):
    mock(lambda count: asyncio.sleep(60))
    fault = asked(deadline=0.2)
    assert type(fault) is ParticipantError
    assert "no answer within 0.2 s" in str(fault)


@slow
@pytest.mark.parametrize(
    ("name", "options", "says_what"),
    [
        ("model", {}, "inspect/PROVIDER/NAME"),
        ("mockllm/model", {"temprature": 1}, "did you mean 'temperature'"),
        ("mockllm/model", {"deadline": 0}, "deadline"),
        ("mockllm/model", {"base_url": "localhost"}, "an address like"),
        ("mockllm/model", {"api_key_env": "NOT_SET_HERE"}, "NOT_SET_HERE"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_the_start(api, name, options, says_what):
    with pytest.raises(UsageError, match=says_what):
        providers.make_provider("inspect", name, options)


@slow
@pytest.mark.parametrize(
    ("name", "options", "says_what"),
    [
        ("nosuch/model", {}, "nosuch"),
        ("openai/gpt-4.1", {}, "openai"),  # its library, or its key, is not there
        ("mockllm/model", {"reasoning_effort": "huge"}, "reasoning_effort"),
    ],
)
def test_what_inspect_ai_does_not_make_is_refused_by_the_first_call(
    api, monkeypatch, name, options, says_what
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    fault = asked(name, **options)
    assert type(fault) is Refused
    assert says_what in str(fault)
    assert "[bold]" not in str(fault)
    assert "\n" not in str(fault)


@slow
@old_name
def test_a_model_is_made_once_and_only_when_it_is_asked(api, mock, monkeypatch):
    mock(output(api))
    made, get_model = [], api.get_model
    monkeypatch.setattr(
        api, "get_model", lambda name, **given: (made.append(name), get_model(name, **given))[1]
    )

    async def call():
        for calls in (0, 3):
            provider = providers.make_provider("inspect", "mockllm/model", {})
            assert made == []
            for _ in range(calls):
                await provider.complete(Request(TURNS))
            await provider.close()

    asyncio.run(call())
    assert made == ["mockllm/model"]


@slow
@old_name
def test_calls_leave_nothing_behind_in_the_context(api, mock):
    from inspect_ai.log._transcript import _transcript

    mock(output(api))

    async def call():
        provider = providers.make_provider("inspect", "mockllm/model", {})
        for _ in range(3):
            await provider.complete(Request(TURNS))
        await provider.close()
        return _transcript.get()

    assert asyncio.run(call()) is None
