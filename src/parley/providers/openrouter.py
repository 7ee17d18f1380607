"""OpenRouter."""

from parley.providers.openai import STRICT, OpenAICompatible


class Provider(OpenAICompatible):
    """OpenRouter."""

    home, home_env, key_env, key_needed = (
        "https://openrouter.ai/api/v1",
        "OPENROUTER_BASE_URL",
        "OPENROUTER_API_KEY",
        True,
    )
    seller, small = "openrouter", "openai/gpt-4.1-nano"
    schema_limits = STRICT
