"""The list of matches: filters, orders, pages, and answers to addresses that cannot be used."""

import re
import sqlite3
from html import unescape

import pytest

import parley
from parley.store.sqlite.run_file import SqliteSnapshot


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Translations by four bots with two judges; one model is often silent."""
    place = tmp_path_factory.mktemp("list")
    models = {
        "able": "bot/translator",
        "weak": {"model": "bot/translator", "strength": 0.3},
        "mute": lambda view: "",
        "<b>odd</b>": {"model": "bot/translator", "strength": 0.6},
    }
    judges = {"judge": {"first": "bot/judge", "second": "bot/judge"}}
    return parley.run("translation", models, roles=judges, items=6, store=place, seed=1)


@pytest.fixture
def ask(run, visit):
    client = visit(run.ref.store.removeprefix("folder:"))
    return lambda query="": client.get(f"/run/{run.ref.id}/matches{query}")


def numbers(answer):
    assert answer.status_code == 200, answer.text[:600]
    return [
        int(each) for each in re.findall(r'<th scope="row"><a href="[^"]*">(\d+)<', answer.text)
    ]


def links(answer, rel):
    return [unescape(each) for each in re.findall(rf'href="([^"]*)" rel="{rel}"', answer.text)]


@pytest.mark.parametrize(
    ("query", "sizes"),
    [("", [50, 22]), ("?order=score", [50, 22]), ("?model=weak&order=tokens&down=1", [36])],
)
def test_links_lead_through_all_pages_and_back(run, visit, query, sizes):
    client = visit(run.ref.store.removeprefix("folder:"))
    answer = client.get(f"/run/{run.ref.id}/matches{query}")
    pages = [numbers(answer)]
    while found := links(answer, "next"):
        answer = client.get(found[0])
        pages.append(numbers(answer))
    every = [number for page in pages for number in page]
    assert [len(page) for page in pages] == sizes
    assert len(every) == len(set(every))
    back = [numbers(client.get(link)) for link in links(answer, "prev")]
    assert back == pages[-2:-1]


def test_a_longer_page_needs_no_more_queries(ask, monkeypatch):
    asked, read = [], SqliteSnapshot.rows

    def count(reader, query, *values):
        asked.append(query)
        return read(reader, query, *values)

    monkeypatch.setattr(SqliteSnapshot, "rows", count)
    needed = {}
    for query in ("", "?after=70~70"):
        asked.clear()
        listed = len(numbers(ask(query)))
        needed[listed] = len(asked)
    assert needed.keys() == {50, 2}
    assert needed[50] == needed[2] > 0


def test_filters_agree_with_the_record(run, ask):
    rows = {each["number"]: each for each in run.matches}
    assert set(numbers(ask("?model=weak&role=proofreader"))) == {
        number for number, row in rows.items() if row["seats"]["proofreader"] == "weak"
    }
    item = rows[1]["item"]
    assert set(numbers(ask(f"?item={item}"))) == {n for n, r in rows.items() if r["item"] == item}
    broken = {n for n, r in rows.items() if "mute" in r["seats"].values()}
    assert set(numbers(ask("?violations=1"))) == broken
    assert numbers(ask("?aborted=1")) == []
    assert "No match fits these filters" in ask("?aborted=1").text
    low = ask("?metric=bleu&high=0.2&role=translator&model=weak")
    assert set(numbers(low)) <= set(rows)


def test_a_line_says_who_played_and_how_well(ask):
    text = ask("?model=able&role=translator").text
    assert "&lt;b&gt;odd&lt;/b&gt;" in text
    assert "<b>odd</b>" not in text
    assert "Translator" in text
    assert "Judge 1" in text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?model=abel", "did you mean &#x27;able&#x27;"),
        ("?role=writer", "unknown role"),
        ("?role=translator", "also choose a model or a metric"),
        ("?metric=blue", "did you mean &#x27;bleu&#x27;"),
        ("?order=size", "unknown order"),
        ("?low=much", "low must be a number"),
        ("?low=nan", "low must be a number"),
        ("?low=2&high=1", "low must not be above high"),
        ("?apart=x", "apart must be a number"),
        ("?violations=yes", "violations must be 1"),
        ("?after=7", "after must be a place"),
        ("?after=inf~1", "after must be a place"),
        ("?after=1~99999999999999999999", "after must be a place"),
        ("?after=1~1&before=1~1", "give after or before"),
        ("?colour=red", "unknown filter"),
        ("?model=able&model=weak", "must be given once"),
    ],
)
def test_an_address_that_cannot_be_used_says_what_was_wanted(ask, query, said):
    answer = ask(query)
    assert answer.status_code == 400
    assert said in answer.text


def test_a_run_that_does_not_exist(run, visit):
    assert (
        visit(run.ref.store.removeprefix("folder:")).get("/run/nothing/matches").status_code == 404
    )


def test_empty_columns_are_left_out(ask, folder, visit):
    (path,) = folder.glob("*.parley")
    bots = visit(folder).get(f"/run/{path.stem}/matches")
    assert columns(bots) == ["match", "who played", "score", "violations", "time", "state"]
    assert {"item", "judges apart"} < set(columns(ask()))


def columns(answer):
    head = re.search(r"<thead>.*?</thead>", answer.text, re.DOTALL)[0]
    return re.findall(r'<th scope="col"[^>]*>([^<]*)<', head)


def test_a_filtered_list_does_not_count_the_plan_as_found(ask):
    assert "72 matches planned." in ask().text
    filtered = ask("?model=weak").text
    assert "72 matches planned." not in filtered
    assert "These filters choose from 72 planned matches." in filtered


def test_a_secret_at_the_end_of_a_reason_is_hidden_whole(visit, folder, monkeypatch):
    key = "kq7Zt2Lw9Xv4Bn8Rm3Hs6Dy1"
    (path,) = folder.glob("*.parley")
    with sqlite3.connect(path) as connection:
        reason = "r" * 290 + key
        connection.execute("UPDATE matches SET state = 'aborted', reason = ?", (reason,))
    connection.close()
    monkeypatch.setenv("OPENAI_API_KEY", key)
    text = visit(folder).get(f"/run/{path.stem}/matches").text
    assert "r" * 290 in text
    assert key[:6] not in text
