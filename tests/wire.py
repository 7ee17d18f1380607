"""Providers on the wire: what they send to a real server, and what they make of its answers."""

import asyncio
import threading
from contextlib import contextmanager

import pytest

import parley
from parley.errors import ParleyError
from parley.match.protocol import UNLIMITED, Call, Reply, Request
from parley.providers import _capabilities as capabilities
from parley.providers import _endpoint_health as endpoint_health
from parley.providers import _registry as providers
from parley.rules.pool import Turn
from parley.testing.server import Server, sent

KEY = "sk-test-0123456789/abcdef"
FORM = {
    "type": "object",
    "properties": {"coins": {"type": "number"}},
    "required": ["coins"],
    "additionalProperties": False,
}
TURNS = [Turn("user", "How many?"), Turn("assistant", "Five."), Turn("user", "And now?")]
SYSTEM = Turn("system", "Be brief.")
SETTINGS = [
    "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_API_KEY",
    "AZURE_OPENAI_ENDPOINT", "VLLM_BASE_URL",
]  # fmt: skip
KEYS = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AZURE_OPENAI_API_KEY"]


@pytest.fixture
def wired(monkeypatch, tmp_path):
    """Keys of the tests' own, nothing learnt from other tests, and no waiting."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    for name in KEYS:
        monkeypatch.setenv(name, KEY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(endpoint_health, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(capabilities, "KNOWN", {})


class Listening(Call):
    """A call that keeps what its user is shown."""

    def __init__(self):
        self.told = []

    def notice(self, text):
        self.told.append(text)


def asked(
    family,
    *answers,
    turns=TURNS,
    schema=None,
    calls=1,
    name="m-1",
    at=None,
    play=asyncio.run,
    call=UNLIMITED,
    **options,
):
    """What a provider makes of a server's answers: the last reply or the error, and the server."""

    async def speak():
        async with Server(*answers) as server:
            place = server.url if at is None else server.url.removesuffix("/v1") + at
            provider = providers.make_provider(family, name, {"base_url": place, **options})
            try:
                for _ in range(calls):
                    outcome = await provider.complete(Request(turns, schema, call=call))
            except ParleyError as fault:
                outcome = fault
            finally:
                await provider.close()
            return outcome, server

    return play(speak())


def replied(family, answer, **options):
    outcome, _ = asked(family, answer, **options)
    assert isinstance(outcome, Reply), outcome
    return outcome


def body_of(family, answer, **options):
    outcome, server = asked(family, answer, **options)
    assert isinstance(outcome, Reply), outcome
    return server.asked[-1].body


@contextmanager
def served(*answers):
    """A server in a thread of its own, for what runs an event loop itself."""
    ready, over, box = threading.Event(), asyncio.Event(), {}

    async def serve():
        async with Server(*answers) as server:
            box.update(server=server, loop=asyncio.get_running_loop())
            ready.set()
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(10)
        yield box["server"]
    finally:
        box["loop"].call_soon_threadsafe(over.set)
        thread.join()


def after_a_break(model, answers, store, at="", **options):
    """The bodies of a game of three rounds whose run breaks off before the second and is resumed
    from its file."""
    first, *rest = answers
    with served(first, sent({"error": {"message": "out of credit"}}, 402), *rest) as server:
        place = server.url.removesuffix("/v1") + at if at else server.url
        players = {"model": {"model": model, "base_url": place, **options}, "bot": "bot/altruist"}
        partial = parley.run("public_goods", players, repeats=1, seed=1, store=store, rounds=3)
        assert partial.state == "stopped"
        whole = parley.resume(partial.path)
        assert whole.state == "done"
        return [request.body for request in server.asked]
