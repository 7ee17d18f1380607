"""A language model in a seat: its view becomes a request to a provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from parley.errors import Refused
from parley.match.protocol import Call, Provider, Reply, Request
from parley.participants._demonstrations import insert_examples
from parley.participants._guard import ErrorsAsParticipant, file_of_function
from parley.providers import _registry as providers
from parley.providers._replies import check_reply, fold_system_turn
from parley.rules.parameters import parse_value
from parley.rules.pool import Turn, View

TOKENS = 20  # first tokens whose log-probabilities are asked for: the most that endpoints return


class Model:
    """A language model. Demonstrations of a task come before the question they belong to."""

    sees_item: bool = False

    def __init__(self, provider: Provider, system: str = "", folded: bool = False) -> None:
        own = type(provider).__module__.startswith("parley.providers.")
        self.provider, self._complete = (
            provider,
            provider.complete if own else self._complete_checked,
        )
        self.reports_requests = bool(getattr(provider, "reports_requests", False))
        self.folded = folded or not getattr(provider, "system_role", True)
        self._system = [Turn("system", system)] if system else []

    @classmethod
    def from_options(cls, family: str, name: str, options: Mapping[str, Any]) -> Model:
        """Make a model from its options. `system` is the user's own text; `no_system_role` puts it
        at the beginning of the first turn."""
        rest = dict(options)
        system = str(rest.pop("system", None) or "")
        folded = parse_value(
            rest.pop("no_system_role", False), bool, f"{family}/{name}.no_system_role"
        )
        return cls(providers.make_provider(family, name, rest), system, folded)

    async def reply(self, view: View, call: Call) -> Reply:
        turns, sent = insert_examples(view)
        if self._system:
            turns = (
                fold_system_turn([*self._system, *turns])
                if self.folded
                else [*self._system, *turns]
            )
        weigh: Callable[[Mapping[str, float]], str] | None = (
            None if view.free else getattr(view.expect, "weigh", None)
        )
        wanted = TOKENS if weigh is not None else None
        reply = await self._complete(Request(turns, view.schema, view.sampling_seed, wanted, call))
        reply.sent = sent
        return reply if weigh is None else choose_by_logprobs(reply, weigh)

    async def _complete_checked(self, request: Request) -> Reply:
        """A reply from a provider of another package."""
        home = file_of_function(self.provider.complete)
        with ErrorsAsParticipant("the provider", halts=True, home=home):
            return check_reply(await self.provider.complete(request), "the provider")

    async def close(self) -> None:
        await self.provider.close()


def choose_by_logprobs(reply: Reply, weigh: Callable[[Mapping[str, float]], str]) -> Reply:
    """A reply chosen by the log-probabilities of its first token; the rest of the text does not
    count."""
    if reply.logprobs is None:
        raise Refused(
            "this task needs log-probabilities, but the endpoint returned none: use --set "
            "by=text, or another endpoint"
        )
    return replace(reply, content=weigh(reply.logprobs), finish="stop")
