"""The page of a run, live and afterwards."""

import pytest

import parley
from tests.web.processes import allow, start_server, step_through, wait_for_run

HOSTILE = "</style><script>alert(1)</script><svg onload=alert(2)>\u202eevil"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A store with a run whose names are hostile."""
    place = tmp_path_factory.mktemp("runs")
    models = {"a": "bot/free-rider", "b": "bot/altruist", "c": "bot/random"}
    parley.run("public_goods", models=models, repeats=4, store=place, name=HOSTILE)
    return place


def address_of(folder, url):
    (id,) = [path.stem for path in folder.glob("*.parley")]
    return f"{url.rstrip('/')}/run/{id}"


def test_a_run_has_the_sections_of_the_report(folder, serve, open_page):
    with serve(folder) as url:
        visit = open_page(address_of(folder, url))
        visit.page.wait_for_selector("text=How it was played")
        visit.check()
        text = visit.page.inner_text("main")
        assert "<script>alert(1)</script>" in text
        assert "Who beats whom" in text
        assert "Fairness" in text
        assert visit.page.query_selector("nav.tabs a[href$='/matches']")


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "media"), [(1280, "screen"), (390, "screen"), (1280, "print")])
@pytest.mark.parametrize("page", ["runs", "run"])
def test_every_width_and_theme(folder, serve, open_page, page, width, media, theme):
    with serve(folder) as url:
        visit = open_page(url if page == "runs" else address_of(folder, url), width, theme, media)
        if page == "run":
            visit.page.wait_for_selector("text=How it was played")
        visit.check()


def test_a_live_page_follows_a_run_over_a_restart_of_the_server_to_its_end(tmp_path, open_page):
    with step_through(tmp_path, 4) as run:
        with start_server(tmp_path) as (server, url):
            allow(tmp_path, 2)
            wait_for_run(tmp_path, run)
            visit = open_page(address_of(tmp_path, url))
            page = visit.page
            page.wait_for_selector("text=1 of 4 matches")
            page.wait_for_selector("text=Endpoints")
            page.wait_for_selector("text=Latest matches")
            visit.check()
            plain = open_page(address_of(tmp_path, url), script=False).page
            allow(tmp_path, 4)
            page.wait_for_selector("text=2 of 4 matches")
            assert "1 of 4 matches" in plain.inner_text(".live")
            plain.click("noscript a")
            assert "2 of 4 matches" in plain.inner_text(".live")
            assert not page.is_visible("#lost")
            server.kill()
            page.wait_for_selector("#lost", state="visible")
        allow(tmp_path, 6)
        with start_server(tmp_path, port=int(url.rstrip("/").split(":")[-1])):
            page.wait_for_selector("text=3 of 4 matches")
            assert not page.is_visible("#lost")
            allow(tmp_path, 8)
            page.wait_for_selector("text=✓ done")
            page.wait_for_selector("text=How it was played")
            assert "4 of 4 matches" in page.inner_text(".live")
            visit.console.clear()  # Chromium says that the connection was lost
            visit.check()
    assert run.returncode == 0
