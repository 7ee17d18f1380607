"""Embeddings on disk: whatever is wrong with the file costs time, never a result."""

import fcntl
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley import downloads
from parley.memory import embedding_cache
from parley.memory.dense import DenseRetriever
from parley.memory.embedding_cache import MAGIC, EmbeddingCache, hash_text
from tests.retrieval import searching

WIDTH = 6
TEXTS = [f"text {number}" for number in range(30)]


class Counting:
    """An encoder that counts what it embeds."""

    width = WIDTH

    def __init__(self):
        self.texts = []

    def prepare(self):
        pass

    def embed(self, texts):
        self.texts += texts
        return np.array([list(hash_text(text)[:WIDTH]) for text in texts], np.float32)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(embedding_cache, "LOCK_TIMEOUT", 0.1)


def embedded(texts=TEXTS, name="counting", version="1"):
    """How many texts had to be computed; the vectors are right in any case."""
    encoder = Counting()
    found = DenseRetriever(name, version, encoder).embed(texts)
    assert (found == Counting().embed(texts)).all()
    return len(encoder.texts)


def the_file():
    return EmbeddingCache("counting", "1", WIDTH).path


def test_a_text_is_computed_once_for_each_retriever_and_version():
    assert embedded(TEXTS[:20]) == 20
    assert embedded() == 10
    assert embedded() == 0
    assert embedded(name="other") == embedded(version="2") == len(TEXTS)
    assert embedded(["", "\udcff", "x"]) == 3
    assert embedded(["", "\udcff", "x"]) == 0


def test_one_retriever_remembers_without_the_disk(monkeypatch):
    monkeypatch.setattr(EmbeddingCache, "keep", lambda *_: None)
    encoder = Counting()
    retriever = DenseRetriever("counting", "1", encoder)
    for _ in range(2):
        retriever.search(searching(TEXTS[:10], TEXTS, 3))
    assert sorted(encoder.texts) == sorted(TEXTS)


@settings(max_examples=40)
@given(st.data())
def test_a_damaged_file_is_found_out_and_mended(tmp_path_factory, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARLEY_CACHE", str(tmp_path_factory.mktemp("cache")))
        embedded()
        content = bytearray(the_file().read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            place = data.draw(st.integers(0, max(0, len(content) - 1)))
            how = data.draw(st.sampled_from(["cut", "change", "insert"]))
            if how == "cut":
                del content[place:]
            elif how == "insert":
                content[place:place] = b"?"
            elif content:
                content[place] ^= 0xFF
        the_file().write_bytes(content)
        embedded()
        assert embedded() == 0
        assert not list(the_file().parent.glob("*.vectors-*"))


@pytest.mark.parametrize("content", [b"", b"no such file", MAGIC, MAGIC[:-1] + b"!" * 99])
def test_a_file_of_another_kind_is_replaced(content):
    the_file().parent.mkdir(parents=True)
    the_file().write_bytes(content)
    assert embedded() == len(TEXTS)
    assert embedded() == 0


def test_a_cache_that_cannot_be_used_costs_time_only(tmp_path, monkeypatch):
    the_file().mkdir(parents=True)  # a folder where the file should be
    assert embedded() == embedded() == len(TEXTS)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PARLEY_CACHE", str(tmp_path / "file"))
    assert embedded() == embedded() == len(TEXTS)


def test_a_read_only_cache_is_read(tmp_path, monkeypatch):
    embedded(TEXTS[:20])
    opened = type(the_file()).open

    def read_only(path, mode="r", *more, **others):
        if set(mode) & set("wa+"):
            raise PermissionError(13, "read-only")
        return opened(path, mode, *more, **others)

    monkeypatch.setattr(type(the_file()), "open", read_only)  # for root, nothing is read-only
    assert embedded() == embedded() == 10


def test_a_full_disk_leaves_a_file_that_is_mended(monkeypatch):
    embedded(TEXTS[:10])
    packed = EmbeddingCache._pack
    size = EmbeddingCache("counting", "1", WIDTH).record

    def torn(cache, key, vector):
        return packed(cache, key, vector)[: size // 2]

    with monkeypatch.context() as full:  # half of the last record has been written
        full.setattr(EmbeddingCache, "_pack", torn)
        assert embedded(TEXTS[:11]) == 1
    assert embedded(TEXTS[:12]) == 2
    assert embedded(TEXTS[:12]) == 0


def test_a_lock_that_is_never_given_back_is_not_waited_for():
    embedded(TEXTS[:10])
    with the_file().with_suffix(".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert embedded() == embedded() == 20
    assert embedded() == 20
    assert embedded() == 0


def test_a_file_that_grows_too_large_is_begun_anew(monkeypatch):
    monkeypatch.setattr(embedding_cache, "LARGEST", 1000)
    sizes = []
    for start in range(0, 30, 5):
        embedded(TEXTS[start : start + 5])
        sizes.append(the_file().stat().st_size)
    assert max(sizes) < 1000
    assert sizes != sorted(sizes)
    assert embedded(TEXTS[25:]) == 0


WRITER = """
import sys
from tests.memory import test_embedding_cache as here
from parley.memory import dense
dense.SAVE_EVERY = 1  # every batch is written by itself
dense.BATCH = 1
texts = [f"text {sys.argv[1]} {number}" for number in range(int(sys.argv[2]))]
print("ready", flush=True)
here.embedded(texts)
"""


def start_writer(number, count):
    code = [sys.executable, "-c", WRITER, str(number), str(count)]
    return subprocess.Popen(code, stdout=subprocess.PIPE, env={**os.environ})


def test_several_processes_write_at_once_and_nothing_is_lost():
    writers = [start_writer(number, 60) for number in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    for writer in writers:
        writer.stdout.close()
    everything = [f"text {number} {text}" for number in range(3) for text in range(60)]
    kept = EmbeddingCache("counting", "1", WIDTH).load(set(map(hash_text, everything)))
    assert len(kept) == 180
    assert embedded(everything) == 0


def test_a_process_that_is_killed_leaves_a_file_that_others_use():
    for delay in (0.0, 0.02, 0.05):
        writer = start_writer(delay, 100_000)
        writer.stdout.readline()
        time.sleep(delay)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        embedded()
        assert embedded() == 0


def test_it_lies_in_the_cache_folder():
    path = EmbeddingCache("hf/some/model name", "1", WIDTH).path
    assert path.parent == downloads.cache_folder() / "embeddings"
    assert path.name.startswith("hf-some-model-name-")
