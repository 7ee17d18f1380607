"""A llama.cpp server (llama-server)."""

from parley.providers.openai import OpenAICompatible


class Provider(OpenAICompatible):
    """A llama.cpp server (llama-server)."""

    home, home_env, key_env = "http://localhost:8080/v1", "LLAMACPP_BASE_URL", "LLAMACPP_API_KEY"
