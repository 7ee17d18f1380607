"""What all tests share: property tests without a time limit, the same examples every time in CI, no
settings from outside."""

import gc
import os
import sys

import pytest
from hypothesis import settings

from tests.surroundings import hide_other_packages

hide_other_packages()
# Processes that tests start find what this one has compiled; else each would compile all of it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

from parley.providers import _registry as providers  # noqa: E402
from parley.providers import _secrets as secrets  # noqa: E402

settings.register_profile("parley", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("parley")


def pytest_collection_finish():
    """All tests and modules stay until the end: the garbage collector need not look at them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _nothing_from_outside():
    """Runs, models and keys of whoever runs the tests stay out of them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith("PARLEY_") and name not in ("PARLEY_UPDATE", "PARLEY_CACHE"):
                patch.delenv(name)
        patch.delenv("COLUMNS", raising=False)  # xdist sets it: texts are as wide as in a pipe
        for family in providers.provider_names():
            provider = providers.provider_class(family)
            for name in filter(
                None,
                (
                    getattr(provider, "key_env", None),
                    getattr(provider, "home_env", None),
                    "GOOGLE_API_KEY",
                ),
            ):
                patch.delenv(name, raising=False)
        yield


@pytest.fixture(autouse=True, scope="module")
def _empty_folder(tmp_path_factory):
    """Tests stand in an empty folder, not in the checkout, and leave nothing there."""
    folder = tmp_path_factory.mktemp("here")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield
    left = sorted(path.name for path in folder.rglob("*"))
    assert not left, f"A test of this file left these where it stood: {left}. Give it tmp_path."


@pytest.fixture(autouse=True)
def _no_secrets_of_other_tests():
    """What one test keeps secret is masked in no other test."""
    before = set(secrets.USED)
    yield
    secrets.USED.intersection_update(before)


@pytest.fixture(scope="session")
def postgres_server():
    """A PostgreSQL server of this process of tests."""
    from tests.postgres_server import PostgresServer  # late: few tests need it

    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def postgres_url(postgres_server):
    """The address of a database for one file of tests."""
    return postgres_server.new_database()


@pytest.fixture(params=["folder", "postgres"])
def place(request, tmp_path):
    """A store of each kind, as users name it."""
    if request.param == "folder":
        return str(tmp_path / "runs")
    return request.getfixturevalue("postgres_url")
