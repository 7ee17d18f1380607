"""YAML files from anybody: read as plain data, or refused as wrong usage with a line."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.config.experiment_file import read_experiment
from parley.config.yaml_file import YamlFile
from parley.errors import ParleyError, UsageError
from tests.fuzz.bounded import few_or_many, of_size

yaml = pytest.importorskip("yaml")
TOKENS = st.sampled_from(
    [
        "a",
        "task",
        "models",
        "public_goods",
        ": ",
        "\n",
        "\n  ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "&x ",
        "*x",
    ]
    + [
        "<<: ",
        "!!python/object/apply:os.system ",
        "!!binary ",
        "!!set ",
        "!!int ",
        "!!timestamp ",
        "!<>",
    ]
    + [
        "'",
        '"',
        "|",
        ">",
        "#",
        "%YAML 9\n",
        "---\n",
        "...\n",
        "? ",
        "\t",
        "~",
        "1e3",
        "0x1f",
        "1_0:30",
    ]
    + [
        ".inf",
        ".nan",
        "2026-01-01",
        "\\ud800",
        "\x85",
        "\ufeff",
        "\x00",
        "=",
        "@",
        "`",
        "null",
        "yes",
    ]
)
PLAIN = (type(None), bool, int, float, str, list, dict, bytes)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = """
    kind task set dataset columns models contestants exclude instruments prompts stop budget plan
    repeats seed concurrency store name sandbox items
""".split()  # noqa: SIM905
ALIASES = {"a": {"model": "bot/altruist"}, "b": "bot/random"}


def parts_of(value):
    yield value
    if isinstance(value, dict | list):
        for each in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from parts_of(each)


@few_or_many
def test_any_text_is_plain_data_or_wrong_usage(sized, tmp_path):
    path = tmp_path / "any.yaml"

    @of_size(sized)
    @given(
        st.lists(TOKENS | st.text(max_size=5), max_size=25).map("".join).map(str.encode)
        | st.binary(max_size=60)
    )
    @example(b"a: &x [*x]")
    @example(b"a: !!binary ////")
    @example(b"!!int ")  # found
    @example(b"a: !!int x")
    @example(b"a: !!bool x")
    @example(b"a: !!float ''")
    @example(b"a: !!timestamp 2026-99-99")
    @example(b"? [a]\n: b")
    @example(b"<<: 1")
    @example(b"a: 1__:30")
    @example(b"a: !!float x")
    @example(b"[" * 5000)
    def check(text):
        path.write_bytes(text)
        try:
            found = YamlFile(path).data
        except UsageError as refused:
            said = str(refused)
        else:
            said = f"{path} was read"
            assert all(type(part) in PLAIN for part in parts_of(found))
        assert str(path) in said

    check()


@few_or_many
def test_any_experiment_is_a_request_or_wrong_usage(sized, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "experiment.yaml"
    usual = {"task": "public_goods", "models": ALIASES}
    changes = st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=6), VALUES, max_size=4)

    @of_size(sized)
    @given(changes)
    @example({"task": 5})
    @example({"task": "nothing.yaml"})
    @example({"models": {"a": {"model": "bot/altruist", "strength": float("nan")}}})
    @example({"prompts": {"public_goods.turn": "/dev/null"}})
    def check(change):
        path.write_text(yaml.safe_dump({**usual, **change}, allow_unicode=True), "utf-8", "replace")
        try:
            read_experiment(str(path))
        except ParleyError:
            return

    check()
