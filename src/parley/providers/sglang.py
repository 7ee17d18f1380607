"""An SGLang server: one that runs already, or one that Parley starts."""

from parley.providers._served_model import ServedModel
from parley.providers._servers import HOST, ServerPlace


class Provider(ServedModel):
    """A model of an SGLang server."""

    home, home_env, key_env = "http://localhost:30000/v1", "SGLANG_BASE_URL", "SGLANG_API_KEY"
    program = "sglang"

    def command_words(self, place: ServerPlace) -> list[str]:
        # in a file, because every user of the machine can read a command line
        key = place.private / "key.yaml"
        key.write_text(f"api-key: {place.key}\n")
        served = ["--model-path", str(place.folder), "--served-model-name", self.name]
        return ["serve", *served, "--host", HOST, "--port", str(place.port), "--config", str(key)]
