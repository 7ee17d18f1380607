"""A vLLM server."""

from parley.providers.openai import OpenAICompatible


class Provider(OpenAICompatible):
    """A vLLM server."""

    home, home_env, key_env = "http://localhost:8000/v1", "VLLM_BASE_URL", "VLLM_API_KEY"
