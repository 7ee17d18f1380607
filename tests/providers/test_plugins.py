"""Providers of other packages: looked at when they are loaded, listed when they cannot be, refused
where they are used."""

import pytest

from parley import UsageError
from parley.errors import KeyMissing
from parley.participants._registry import parse_model_name
from parley.providers import _registry as providers
from tests.cli.test_cli import parley
from tests.endpoint import endpoint

HEAD = "from dataclasses import dataclass\nfrom parley.match.protocol import Reply\n\n\n"
METHODS = (
    "    async def complete(self, request):\n        return Reply('{}')\n\n"
    "    async def close(self):\n        pass\n"
)
WHOLE = f"{HEAD}@dataclass\nclass Mine:\n    'Mine.'\n    name: str\n{METHODS}"


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Install a package with one provider, under a name of its own each time, so that no module is
    found again."""
    count = iter(range(100))

    def install(source, name="mine", value="Mine"):
        n = next(count)
        place = tmp_path / f"site{n}"
        facts = place / f"package_{n}-1.dist-info"
        facts.mkdir(parents=True)
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: package-{n}\nVersion: 1\n")
        module = f"{tmp_path.name.replace('-', '_')}_{n}"
        (facts / "entry_points.txt").write_text(f"[parley.providers]\n{name} = {module}:{value}\n")
        (place / f"{module}.py").write_text(source)
        monkeypatch.syspath_prepend(place)
        return n

    return install


BROKEN = {
    "a missing attribute": (WHOLE.replace("Mine:", "Other:"), "has no attribute 'Mine'"),
    "a missing import": ("import nowhere_to_be_found\n", "No module named 'nowhere_to_be_found'"),
    "a module that raises": ("1 / 0\n", "ZeroDivisionError"),
    "no dataclass": (WHOLE.replace("@dataclass\n", ""), "must be a dataclass"),
    "a function": (f"{HEAD}def Mine(name):\n    pass\n", "must be a dataclass"),
    "no name": (WHOLE.replace("name: str", "title: str"), "must have the field `name: str`"),
    "no complete": (
        WHOLE.replace("complete", "completed"),
        "must have the method `async def complete(self, request) -> Reply`",
    ),
    "complete is not async": (
        WHOLE.replace("async def complete", "def complete"),
        "`complete` that is not async",
    ),
    "no close": (
        WHOLE.replace("close", "shut"),
        "must have the method `async def close(self) -> None`",
    ),
    "a key in no variable": (f"{WHOLE}    key_needed = True\n", "but not key_env"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_provider_that_cannot_be_loaded_is_listed_beside_all_others_and_refused_where_it_is_used(
    installed, tmp_path, kind
):
    source, said = BROKEN[kind]
    n = installed(source)
    with pytest.raises(UsageError) as wrong:
        providers.make_provider("mine", "m", {})
    assert "provider mine cannot be loaded: " in str(wrong.value)
    assert said in str(wrong.value)
    assert f"(package package-{n})" in str(wrong.value)
    if kind not in ("a missing import", "no name"):
        return
    (tmp_path / "models.yaml").write_text("m: {model: mine/m}\nb: {model: bot/random}\n")
    listed = parley("models", cwd=tmp_path).out
    assert "cannot be loaded" in next(
        line for line in listed.splitlines() if line.startswith("mine/…")
    )
    assert "openai/…" in listed
    assert f"package-{n}" in listed
    rows = {
        row["provider"]: row for row in parley("models", "--json", cwd=tmp_path).json["providers"]
    }
    assert rows["mine"]["error"].startswith("cannot be loaded: ")
    assert rows["openai"]["error"] is None
    (tmp_path / "models.yaml").unlink()
    seen = parley("doctor", "--no-calls", "--json", cwd=tmp_path, code=1).json["endpoints"]
    assert "cannot be loaded" in {row["provider"]: row["state"] for row in seen}["mine"]
    used = parley("run", "public_goods", "-m", "mine/m", "-m", "bot/random", cwd=tmp_path, code=2)
    assert "cannot be loaded" in used.err


def test_a_provider_named_like_one_of_parleys_own_is_refused_and_so_are_two_of_one_name(installed):
    n = installed(WHOLE, name="openai")
    with pytest.raises(
        UsageError,
        match=rf"Parley has its own provider of that name \(package package-{n}\)",
    ):
        providers.make_provider("openai", "m", {})
    installed(WHOLE)
    assert providers.make_provider("mine", "m", {}).name == "m"
    installed(WHOLE)
    with pytest.raises(UsageError, match="several packages provide a provider of that name"):
        providers.make_provider("mine", "m", {})


def test_a_key_that_is_needed_is_wanted_of_every_provider(installed, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MINE_KEY", raising=False)
    installed(f"{WHOLE}    key_needed, key_env = True, 'MINE_KEY'\n")
    with pytest.raises(KeyMissing, match="set MINE_KEY in the environment"):
        providers.make_provider("mine", "m", {})
    monkeypatch.setenv("MINE_KEY", "a-key-of-mine")
    providers.make_provider("mine", "m", {})


def test_both_variables_of_googles_key_are_named(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(KeyMissing, match="set GOOGLE_API_KEY or GEMINI_API_KEY"):
        providers.make_provider("google", "gemini-2.5-flash", {})
    assert "GOOGLE_API_KEY or GEMINI_API_KEY not set" in parley("models", cwd=tmp_path).out


def test_models_marks_keys_that_are_found_and_aliases_that_cannot_be_used(tmp_path):
    (tmp_path / "models.yaml").write_text(
        "good: {model: openai/gpt-4.1, temperature: 1, rpm: 5}\n"
        "bad: {model: openai/gpt-4.1, temprature: 1}\n"
        "service: {model: 'http/http://127.0.0.1:9/f', dedline: 1}\n"
    )
    said = parley(
        "models", cwd=tmp_path, env={"OPENAI_API_KEY": "sk-do-not-show-me", "GROQ_API_KEY": ""}
    ).out
    rows = {line.split()[0]: line for line in said.splitlines() if line}
    assert "*" in rows["openai/…"]
    assert "*" not in rows["groq/…"]
    assert "did you mean 'temperature'" in rows["bad"]
    assert "did you mean 'deadline'" in rows["service"]
    assert "ERROR" not in rows["good"]


def test_a_run_is_shown_when_its_provider_cannot_be_loaded_any_more(installed, tmp_path):
    installed(WHOLE.replace("'{}'", "'{\"coins\": 5}'"))
    parley(
        "run", "public_goods", "-m", "m=mine/m", "-m", "bot/random", "--repeats", 1, cwd=tmp_path
    )
    installed(WHOLE)
    with pytest.raises(UsageError):
        providers.provider_class("mine")
    assert "public_goods" in parley("show", "last", cwd=tmp_path).out
    assert "public_goods" in parley("ls", cwd=tmp_path).out


def test_an_alias_without_an_address_is_bad_news_for_the_doctor(tmp_path):
    (tmp_path / "models.yaml").write_text(
        "here: {model: embedded/smollm2}\nnowhere: {model: openai-compatible/x}\n"
    )
    env = {"OPENAI_COMPATIBLE_BASE_URL": ""}
    (row,) = parley("doctor", "--json", cwd=tmp_path, env=env, code=1).json["models"]
    assert row["alias"] == "nowhere"
    assert "set -M ALIAS.base_url=" in row["error"]


def test_lines_of_env_that_are_no_assignments_are_told_by_their_number_and_not_shown(tmp_path):
    (tmp_path / ".env").write_text(
        "# keys\nexport A_KEY=one\n\nOPENAI_API_KEY: sk-do-not-show-me\n"
    )
    for words in (
        ("models", "bot/random"),
        ("run", "public_goods", "-m", "bot/random", "-m", "bot/altruist", "--repeats", 1),
    ):
        done = parley(*words, cwd=tmp_path)
        assert ".env, line 4 does not have the form NAME=value" in done.err
        assert "sk-do-not-show-me" not in done.out + done.err


def test_the_doctor_tells_bad_news_first_asks_services_too_and_ends_with_1(tmp_path, monkeypatch):
    monkeypatch.setattr("parley.cli.doctor.PATIENCE", 3)
    (tmp_path / "models.yaml").write_text("service: {model: 'http/http://127.0.0.1:9/f'}\n")
    env = {"OPENAI_API_KEY": "sk-do-not-show-me", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    done = parley("doctor", cwd=tmp_path, env=env, code=1)
    assert "does not answer (connection refused" in done.out
    assert "Error" not in done.out
    service = next(line for line in done.out.splitlines() if line.startswith("service"))
    assert "127.0.0.1:9/f: " in service
    assert "connection refused" in service
    assert "ssl:" not in service


def test_an_address_that_goes_too_far_is_refused_at_the_start():
    for base in (
        "http://h/v1/chat/completions",
        "http://h/v1/chat/completions/",
        "http://h/v1/chat/completions?x=1",
    ):
        with pytest.raises(
            UsageError, match=r"base_url must not end with /chat/completions, .*: remove it"
        ):
            providers.make_provider("vllm", "m", {"base_url": base})
    providers.make_provider("vllm", "m", {"base_url": "http://h/v1"})


def test_a_service_is_called_by_all_of_its_address():
    assert parse_model_name("http/http://127.0.0.1:8125/f").alias == "127.0.0.1-8125-f"
    assert parse_model_name("http/https://bots.example/a/b?x=1").alias == "bots.example-a-b"


def test_an_answer_to_the_doctor_does_not_hide_that_the_model_refused(tmp_path):
    with endpoint(0) as served:
        # its paths begin with /v1
        env = {"OPENAI_API_KEY": "sk-do-not-show-me", "OPENAI_BASE_URL": served.url}
        done = parley("doctor", cwd=tmp_path, env=env, code=1)
    line = next(line for line in done.out.splitlines() if line.startswith("openai "))
    assert 0 < line.index("gpt-4.1-nano: ") < line.index("answers (HTTP 404)")
