"""Azure OpenAI, in its v1 and its dated interfaces."""

import pytest

from parley.errors import UsageError
from parley.providers import _registry as providers
from parley.testing.server import says, sent
from tests.wire import FORM, KEY, TURNS, asked, body_of, wired

pytestmark = pytest.mark.usefixtures(wired.__name__)

FILTERED = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content "
        "management policy. Please modify your prompt and retry. To learn more about our content "
        "filtering policies please read our documentation",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {"hate": {"filtered": True}},
        },
    }
}


def test_a_request_to_the_v1_interface():
    _, server = asked("azure", says("Six."), name="my-deployment", at="", max_tokens=50)
    [request] = server.asked
    assert request.path == "/openai/v1/chat/completions"
    assert request.headers["api-key"] == KEY
    assert "authorization" not in request.headers
    assert request.body == {
        "model": "my-deployment",
        "max_completion_tokens": 50,
        "messages": [{"role": turn.role, "content": turn.content} for turn in TURNS],
    }


@pytest.mark.parametrize(
    ("base", "options", "path"),
    [
        ("/", {}, "/openai/v1/chat/completions"),
        ("/openai/v1/", {}, "/openai/v1/chat/completions"),
        ("/gate", {}, "/gate/openai/v1/chat/completions"),
        ("", {"api": "responses"}, "/openai/v1/responses"),
        (
            "",
            {"api_version": "2024-10-21"},
            "/openai/deployments/m-1/chat/completions?api-version=2024-10-21",
        ),
        (
            "/openai",
            {"api_version": "2024-10-21"},
            "/openai/deployments/m-1/chat/completions?api-version=2024-10-21",
        ),
        (
            "?tenant=a",
            {"api_version": "2024-10-21"},
            "/openai/deployments/m-1/chat/completions?api-version=2024-10-21&tenant=a",
        ),
        (
            "",
            {"api_version": "2025-04-01-preview", "api": "responses"},
            "/openai/responses?api-version=2025-04-01-preview",
        ),
    ],
)
def test_the_address_follows_the_interface(base, options, path):
    answer = {"output": []} if options.get("api") == "responses" else says("x")
    assert asked("azure", answer, at=base, **options)[1].asked[0].path == path


def test_the_endpoint_and_the_key_come_from_the_environment(monkeypatch):
    with pytest.raises(UsageError, match=r"m-1.*AZURE_OPENAI_ENDPOINT"):
        providers.make_provider("azure", "m-1", {})
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")
    assert (
        providers.make_provider("azure", "m-1", {})._transport.url
        == "https://mine.openai.azure.com/openai/v1/chat/completions"
    )
    monkeypatch.delenv("AZURE_OPENAI_API_KEY")
    with pytest.raises(UsageError, match="AZURE_OPENAI_API_KEY"):
        providers.make_provider("azure", "m-1", {})


def test_a_question_that_the_filter_holds_back_is_a_reply_without_words():
    reply, server = asked("azure", sent(FILTERED, 400), schema=FORM)
    assert (reply.content, reply.finish) == ("", "filter")
    assert len(server.asked) == 1


@pytest.mark.parametrize("options", [{}, {"api": "responses"}])
def test_an_address_of_the_v1_interface_takes_no_date_and_may_take_a_name(options):
    with pytest.raises(
        UsageError, match="remove either `api_version`, or /openai/v1 from `base_url`"
    ):
        providers.make_provider(
            "azure",
            "m-1",
            {"base_url": "https://h/openai/v1", "api_version": "2024-10-21", **options},
        )
    named = providers.make_provider(
        "azure", "m-1", {"base_url": "https://h/openai/v1/", "api_version": "preview"}
    )
    assert named._transport.url == "https://h/openai/v1/chat/completions?api-version=preview"


def test_an_older_deployment_gets_the_limit_under_its_older_name():
    refusal = {
        "error": {
            "message": "Unrecognized request argument supplied: max_completion_tokens",
            "type": "invalid_request_error",
        }
    }
    _, server = asked(
        "azure", sent(refusal, 400), says("x"), max_tokens=9, calls=2, api_version="2024-02-01"
    )
    limits = [[name for name in asked.body if name.startswith("max_")] for asked in server.asked]
    assert limits == [["max_completion_tokens"], ["max_tokens"], ["max_tokens"]]


def test_reasoning_models_take_their_options():
    body = body_of("azure", says("x"), reasoning_effort="low")
    assert body["reasoning_effort"] == "low"
