"""A client of the pages of a store, without a browser."""

import pytest
from starlette.testclient import TestClient

from parley.store import open_store
from parley.web.app import make_app, make_site
from parley.web.safety import Safety

HOST = "127.0.0.1:8642"


@pytest.fixture
def visit():
    """`visit(folder)`: a client of all pages of the store in a folder."""

    def made(folder):
        app = make_app(make_site(open_store(folder)), Safety(frozenset({HOST})))
        return TestClient(app, base_url=f"http://{HOST}", follow_redirects=False)

    return made
