"""An HTTP service in a seat: it takes the view as JSON and answers with a reply.

Parley sends {"seat", "round", "attempt", "messages": [{"role", "content"}], "schema"}. The
service answers with {"reply": "…"}, optionally with "model", or with a JSON string.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import orjson

from parley.errors import ParticipantError, UsageError
from parley.match.protocol import Call, Reply
from parley.participants._demonstrations import insert_examples
from parley.participants._guard import ErrorsAsParticipant
from parley.providers._registry import refuse_keyless
from parley.providers._replies import printable_name
from parley.providers._secrets import complete_address, printable_address, read_key
from parley.providers._traits import Traits
from parley.providers._transport import Transport
from parley.rules.parameters import build_dataclass
from parley.rules.pool import View
from parley.rules.task import Task
from parley.tables import shorten


@dataclass
class Options:
    """The options that a user may set."""

    api_key_env: str | None = None
    deadline: float = 600.0


class Http:
    """Posts the view, reads the reply."""

    sees_item: bool = False
    reports_requests: bool = True

    def __init__(self, transport: Transport) -> None:
        self._transport, self.url = transport, transport.url

    async def reply(self, view: View, call: Call) -> Reply:
        with ErrorsAsParticipant(f"{self._transport.address}: the call", halts=True):
            return await self._asked(view, call)

    async def _asked(self, view: View, call: Call) -> Reply:
        began = perf_counter()
        answer, request_id = await self._transport.post(
            orjson.dumps(
                {
                    "seat": str(view.seat),
                    "round": view.round,
                    "attempt": view.attempt,
                    "messages": [
                        {"role": turn.role, "content": turn.content}
                        for turn in insert_examples(view)[0]
                    ],
                    "schema": view.schema,
                }
            ),
            call,
        )
        said = answer.get("reply") if isinstance(answer, dict) else answer
        if not isinstance(said, str):
            raise ParticipantError(
                f'{self._transport.address}: the service must answer with {{"reply": "…"}}, not '
                f"{shorten(answer, 200)}"
            )
        model = answer.get("model") if isinstance(answer, dict) else None
        return Reply(
            said,
            model_served=printable_name(model),
            request_id=request_id,
            latency=perf_counter() - began,
        )

    async def close(self) -> None:
        await self._transport.close()


def make(name: str, options: Mapping[str, Any], task: type[Task]) -> Http:
    # a trailing slash may matter to the user's own service
    path = "/" if name.partition("?")[0].endswith("/") else ""
    url = complete_address(name, "http/URL", path)
    chosen = build_dataclass(Options, options, "option of", f"http/{name}")
    refuse_keyless(Traits(), options)
    key = read_key(chosen.api_key_env, needed=bool(chosen.api_key_env))
    try:
        return Http(Transport(url, key, chosen.deadline, printable_address(name, path)))
    except ValueError as wrong:
        raise UsageError(f"http/{name}: {wrong}") from None
