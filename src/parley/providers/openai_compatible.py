"""Any OpenAI-compatible endpoint; set its address with `base_url`."""

from parley.providers._openai_batches import OpenAIBatchClient
from parley.providers.openai import OpenAICompatible


class Provider(OpenAICompatible):
    """Any OpenAI-compatible endpoint; set its address with `base_url`."""

    home_env, key_env = "OPENAI_COMPATIBLE_BASE_URL", "OPENAI_COMPATIBLE_API_KEY"
    batch_client = OpenAIBatchClient
