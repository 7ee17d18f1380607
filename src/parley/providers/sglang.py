"""An SGLang server."""

from parley.providers.openai import OpenAICompatible


class Provider(OpenAICompatible):
    """An SGLang server."""

    home, home_env, key_env = "http://localhost:30000/v1", "SGLANG_BASE_URL", "SGLANG_API_KEY"
