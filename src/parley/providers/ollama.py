"""An Ollama server, through the interface it shares with OpenAI."""

from parley.providers.openai import OpenAICompatible


class Provider(OpenAICompatible):
    """An Ollama server, through the interface it shares with OpenAI."""

    home, home_env = "http://localhost:11434/v1", "OLLAMA_BASE_URL"
