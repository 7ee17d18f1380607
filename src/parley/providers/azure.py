"""Azure OpenAI; NAME is the name of your deployment."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import quote

from parley.providers import _responses as responses
from parley.providers import openai
from parley.providers._batches import BatchClient
from parley.providers._endpoint import path_without_query
from parley.providers._schemas import NONE

DATED = re.compile(r"\d{4}-\d\d")


@dataclass
class Provider(openai.Provider):
    """Azure OpenAI; NAME is the name of your deployment."""

    # the dated API, such as 2024-10-21; without a date, the v1 API
    api_version: str = ""

    home: ClassVar[str | None] = None
    home_env: ClassVar[str | None] = "AZURE_OPENAI_ENDPOINT"
    home_like: ClassVar[str] = "https://NAME.openai.azure.com"
    key_env: ClassVar[str | None] = "AZURE_OPENAI_API_KEY"
    key_header: ClassVar[str] = "api-key"
    seller: ClassVar[str | None] = "azure"
    small: ClassVar[str | None] = None  # deployments have names of their own
    schema_limits: ClassVar[frozenset[str] | None] = NONE
    # its batches need deployments of their own
    batch_client: ClassVar[type[BatchClient] | None] = None

    def route(self, base: str) -> tuple[str, str]:
        root = path_without_query(base)
        path = responses.PATH if self.api == "responses" else self.path
        address, mark, query = base.partition("?")
        if self.api_version:
            base = f"{address}?api-version={quote(self.api_version)}" + (
                f"&{query}" if mark else ""
            )
        if not DATED.match(self.api_version):
            return base, path if root.endswith("/openai/v1") else f"/openai/v1{path}"
        if root.endswith("/openai/v1"):
            raise ValueError(
                "the API at /openai/v1 does not accept a dated `api_version`: remove either "
                "`api_version`, or /openai/v1 from `base_url`"
            )
        if self.api == "chat":
            path = f"/deployments/{quote(self.name, safe='')}{path}"
        return base, path if root.endswith("/openai") else f"/openai{path}"
