"""Azure OpenAI; a model is named by its deployment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import quote

from parley.errors import Rejected
from parley.providers import openai, responses
from parley.providers.endpoint import path_of
from parley.providers.protocol import Reply, Request

FILTERED = ("content_filter", "content management policy", "ResponsibleAIPolicyViolation")  # of a question, said with status 400


@dataclass
class Provider(openai.Provider):
    """Azure OpenAI; a model is named by its deployment."""

    api_version: str = ""  # the dated interface, such as 2024-10-21; without it, the v1 interface

    home: ClassVar[str | None] = None
    home_env: ClassVar[str | None] = "AZURE_OPENAI_ENDPOINT"
    home_like: ClassVar[str] = "https://NAME.openai.azure.com"
    key_env: ClassVar[str | None] = "AZURE_OPENAI_API_KEY"
    key_header: ClassVar[str] = "api-key"

    def route(self, base: str) -> tuple[str, str]:
        root = path_of(base)
        path = responses.PATH if self.api == "responses" else self.path
        if not self.api_version:
            return base, path if root.endswith("/openai/v1") else f"/openai/v1{path}"
        if self.api == "chat":
            path = f"/deployments/{quote(self.name, safe='')}{path}"
        address, mark, query = base.partition("?")
        version = f"api-version={quote(self.api_version)}" + (f"&{query}" if mark else "")
        return f"{address}?{version}", path if root.endswith("/openai") else f"/openai{path}"

    async def complete(self, request: Request) -> Reply:
        try:
            return await super().complete(request)
        except Rejected as rejected:
            if any(mark in str(rejected) for mark in FILTERED):
                return Reply("", finish="filter")
            raise
