"""Paragraphs to translate: IWSLT's files, the hub's rows, plain rows, the bundled samples, and what
is wrong with them."""

import csv
import gzip
import json
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from parley import Paragraph
from parley.config.selection import as_items
from parley.datasets.catalogue import datasets_named, item_type_of_dataset, load_items
from parley.datasets.formats.paragraphs import SEGMENTS
from parley.datasets.xml_segments import parse_segments
from parley.errors import UsageError
from parley.tasks.translation import Translation
from tests.cli.test_cli import parley as command

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<mteval>\n<%s setid="tst" srclang="english">\n'
PLAIN = {"source": "One.", "reference": "Eins.", "source_language": "en", "target_language": "de"}


def talks(kind, texts):
    """A file of talks, as IWSLT publishes them: with a title and an ampersand that no parser of XML
    lets pass."""
    lines = [HEAD % kind]
    for document, segments in texts.items():
        lines.append(
            f'<doc docid="{document}" genre="lectures">\n<url>http://x.org/?a=1&b=2</url>\n'
            f"<title>T & U</title>\n"
        )
        lines += [f'<seg id="{number}"> {text} </seg>\n' for number, text in segments.items()]
        lines.append("</doc>\n")
    return "".join([*lines, f"</{kind}>\n</mteval>\n"])


def numbered(word, count):
    return {number: f"{word} {number}." for number in range(1, count + 1)}


@pytest.fixture
def folder(tmp_path):
    """Two talks of 7 and 2 segments, in two languages."""
    english = {"922": numbered("Cats &amp; dogs", 7), "923": numbered("Rain", 2)}
    chinese = {
        "922": {n: f"猫狗{n}。" for n in range(1, 8)},
        "923": {n: f"雨{n}。" for n in (1, 2)},
    }
    (tmp_path / "IWSLT17.TED.tst2015.en-zh.en.xml").write_text(
        talks("srcset", english), encoding="utf-8"
    )
    (tmp_path / "IWSLT17.TED.tst2015.en-zh.zh.xml").write_text(
        talks("refset", chinese), encoding="utf-8"
    )
    return tmp_path


def source(folder):
    return folder / "IWSLT17.TED.tst2015.en-zh.en.xml"


def test_segments_of_a_talk_become_paragraphs_with_their_reference(folder):
    found = load_items(str(source(folder)), Paragraph)
    assert [item.id for item in found] == ["en-zh/922/1", "en-zh/922/2", "en-zh/923/1"]
    first, second, third = found
    assert SEGMENTS == 5
    assert first.source == " ".join(f"Cats & dogs {n}." for n in range(1, 6))
    assert first.reference == "猫狗1。猫狗2。猫狗3。猫狗4。猫狗5。"  # nothing between sentences
    assert (first.pair, first.document) == ("en-zh", "922")
    assert second.source == "Cats & dogs 6. Cats & dogs 7."
    assert third.reference == "雨1。雨2。"


def test_a_folder_or_either_file_is_the_same_dataset(folder):
    whole = load_items(f"{folder}/", Paragraph)
    assert whole == load_items(str(source(folder)), Paragraph)
    assert whole == load_items(str(folder / "IWSLT17.TED.tst2015.en-zh.zh.xml"), Paragraph)
    for file in folder.glob("*.xml"):
        (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert whole == load_items(f"{folder}/", Paragraph)


def test_a_folder_may_hold_several_pairs(folder):
    for language in ("en", "fr"):
        (folder / f"IWSLT17.TED.tst2015.en-fr.{language}.xml").write_text(
            talks("srcset", {"922": numbered("Mot", 3)})
        )
    found = load_items(f"{folder}/", Paragraph)
    assert {item.pair for item in found} == {"en-zh", "en-fr"}
    assert len({item.id for item in found}) == len(found) == 4


def test_what_is_wrong_with_two_files_is_said(folder):
    reference = folder / "IWSLT17.TED.tst2015.en-zh.zh.xml"

    def wrong(words, file=None):
        with pytest.raises(UsageError, match=words):
            load_items(str(file or source(folder)), Paragraph)

    good = reference.read_text(encoding="utf-8")
    reference.write_text(good.replace('<seg id="3">', '<seg id="33">', 1), encoding="utf-8")
    wrong("zh.xml: document 922 has no segment 3, but .*en.xml has one")
    reference.write_text(good.replace("</doc>", '<seg id="9">x</seg></doc>', 1), encoding="utf-8")
    wrong("en.xml: document 922 has no segment 9, but .*zh.xml has one")
    reference.write_text(good.replace('id="2"', 'id="1"', 1), encoding="utf-8")
    wrong("line 8: document 922: two segments have the id 1: give each its own id")
    reference.write_text(good.replace('docid="922"', "", 1), encoding="utf-8")
    wrong("segment 1 is not inside a <doc> with a docid")
    reference.write_text(good.replace('<seg id="1">', "<seg>", 1), encoding="utf-8")
    wrong("segment 1 has no id")
    reference.write_text(good.replace("猫狗1。", "", 1), encoding="utf-8")
    wrong("zh.xml, line 7: document 922: segment 1 is empty")
    reference.write_text("<mteval></mteval>")
    wrong("no segments were found; expected <doc docid")
    reference.unlink()
    wrong("but IWSLT17.TED.tst2015.en-zh.zh.xml is not in the same folder")
    other = folder / "talks.xml"
    other.write_text(good)
    wrong("expected two files whose names look like NAME.en-zh.en.xml", other)


def segments(body):
    return list(parse_segments(f'<doc docid="d">\n{body}\n</doc>', Path("a.xml")).items())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            '<seg id="1">a\n<seg id="2">b</seg>',
            "line 2: document d: segment 1 is not closed by </seg> before the next <seg",
        ),
        (
            '<seg id="1">a</seg>\n<seg id="2">b',
            "line 3: document d: segment 2 is not closed by </seg> before the next </doc",
        ),
        ('<seg id="2"/>\n<seg id="3">c</seg>', "line 2: document d: segment 2 is empty"),
        ('<seg id="2"></seg>', "line 2: document d: segment 2 is empty"),
        ('<seg id="2"> <!-- later --> </seg>', "line 2: document d: segment 2 is empty"),
        ('<seg id="1">a</seg> b</seg>', "line 2: document d: </seg> without a <seg> before it"),
        ('<seg id="1" <seg id="2">a</seg>', "line 2: document d: <seg is not closed by >"),
        ('\n<!-- <seg id="1">a</seg>', "line 3: document d: <!-- is not closed by -->"),
        ('<seg id="1"><![CDATA[a</seg>', "<!.CDATA. is not closed by ]]>"),
        ('<!ENTITY a "aaaa"><seg id="1">&a;</seg>', "entity definitions are not supported"),
        ('</doc><seg id="1">a</seg>', "segment 1 is not inside a <doc> with a docid"),
    ],
)
def test_a_segment_that_would_be_lost_or_merged_is_an_error_with_its_place(body, said):
    with pytest.raises(UsageError, match=f"a.xml.*{said}"):
        segments(body)


def test_a_last_segment_without_an_end_is_an_error():
    with pytest.raises(UsageError, match="line 1: document d: segment 1 is not closed"):
        parse_segments('<doc docid="d"><seg id="1">a', Path("a.xml"))


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        ("a &amp; b &lt; c", "a & b < c"),
        ("a & b < c > d <i>e</i>", "a & b < c > d <i>e</i>"),
        ("a <!-- not said --> b", "a b"),
        ("<![CDATA[a &amp; <b>]]> c", "a &amp; <b> c"),
        ("a\n  b &nosuch;", "a b &nosuch;"),
    ],
)
def test_what_stands_in_a_segment_is_read_as_it_was_meant(inside, text):
    assert segments(f'<SEG lang-id="9" id="1">{inside}</SEG >') == [(("d", "1"), text)]


def test_segments_in_comments_are_not_played():
    body = '<!-- <seg id="1">a</seg> -->\n<![CDATA[<seg id="3">c</seg>]]><seg id="2">b</seg>'
    assert segments(body) == [(("d", "2"), "b")]


@pytest.mark.parametrize(
    "piece",
    [
        "<seg ",
        "<seg id=",
        '<seg id="1">',
        "<!--",
        "<doc",
        "</doc>",
        "<![CDATA[",
        "<doc docid='a'>",
        "id= ",
    ],
)
def test_no_file_of_segments_keeps_the_reader_busy(piece):
    began = time.process_time()
    for words in (
        piece * 100_000,
        f"<doc docid='d'><seg id='1'>{piece * 100_000}",
        f"<doc {'id=' * 100_000}>",
    ):
        with pytest.raises(UsageError):
            parse_segments(words, Path("a.xml"))
    assert time.process_time() - began < 3  # it is linear; a quadratic one takes minutes


def test_rows_of_the_hub_are_segments_too(tmp_path):
    rows = [{"translation": {"de": f"Satz {n}.", "en": f"Sentence {n}."}} for n in range(1, 8)]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    found = load_items(str(path), Paragraph)
    assert [(item.id, item.pair) for item in found] == [("de-en/1", "de-en"), ("de-en/2", "de-en")]
    assert found[1].source == "Satz 6. Satz 7."
    assert found == as_items(rows, Translation)  # given from Python
    assert item_type_of_dataset(str(path)) is Paragraph


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (
            {"translation": {"de": "a"}},
            (
                "row 2 .aligned segments.: `translation` must have one text in each of two "
                "languages, found de"
            ),
        ),
        ({"translation": {"de": "a", "en": "b", "fr": "c"}}, "found de, en, fr"),
        ({"translation": "a"}, "found str"),
        ({"translation": {"de": "a", "en": None}}, "the column `reference` must be text, not null"),
        (
            {"text": "a"},
            "row 2: expected a column `translation`, as in the rows before; found text",
        ),
    ],
)
def test_a_row_that_does_not_fit_is_named(tmp_path, row, words):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, [{"translation": {"de": "a", "en": "b"}}, row])))
    with pytest.raises(UsageError, match=words):
        load_items(str(path), Paragraph)


def test_plain_rows_are_paragraphs_as_they_are(tmp_path):
    path = tmp_path / "own.csv"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(PLAIN))
        table.writeheader()
        table.writerows([PLAIN, {**PLAIN, "source_language": "PT-BR"}])
    first, second = load_items(str(path), Paragraph)
    assert first == Paragraph("1", "One.", "Eins.", "en", "de")
    assert second.pair == "pt_br-de"  # a hyphen stands between languages only
    (tmp_path / "x.jsonl").write_text(json.dumps({"source": "a", "target": "b"}))
    with pytest.raises(
        UsageError,
        match=r"the nearest known format .* has the columns source, reference .paragraphs.",
    ):
        load_items(str(tmp_path / "x.jsonl"), Paragraph)


def test_languages_that_a_row_does_not_name_are_left_to_the_task(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"src": "One.", "tgt": "Eins."}))
    assert load_items(str(path), Paragraph, {"source": "src", "reference": "tgt"}) == [
        Paragraph("1", "One.", "Eins.")
    ]


@pytest.mark.parametrize(
    ("languages", "words"),
    [
        (
            {"target_language": "germna"},
            r"row 1 .paragraphs.: unknown language 'germna'; did you mean 'german'",
        ),
        ({"target_language": "eng"}, "row 1: the source and the target language must differ"),
        ({"target_language": " "}, "the column `target_language` is empty"),
    ],
)
def test_what_is_wrong_with_a_language_is_said_with_its_row(tmp_path, languages, words):
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({**PLAIN, **languages}))
    with pytest.raises(UsageError, match=words):
        load_items(str(path), Paragraph)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_ends_alike_however_it_is_written(end):
    (found,) = as_items([{**PLAIN, "source": f"One.{end}Two.{end}"}], Translation)
    assert found.source == "One.\nTwo."


def test_other_columns_are_mapped(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"q": "One.", "a": "Eins.", "from": "en", "to": "de"}))
    columns = {"source": "q", "reference": "a", "source_language": "from", "target_language": "to"}
    assert load_items(str(path), Paragraph, columns) == [
        Paragraph("1", "One.", "Eins.", "en", "de")
    ]


def test_the_test_sets_of_the_hub_have_names(monkeypatch):
    asked = []

    def load_dataset(*names, **options):
        asked.append((*names, options))
        return [{"translation": {"en": f"{n}.", "zh": f"{n}。"}} for n in range(8549)]

    library = ModuleType("datasets")
    library.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", library)
    monkeypatch.setattr("parley.datasets.hub.find_spec", lambda name: True)
    assert len(load_items("iwslt2017-en-zh", Paragraph)) == 1710
    assert asked == [
        (
            "IWSLT/iwslt2017",
            "iwslt2017-en-zh",
            {"split": "test", "revision": "refs/convert/parquet"},
        )
    ]


def test_the_samples_are_twelve_paragraphs_for_each_of_three_pairs():
    (samples,) = datasets_named("samples", Paragraph)
    items = samples.items()
    for pair in ("en-zh", "en-fr", "de-en"):
        chosen = [item for item in items if item.pair == pair]
        assert len(chosen) == 12
        for item in chosen:
            assert 60 <= len(item.source.split()) <= 120
            assert item.source != item.reference
    assert all(
        sum("一" <= mark <= "鿿" for mark in item.reference) > 2
        for item in items
        if item.pair == "en-zh"
    )


def test_they_can_be_checked_from_the_command(folder, tmp_path):
    assert (
        "read 3 items of type Paragraph"
        in command("datasets", "check", source(folder), cwd=tmp_path).out
    )
    assert (
        "36 items"
        in command("datasets", "check", "samples", "--task", "translation", cwd=tmp_path).out
    )
