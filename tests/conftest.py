"""What all tests share: property tests without a time limit, the same examples every time in CI, no settings from outside."""

import os

import pytest
from hypothesis import settings

settings.register_profile("parley", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("parley")


@pytest.fixture(autouse=True, scope="session")
def _nothing_from_outside():
    """Runs, models and keys of whoever runs the tests stay out of them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("PARLEY_") and name != "PARLEY_UPDATE":
                patch.delenv(name)
        for provider in ("OPENAI", "OPENROUTER", "VLLM", "OLLAMA", "COMPLETION", "OPENAI_COMPATIBLE"):
            for what in ("API_KEY", "BASE_URL"):
                patch.delenv(f"{provider}_{what}", raising=False)
        yield
