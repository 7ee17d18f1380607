"""Following the changes of a run without reading it."""

import sqlite3
from contextlib import closing

import pytest

import parley
from parley.errors import StoreError
from parley.store import open_store


@pytest.fixture
def store(tmp_path):
    models = dict.fromkeys(("a", "b", "c"), "bot/random")
    parley.run("public_goods", models=models, repeats=1, store=tmp_path)
    return open_store(tmp_path)


def change(ref):
    with sqlite3.connect(ref.location) as connection:
        connection.execute("UPDATE runs SET heartbeat = heartbeat + 1")
    connection.close()


def test_a_change_is_noticed_once(store):
    (ref,) = store.refs()
    stamp = store.stamp(ref)
    with closing(store.watch(ref)) as watch:
        assert not watch.has_changed()
        assert store.stamp(ref) == stamp
        change(ref)
        assert watch.has_changed()
        assert not watch.has_changed()
    assert store.stamp(ref) != stamp


def test_a_file_that_is_replaced_or_vanishes_is_noticed(store, tmp_path):
    (ref,) = store.refs()
    copy = tmp_path / "copy"
    copy.write_bytes((tmp_path / f"{ref.id}.parley").read_bytes())
    with closing(store.watch(ref)) as watch:
        copy.rename(ref.location)
        assert watch.has_changed()
        (tmp_path / f"{ref.id}.parley").unlink()
        with pytest.raises(StoreError, match="there is no file"):
            watch.has_changed()
    assert store.stamp(ref) == ""
    with pytest.raises(StoreError, match="there is no file"):
        store.watch(ref)


def test_only_an_exact_id_of_this_store_is_found(store, tmp_path):
    (ref,) = store.refs()
    assert store.find_exact(ref.id) == ref
    other = tmp_path / "other"
    other.mkdir()
    inside = open_store(other)
    for id in ("last", ref.id[:-1], ref.location, f"../{ref.id}", "", ".", "\0", "x" * 5000):
        assert inside.find_exact(id) is None, id
        assert store.find_exact(id) is None, id
