"""An Ollama server, through its OpenAI-compatible API."""

from parley.providers.openai import OpenAICompatible


class Provider(OpenAICompatible):
    """An Ollama server, through its OpenAI-compatible API."""

    home, home_env = "http://localhost:11434/v1", "OLLAMA_BASE_URL"
