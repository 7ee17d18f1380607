"""Which environment variables reach a worker on another machine."""

from parley.config.model_variables import read_model_variables


def test_keys_addresses_and_references_of_the_models_are_read(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("MY_KEY=from-the-file\nVLLM_BASE_URL=http://elsewhere/v1\n")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "PROXY_PART", "HEADER", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, f"value of {name}")
    models = {
        "a": {"model": "openai/gpt-4.1"},
        "b": {"model": "vllm/qwen", "api_key_env": "MY_KEY", "base_url": "http://${PROXY_PART}/v1"},
        "c": {"model": "openai-compatible/x", "headers": {"X-Key": ["${HEADER}", "${UNSET}"]}},
        "d": {"model": "bot/random"},
    }
    found = read_model_variables(models)
    expected = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "PROXY_PART", "HEADER")
    assert found == {"MY_KEY": "from-the-file", **{name: f"value of {name}" for name in expected}}
