"""Groq."""

from parley.providers._openai_batches import OpenAIBatchClient
from parley.providers.openai import STRICT, OpenAICompatible


class Provider(OpenAICompatible):
    """Groq."""

    home, home_env, key_env, key_needed = (
        "https://api.groq.com/openai/v1",
        "GROQ_BASE_URL",
        "GROQ_API_KEY",
        True,
    )
    seller, small = "groq", "llama-3.1-8b-instant"
    schema_limits = STRICT
    batch_client = OpenAIBatchClient
