"""DeepSeek."""

from parley.providers.openai import OpenAICompatible


class Provider(OpenAICompatible):
    """DeepSeek."""

    home, home_env, key_env, key_needed = (
        "https://api.deepseek.com",
        "DEEPSEEK_BASE_URL",
        "DEEPSEEK_API_KEY",
        True,
    )
    seller, small, caches = "deepseek", "deepseek-chat", True
