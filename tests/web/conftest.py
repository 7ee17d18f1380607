"""A client of the pages of a store, without a browser."""

import shutil
import sqlite3

import pytest
from starlette.testclient import TestClient

import parley
from parley.store import open_store
from parley.store.owner import process_id
from parley.web.app import make_app, make_site
from parley.web.safety import Safety

HOST = "127.0.0.1:8642"
BOTS = dict.fromkeys(("ann", "bob", "cy"), "bot/random")


@pytest.fixture
def visit(monkeypatch):
    """`visit(folder)`: a client of all pages of the store in a folder. Pages wait for what they
    compute, however busy the machine is."""
    monkeypatch.setattr("parley.web.run_catalogue.PATIENCE", 60)
    monkeypatch.setattr("parley.web.runs_page.PATIENCE", 60)

    def made(folder):
        app = make_app(make_site(open_store(folder)), Safety(frozenset({HOST})))
        return TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)

    return made


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """The file of a run."""
    place = tmp_path_factory.mktemp("played")
    return parley.run("public_goods", models=BOTS, repeats=3, store=place, name="Three").path


@pytest.fixture
def folder(played, tmp_path):
    """A store with one run."""
    shutil.copy(played, tmp_path)
    return tmp_path


@pytest.fixture
def pretend_to_run():
    """`pretend_to_run(folder, owner)`: make the run of a folder look as if it were being played, by
    this process or by another; its id."""

    def pretended(folder, owner=None):
        (path,) = folder.glob("*.parley")
        with sqlite3.connect(path) as connection:
            who = owner or process_id()
            connection.execute("UPDATE runs SET state = 'running', owner = ?", (who,))
            connection.execute(
                "UPDATE matches SET state = 'running', ended = NULL WHERE number = 3"
            )
        connection.close()
        return path.stem

    return pretended
