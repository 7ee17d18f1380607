"""Models of local servers, such as vLLM."""

from __future__ import annotations

import asyncio
import shlex
from abc import abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar

from parley.errors import ParticipantError
from parley.match.protocol import Call, Reply, Request
from parley.match.threads import in_daemon_thread
from parley.providers._secrets import read_key
from parley.providers._servers import (
    LocalServer,
    ServerPlace,
    describe_missing,
    find_program,
    list_models,
)
from parley.providers._traits import traits_of
from parley.providers.openai import OpenAICompatible

# what Parley chooses itself
OWN_WORDS = ("--host", "--port", "--api-key", "--served-model-name", "--model", "--model-path")


@dataclass
class ServedModel(OpenAICompatible):
    """A model of a local server. Without `base_url`, Parley starts the server, unless one that
    serves the model answers at the usual address."""

    server_args: str = ""  # more words for the command line of the server
    revision: str | None = None
    download: bool = False
    _starts: bool = field(default=False, init=False, repr=False)
    _words: tuple[str, ...] = field(default=(), init=False, repr=False)
    _server: LocalServer | None = field(default=None, init=False, repr=False)

    loads_folders: ClassVar[bool] = True
    starts_server: ClassVar[bool] = True
    program: ClassVar[str]  # the command, which is named like the provider

    def __post_init__(self) -> None:
        self._starts = traits_of(type(self)).will_start_server({"base_url": self.base_url})
        given = [name for name in ("server_args", "revision", "download") if getattr(self, name)]
        if given and not self._starts:
            raise ValueError(
                f"`{given[0]}` is for a server that Parley starts, but this model has an address: "
                f"remove `{given[0]}`, or `base_url` and {self.home_env}"
            )
        if self._starts and self.name.startswith("-"):
            raise ValueError("the name of a model must not begin with a hyphen")
        self._words = split_words(self.server_args)
        super().__post_init__()

    @abstractmethod
    def command_words(self, place: ServerPlace) -> list[str]:
        """The words after the program that start the server."""

    def server_variables(self, place: ServerPlace) -> dict[str, str]:
        """Environment variables of the server."""
        return {}

    @property
    def label(self) -> str:
        return f"{self.program}/{self.name}"

    async def find_running(self) -> bool:
        """Whether the model is served already: at the address that was set, or at the usual one."""
        if not self._starts:
            return True
        with suppress(PermissionError):
            return self.name in await asyncio.to_thread(list_models, self._base, self.usual_key())
        return False

    def describe_start(self) -> str:
        """What a run does if no server at the usual address serves the model."""
        if (program := find_program(self.program)) is None:
            raise ParticipantError(describe_missing(self.program, self._base))
        return f"no server at {self._base} serves it: a run starts one with {program}"

    def usual_key(self) -> str | None:
        """The key for a server at the usual address."""
        return read_key(self.api_key_env or traits_of(type(self)).key_variable, needed=False)

    async def complete(self, request: Request) -> Reply:
        if not self._starts:
            return await super().complete(request)
        server = self._server or await self._find_server(request.call)
        if not server.was_started:
            return await super().complete(request)
        return await server.answer(super().complete(server.without_marks(request)))

    async def _find_server(self, call: Call) -> LocalServer:
        """The server of this model, once it answers."""
        server = LocalServer.shared(self, call.run_location())
        try:
            # many calls wait for it: one that gives up does not cancel it
            await asyncio.shield(asyncio.wrap_future(server.ready))
            for notice in server.notices:
                call.notice(notice)
            server.check()
        except BaseException:
            await in_daemon_thread(server.leave)
            raise
        if self._server is not None:  # another call has found it
            await in_daemon_thread(server.leave)
            return self._server
        self._server = server
        if server.was_started:
            self.connect(server.base, server.key, direct=True)
        return server

    async def close(self) -> None:
        server, self._server = self._server, None
        await super().close()
        if server is not None:
            await in_daemon_thread(server.leave)


def split_words(text: str) -> tuple[str, ...]:
    """The words of `server_args`; raises an error for those that Parley chooses itself."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as wrong:
        raise ValueError(f"`server_args` cannot be split into words: {wrong}") from None
    for word in words:
        option = word.partition("=")[0]
        if option.replace("_", "-") in OWN_WORDS:
            raise ValueError(
                f"`server_args` must not contain {option}, which Parley chooses: "
                "remove it, or start the server yourself and set `base_url`"
            )
    return words
