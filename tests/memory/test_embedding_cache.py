"""Embeddings on disk: whatever is wrong with the file costs time, never a result."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parley
from parley import downloads
from parley.memory import embedding_cache
from parley.memory.dense import DenseRetriever
from parley.memory.embedding_cache import EmbeddingCache
from parley.memory.retrievers import minilm
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
        keys = [EmbeddingCache("", "").make_key(text) for text in texts]
        found = np.array([list(key[:WIDTH]) for key in keys], np.float32)
        return np.float32(1) / (found + np.float32(0.1))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(embedding_cache, "LOCK_TIMEOUT", 0.1)


def embedded(texts=TEXTS, name="counting", version="1", fault=""):
    """How many texts had to be computed; the vectors are right in any case."""
    encoder = Counting()
    retriever = DenseRetriever(name, version, encoder)
    found = retriever.embed(texts)
    assert found.tobytes() == Counting().embed(texts).tobytes()
    assert fault in retriever.notice
    assert bool(retriever.notice) == bool(fault)
    return len(encoder.texts)


def the_file():
    return downloads.cache_folder() / "embeddings.sqlite"


def test_a_text_is_computed_once_for_each_retriever_and_version():
    assert embedded(TEXTS[:20]) == 20
    assert embedded() == 10
    assert embedded() == 0
    assert embedded(name="other") == embedded(version="2") == len(TEXTS)
    assert embedded(["", "\udcff", "x"]) == 3
    assert embedded(["", "\udcff", "x"]) == 0
    assert [file.name for file in the_file().parent.iterdir()] == [the_file().name]


def test_one_retriever_remembers_without_the_disk(monkeypatch):
    monkeypatch.setattr(EmbeddingCache, "keep", lambda *_: None)
    encoder = Counting()
    retriever = DenseRetriever("counting", "1", encoder)
    for _ in range(2):
        retriever.search(searching(TEXTS[:10], TEXTS, 3))
    assert sorted(encoder.texts) == sorted(TEXTS)


@settings(max_examples=40)
@given(st.data())
def test_a_damaged_file_never_fails_a_search(tmp_path_factory, data):
    """Damage that leaves a table in order may change numbers: SQLite has no checksums."""
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
        for _ in range(2):
            found = DenseRetriever("counting", "1", Counting()).embed([*TEXTS, "another"])
            assert found.shape == (len(TEXTS) + 1, WIDTH)
        the_file().unlink()
        assert embedded() == len(TEXTS)
        assert embedded() == 0


@pytest.mark.parametrize("width", [WIDTH - 1, WIDTH + 1])
def test_a_vector_of_another_width_is_replaced(width):
    wrong = np.ones(width, np.float32)
    cache = EmbeddingCache("counting", "1")
    cache.keep({cache.make_key(text): wrong for text in TEXTS[:5]})
    assert embedded() == len(TEXTS)
    assert embedded() == 0


def test_an_empty_file_is_filled():
    the_file().parent.mkdir(parents=True)
    the_file().touch()
    assert embedded() == len(TEXTS)
    assert embedded() == 0


def test_what_is_no_cache_costs_time_only_and_is_left_alone(tmp_path, monkeypatch):
    the_file().parent.mkdir(parents=True)
    the_file().write_bytes(b"no such file" * 99)
    assert embedded(fault="not a database") == embedded(fault="not a database") == len(TEXTS)
    assert the_file().read_bytes() == b"no such file" * 99
    the_file().unlink()
    with closing(sqlite3.connect(the_file())) as file:
        file.execute("CREATE TABLE embeddings (x)")
    assert embedded(fault="no such column") == len(TEXTS)
    the_file().unlink()
    the_file().mkdir()  # a folder where the file should be
    assert embedded(fault="unable to open database file") == len(TEXTS)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PARLEY_CACHE", str(tmp_path / "file"))
    assert embedded(fault="exists") == len(TEXTS)


def connecting(monkeypatch, change):
    """Let connections to the cache be made in another way."""
    connect = sqlite3.connect
    monkeypatch.setattr(
        embedding_cache.sqlite3, "connect", lambda *given, **more: change(connect, *given, **more)
    )


def test_a_read_only_cache_is_read(monkeypatch):
    embedded(TEXTS[:20])

    def read_only(connect, path, **more):  # for root, no file is read-only
        return connect(f"{path.as_uri()}?mode=ro", uri=True, **more)

    with monkeypatch.context() as patch:
        connecting(patch, read_only)
        assert embedded(TEXTS[:20]) == 0
        assert embedded(fault="readonly") == embedded(fault="readonly") == 10
    assert embedded() == 10


def test_a_full_disk_leaves_a_file_that_is_used(monkeypatch):
    embedded(TEXTS[:10])

    def full(connect, path, **more):
        file = connect(path, **more)
        file.execute("PRAGMA max_page_count = 1")  # no page beyond those that are there
        return file

    with monkeypatch.context() as patch:
        connecting(patch, full)
        many = [f"more {number}" for number in range(500)]
        assert embedded([*TEXTS[:10], *many], fault="full") == 500
    assert embedded(TEXTS[:12]) == 2
    assert embedded(TEXTS[:12]) == 0


def test_a_lock_that_is_never_given_back_is_waited_for_once():
    embedded(TEXTS[:10])
    with closing(sqlite3.connect(the_file())) as file:
        file.execute("BEGIN IMMEDIATE")
        assert embedded(fault="locked") == embedded(fault="locked") == 20
        file.rollback()
        file.execute("BEGIN EXCLUSIVE")
        retriever = DenseRetriever("counting", "1", Counting())
        began = time.monotonic()
        for text in TEXTS:
            retriever.embed([text])
        assert 0.1 <= time.monotonic() - began < 1
    assert embedded() == 20
    assert embedded() == 0


def test_a_run_says_once_that_the_cache_cannot_be_used(tmp_path, monkeypatch):
    the_file().parent.mkdir(parents=True)
    the_file().write_bytes(b"no such file" * 99)
    monkeypatch.setattr(minilm, "MiniLM", Counting)
    said = []
    result = parley.run(
        "qa",
        "bot/student",
        items=4,
        evolve={"stages": 2, "k": 1, "arms": {"one": {}, "two": {"mask": True}}},
        store=tmp_path / "runs",
        progress=lambda event: said.append(event.text) if event.kind == "notice" else None,
    )
    assert result.state == "done"
    (found,) = [text for text in said if "the cache of embeddings" in text]
    assert "file is not a database" in found
    assert str(the_file()) in found
    assert "PARLEY_CACHE" in found


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
    return subprocess.Popen(code, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])


def test_several_processes_write_at_once_and_nothing_is_lost():
    writers = [start_writer(number, 60) for number in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    for writer in writers:
        writer.stdout.close()
    everything = [f"text {number} {text}" for number in range(3) for text in range(60)]
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
