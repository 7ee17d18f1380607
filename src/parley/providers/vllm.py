"""A vLLM server: one that runs already, or one that Parley starts."""

from parley.providers._served_model import ServedModel
from parley.providers._servers import HOST, ServerPlace


class Provider(ServedModel):
    """A model of a vLLM server."""

    home, home_env, key_env = "http://localhost:8000/v1", "VLLM_BASE_URL", "VLLM_API_KEY"
    program = "vllm"

    def command_words(self, place: ServerPlace) -> list[str]:
        served = ["--served-model-name", self.name]
        return ["serve", str(place.folder), *served, "--host", HOST, "--port", str(place.port)]

    def server_variables(self, place: ServerPlace) -> dict[str, str]:
        return {"VLLM_API_KEY": place.key}
