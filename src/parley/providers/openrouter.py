"""OpenRouter."""

from parley.providers.openai import OpenAICompatible


class Provider(OpenAICompatible):
    """OpenRouter."""

    home, home_env, key_env, key_needed = "https://openrouter.ai/api/v1", "OPENROUTER_BASE_URL", "OPENROUTER_API_KEY", True
