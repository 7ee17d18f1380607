"""The list of matches and the page of a match in a browser."""

import pytest

import parley
from tests.web.test_match_page import HOSTILE, Talk, hostile

WHOLE = pytest.mark.slow  # every width, theme and medium; once is enough for `make test`
LOOKS = [
    pytest.param(1280, "light", "screen"),
    pytest.param(390, "light", "screen", marks=WHOLE),
    pytest.param(1280, "dark", "screen", marks=WHOLE),
    pytest.param(390, "dark", "screen", marks=WHOLE),
    pytest.param(1280, "light", "print", marks=WHOLE),
]


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory):
    """Two models, of which one says hostile things of 200,000 letters."""
    models = {"<i>bad</i>": hostile, "good": lambda view: '{"n": 4}'}
    place = tmp_path_factory.mktemp("hostile")
    return parley.run(Talk(), models, repeats=30, store=place, seed=1)


@pytest.fixture(scope="module")
def judged_run(tmp_path_factory):
    models = {"able": "bot/translator", "weak": {"model": "bot/translator", "strength": 0.3}}
    judges = {"judge": {"first": "bot/judge", "second": "bot/judge"}}
    place = tmp_path_factory.mktemp("judged")
    return parley.run("translation", models, roles=judges, items=2, store=place, seed=1)


def address(url, run, path):
    return f"{url}/run/{run.ref.id}/{path}"


@pytest.mark.parametrize(("width", "theme", "media"), LOOKS)
def test_a_hostile_match_stays_text(serve, open_page, hostile_run, width, theme, media):
    with serve(hostile_run.ref.store.removeprefix("folder:")) as url:
        visit = open_page(address(url, hostile_run, "match/1"), width, theme, media)
        visit.check()
        assert "</style></bdi></article><script>alert(1)</script>" in visit.page.inner_text("main")
        assert "<U+202E>evil" in visit.page.inner_text("main")
        assert visit.page.locator("main script, main img").count() == 0
        assert HOSTILE[:20] not in visit.page.title()


@pytest.mark.parametrize(("width", "theme", "media"), LOOKS)
def test_the_list_of_matches(serve, open_page, judged_run, width, theme, media):
    with serve(judged_run.ref.store.removeprefix("folder:")) as url:
        visit = open_page(
            address(url, judged_run, "matches?order=score&down=1"), width, theme, media
        )
        visit.check()
        if media == "print":
            return
        page = visit.page
        page.get_by_label("Model").select_option("weak")
        page.get_by_label("Role").select_option("translator")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**model=weak**")
        assert page.locator("tbody tr").count() == 2
        page.locator("tbody th a").first.click()
        page.wait_for_url("**/match/*")
        assert page.get_by_role("heading", level=1).inner_text().startswith("Match ")


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["match/1?seat=translator", "match/1?beside=2", "match/2", "matches"]
)
@pytest.mark.parametrize("width", [1280, 390])
def test_views_and_pairs_of_matches(serve, open_page, judged_run, path, width):
    with serve(judged_run.ref.store.removeprefix("folder:")) as url:
        open_page(address(url, judged_run, path), width).check()


@pytest.mark.slow
def test_pages_work_without_script(serve, open_page, hostile_run):
    with serve(hostile_run.ref.store.removeprefix("folder:")) as url:
        page = open_page(address(url, hostile_run, "matches"), script=False).page
        page.get_by_role("link", name="Next").click()
        page.wait_for_url("**after=**")
        assert page.locator("tbody tr").count() == 10
        page.get_by_role("link", name="Previous").click()
        page.wait_for_url("**before=**")
        assert page.locator("tbody tr").count() == 50
        page.locator("tbody th a").first.click()
        page.get_by_role("link", name="as Player 2 saw it").click()
        page.wait_for_url("**seat=**")
        assert "As Player 2 saw it" in page.inner_text("main")


@pytest.mark.parametrize("width", [1280, 390])
def test_all_scores_fit_into_their_box(serve, open_page, judged_run, width):
    with serve(judged_run.ref.store.removeprefix("folder:")) as url:
        page = open_page(address(url, judged_run, "match/1"), width).page
        wide = page.evaluate(
            "() => { const table = document.querySelector('.scores'), box = table.parentElement;"
            " return [box.scrollWidth, box.clientWidth, table.getBoundingClientRect().right,"
            " box.getBoundingClientRect().right] }"
        )
        assert wide[0] <= wide[1], wide
        assert wide[2] <= wide[3], wide


def test_two_matches_begin_at_the_same_height(serve, open_page, judged_run):
    with serve(judged_run.ref.store.removeprefix("folder:")) as url:
        page = open_page(address(url, judged_run, "match/1?beside=2")).page
        tops = page.evaluate(
            "() => [...document.querySelectorAll('.beside > section')].map("
            "each => each.querySelector('.rd').getBoundingClientRect().top)"
        )
        assert len(tops) == 2
        assert tops[0] == tops[1]
