"""The list of runs: what it finds, what it says of runs that cannot be read, how often it reads."""

import re
import shutil

import pytest

import parley
from parley.store.sqlite.run_file import SqliteReader

BOTS = dict.fromkeys(("ann", "bob", "cy"), "bot/random")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    parley.run("public_goods", models=BOTS, repeats=3, store=place, name="Three <b>friends</b>")
    parley.run("qa", models={"dora": "bot/random"}, items=2, repeats=1, store=place)
    (place / "broken.parley").write_bytes(b"no run")
    return place


def titles(answer):
    return re.findall(r'class="ttl"[^>]*><bdi>([^<]*)', answer.text)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["QA", "Public goods: Three &lt;b&gt;friends&lt;/b&gt;"]),
        ("q=PUBLIC+goods", ["Public goods: Three &lt;b&gt;friends&lt;/b&gt;"]),
        ("q=dora", ["QA"]),
        ("q=bot%2Frandom+ann", ["Public goods: Three &lt;b&gt;friends&lt;/b&gt;"]),
        ("q=friends", ["Public goods: Three &lt;b&gt;friends&lt;/b&gt;"]),
        ("q=dora&state=done", ["QA"]),
        ("q=dora&state=failed", []),
        ("q=nobody", []),
    ],
)
def test_runs_are_found_by_task_model_name_and_state(visit, folder, query, found):
    answer = visit(folder).get(f"/?{query}")
    assert answer.status_code == 200
    assert titles(answer) == found
    assert ("No run fits this search" in answer.text) is (not found)


def test_a_run_is_found_by_its_id(visit, folder):
    id = next(path.stem for path in folder.glob("qa*.parley"))
    assert titles(visit(folder).get(f"/?q={id[-6:]}")) == ["QA"]


def test_matches_cost_and_intervals_are_shown(visit, folder):
    text = visit(folder).get("/?q=friends").text
    assert "<b>3</b>" in text
    assert "<b>0.00</b>" in text
    assert text.count('role="img"') == 2  # one drawing, wide and narrow
    assert re.search(r"<desc>.*ann [\d.]+ \(", text)
    assert "<bdi>payoff</bdi>, higher is better" in text
    assert re.search(r'<span class="meta">20\d\d-\d\d-\d\d · ', text)
    drawn = re.findall(r'class="label">(ann|bob|cy)</text>', text)[:3]
    meta = re.search(r'class="meta">.*?<br>', text)[0]
    assert re.findall(r"<bdi>(ann|bob|cy)</bdi>", meta) == drawn  # in the order of the lines


def test_files_that_cannot_be_read_are_listed_with_the_reason(visit, folder):
    text = visit(folder).get("/").text
    assert "broken.parley cannot be read as a run: file is not a database" in text


@pytest.mark.parametrize("query", ["state=sleeping", f"q={'x' * 300}"])
def test_a_bad_filter_gets_a_plain_answer(visit, folder, query):
    answer = visit(folder).get(f"/?{query}")
    assert answer.status_code == 400
    assert "must" in answer.text


def test_an_empty_store_says_what_to_do(visit, tmp_path):
    text = visit(tmp_path / "none").get("/").text
    assert "There is no run here yet" in text
    assert "parley demo" in text


def test_many_runs_come_in_pages_and_each_is_read_once(visit, folder, tmp_path, monkeypatch):
    source = next(folder.glob("qa*.parley"))
    for number in range(7):
        shutil.copy(source, tmp_path / f"qa-{number}.parley")
    monkeypatch.setattr("parley.web.run_catalogue.PAGE", 3)
    read = []
    before = SqliteReader.__init__

    def counted(reader, path):
        read.append(path.name)
        before(reader, path)

    client, seen, address = visit(tmp_path), [], "/"
    client.app.state.site.catalogue.start_summary = lambda ref: ""  # it reads runs as well
    monkeypatch.setattr("parley.web.runs_page.PATIENCE", 0)
    monkeypatch.setattr(SqliteReader, "__init__", counted)
    while address:
        text = client.get(address).text
        seen += re.findall(r'href="/run/([^"]+)"', text)
        older = re.search(r'href="([^"]+)" rel="next"', text)
        address = older and older[1].replace("&amp;", "&")
    assert len(seen) == 7
    assert len(set(seen)) == 7
    client.get("/?q=qa")
    assert sorted(read) == sorted(f"qa-{number}.parley" for number in range(7))


def test_a_search_that_takes_long_ends_early_and_goes_on(visit, folder, monkeypatch):
    client = visit(folder)
    monkeypatch.setattr("parley.web.run_catalogue.PATIENCE", -1)
    text = client.get("/?q=friends").text
    assert "Search on" in text
