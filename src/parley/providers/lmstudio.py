"""LM Studio on this machine."""

from parley.providers.openai import OpenAICompatible


class Provider(OpenAICompatible):
    """LM Studio on this machine."""

    home, home_env, key_env = "http://localhost:1234/v1", "LMSTUDIO_BASE_URL", "LMSTUDIO_API_KEY"
