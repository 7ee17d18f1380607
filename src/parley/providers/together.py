"""Together AI."""

from parley.providers.openai import OpenAICompatible


class Provider(OpenAICompatible):
    """Together AI."""

    home, home_env, key_env, key_needed = (
        "https://api.together.xyz/v1",
        "TOGETHER_BASE_URL",
        "TOGETHER_API_KEY",
        True,
    )
    seller = "together"
