"""The report and every page of every task, at every width and theme."""

import pytest

import parley
from parley.config.task_catalogue import task_names
from tests.runs.test_recall import evolve

TASKS = {
    "public_goods": {"models": {"a": "bot/free-rider", "b": "bot/random"}, "repeats": 3},
    "idiom_solitaire": {"models": {"a": "bot/random", "b": "bot/speaker"}, "repeats": 2},
    "code_review": {
        "models": {"a": "bot/coder", "b": "bot/null"}, "roles": {"judge": "bot/judge"}, "items": 2
    },
    "translation": {
        "models": {"a": "bot/translator", "b": "bot/forger"},
        "roles": {"judge": "bot/judge"},
        "items": 2,
    },
    "kieval": {
        "models": {"a": "bot/candidate", "b": "bot/null"},
        "roles": {"interactor": "bot/interactor", "evaluator": "bot/evaluator"},
        "items": 3,
    },
    "word_guessing": {"models": {"a": "bot/guesser", "b": "bot/random"}, "items": 2},
    "qa": {"models": {"a": "bot/student", "b": "bot/random"}, "items": 6, "shots": 0},
    "os_tasks": {"models": {"a": "bot/solver", "b": "bot/null"}, "items": 2},
}  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("theme", ["light", "dark"]),
    pytest.mark.parametrize(
        ("width", "media"), [(1280, "screen"), (390, "screen"), (1280, "print")]
    ),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of every task, and one whose models have a memory, by name."""
    place = tmp_path_factory.mktemp("tasks")
    assert set(TASKS) == set(task_names())
    found = {name: parley.run(name, store=place, **given) for name, given in TASKS.items()}
    return found | {"evolve": evolve(place, ["bot/random", "bot/student"], count=3)}


@pytest.fixture(scope="module")
def reports(runs, tmp_path_factory):
    place = tmp_path_factory.mktemp("reports")
    return [found.report(place / f"{name}.html") for name, found in runs.items()]


def test_the_report_of_every_task(reports, open_page, theme, width, media):
    for page in reports:
        open_page(page, width, theme, media).check()


@pytest.mark.parametrize("name", [*TASKS, "evolve"])
def test_the_pages_of_every_task(runs, serve, open_page, name, theme, width, media):
    ref = runs[name].ref
    with serve(ref.store.removeprefix("folder:")) as url:
        address = f"{url.rstrip('/')}/run/{ref.id}"
        visit = open_page(address, width, theme, media)
        visit.page.wait_for_selector("text=How it was played")
        visit.check()
        for page in ("/matches", "/match/1"):
            open_page(address + page, width, theme, media).check()


@pytest.mark.parametrize(
    "page", ["none", "run/none", "run/{id}/match/none", "run/{id}/matches?a=b"]
)
def test_pages_that_explain_a_bad_address(runs, serve, open_page, page, theme, width, media):
    ref = runs["qa"].ref
    with serve(ref.store.removeprefix("folder:")) as url:
        address = f"{url.rstrip('/')}/{page.format(id=ref.id)}"
        visit = open_page(address, width, theme, media, status=400 if "?" in page else 404)
        visit.console.clear()  # Chromium reports the status
        visit.check()
