"""The first page: all runs."""

import pytest

import parley


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store with a run whose name is hostile, and a file that is no run."""
    place = tmp_path_factory.mktemp("runs")
    models = dict.fromkeys(("a", "b", "c"), "bot/random")
    name = "</style><script>alert(1)</script>"
    parley.run("public_goods", models=models, repeats=1, store=place, name=name)
    (place / "broken.parley").write_bytes(b"no run")
    return place


def test_runs_and_unreadable_files_are_listed(folder, serve, open_page, monkeypatch):
    monkeypatch.setattr("parley.web.run_catalogue.PATIENCE", 60)
    with serve(folder) as url:
        visit = open_page(url)
        visit.check()
        text = visit.page.inner_text("main")
        assert "</style><script>alert(1)</script>" in text
        assert "broken.parley" in text
