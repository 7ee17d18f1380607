"""Encoders of Hugging Face: a tiny random BERT is made here."""

import os
import shutil
import sys
from importlib import import_module

import numpy as np
import pytest

from parley.errors import UsageError
from parley.memory.retrievers import hf
from parley.memory.retrievers._registry import make_retriever
from tests.retrieval import TEXTS, searching

# set where torch and the others must be there: nothing is skipped then
HEAVY = bool(os.environ.get("PARLEY_HEAVY"))


def library(name):
    return import_module(name) if HEAVY else pytest.importorskip(name)


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_without_the_extra_it_says_what_to_install(monkeypatch, missing):
    monkeypatch.setattr(hf, "find_spec", lambda name: None if name == missing else "there")
    with pytest.raises(UsageError, match=rf"needs {missing}: pip install 'parley-eval\[hf\]'"):
        make_retriever("hf/facebook/contriever")


def test_a_name_or_a_folder_is_wanted(monkeypatch, tmp_path):
    with pytest.raises(
        UsageError, match="needs the name of an encoder, like hf/facebook/contriever"
    ):
        make_retriever("hf")
    monkeypatch.setattr(hf, "find_spec", lambda name: "there")
    with pytest.raises(UsageError, match="is not a checkpoint"):
        make_retriever(f"hf/{tmp_path}")


def test_what_is_not_on_this_machine_is_not_fetched(monkeypatch):
    class Hub:
        def snapshot_download(self, name, local_files_only):
            assert local_files_only
            raise OSError("not here")

    monkeypatch.setattr(hf, "find_spec", lambda name: "there")
    monkeypatch.setitem(sys.modules, "huggingface_hub", Hub())
    with pytest.raises(UsageError, match="is not in the local cache: run `hf download x/"):
        make_retriever("hf/x/y")


def test_the_version_follows_the_files(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"1")
    first = hf.hash_checkpoint(tmp_path)
    (tmp_path / "README.md").write_text("other")
    assert hf.hash_checkpoint(tmp_path) == first
    (tmp_path / "model.safetensors").write_bytes(b"2")
    changed = hf.hash_checkpoint(tmp_path)
    assert changed != first
    blob = tmp_path / "blobs" / ("ab" * 32)
    blob.parent.mkdir()
    blob.write_bytes(b"3")
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors").symlink_to(blob)
    assert hf.hash_checkpoint(tmp_path) not in (first, changed)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    torch, transformers = library("torch"), library("transformers")
    folder = tmp_path_factory.mktemp("encoders") / "tiny"
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz0123456789"]
    words += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz0123456789"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    transformers.BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_vectors_are_means_over_tokens_of_batches_too(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_CACHE", str(tmp_path))
    torch, transformers = library("torch"), library("transformers")
    retriever = make_retriever(f"hf/{tiny}")
    retriever.prepare()
    found = retriever.embed(TEXTS)
    assert found.shape == (len(TEXTS), 24)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    model = transformers.AutoModel.from_pretrained(tiny).eval()
    given = tokenizer(TEXTS, truncation=True, max_length=64, padding=True, return_tensors="pt")
    with torch.no_grad():
        states = model(**given).last_hidden_state
    seen = given["attention_mask"][..., None]
    expected = ((states * seen).sum(1) / seen.sum(1)).numpy()
    assert np.abs(found - expected).max() < 1e-5
    rows = retriever.search(searching(TEXTS[:5], TEXTS, 3, mask=True))
    assert all(len(row) == 3 for row in rows)


@pytest.mark.slow
def test_what_cannot_be_an_encoder_is_refused(tiny, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(tiny, broken)
    (broken / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(UsageError, match="cannot be used as an encoder"):
        make_retriever(f"hf/{broken}").prepare()
    safetensors = library("safetensors.numpy")
    weights = safetensors.load_file(tiny / "model.safetensors")
    weights.pop(next(name for name in weights if "word_embeddings" in name))
    safetensors.save_file(weights, broken / "model.safetensors", {"format": "pt"})
    with pytest.raises(UsageError, match=r"its files lack 1 weight \(embeddings\.word"):
        make_retriever(f"hf/{broken}").prepare()
