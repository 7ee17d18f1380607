"""The static retriever: tokens and vectors as wordllama has them."""

import json

import numpy as np
import pytest

from parley.memory.retrievers._registry import make_retriever
from parley.memory.retrievers.static import TOKENIZER, WEIGHTS, WordVectors
from tests.retrieval import DATA, TEXTS, own_cache, searching


@pytest.fixture(scope="module")
def encoder():
    found = WordVectors()
    found.embed(["a"])
    return found


def test_tokens_are_those_of_the_tokenizer(encoder):
    recorded = json.loads((DATA / "static_tokens.json").read_text(encoding="utf-8"))
    words, _ = encoder._loaded
    assert [words.split(text) for text in TEXTS] == recorded


def test_vectors_are_those_of_wordllama(encoder):
    """Recorded by record.py with wordllama 0.4.0.post1."""
    recorded = np.load(DATA / "static.npy")
    assert np.abs(encoder.embed(TEXTS) - recorded).max() < 1e-6
    assert not recorded[0].any()  # the empty text


def test_a_long_word_takes_no_long_time(encoder):
    words, _ = encoder._loaded
    assert len(words.split("ab" * 50_000)) > 1000


def test_it_finds_what_shares_words(tmp_path, monkeypatch):
    for name, value in own_cache(tmp_path, (WEIGHTS, TOKENIZER)).items():
        monkeypatch.setenv(name, value)
    stored = ["How many sheep are there?", "", "Paris is the capital of France."]
    found = make_retriever("static").search(searching(["the capital of France"], stored, 2))
    assert found[0][0].stored == 2
