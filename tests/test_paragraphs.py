"""Paragraphs to translate: IWSLT's files, the hub's rows, plain rows, the bundled samples, and what is wrong with them."""

import csv
import gzip
import json
import sys
from types import ModuleType

import pytest

from parley import Paragraph
from parley.datasets import items_from, kind_at, named
from parley.datasets.forms.paragraphs import SEGMENTS
from parley.errors import UsageError
from parley.prepared import fitting
from parley.tasks.translation import Translation
from tests.test_cli import parley as command

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<mteval>\n<%s setid="tst" srclang="english">\n'
PLAIN = {"source": "One.", "reference": "Eins.", "source_language": "en", "target_language": "de"}


def talks(kind, texts):
    """A file of talks, as IWSLT publishes them: with a title and an ampersand that no parser of XML lets pass."""
    lines = [HEAD % kind]
    for document, segments in texts.items():
        lines.append(f'<doc docid="{document}" genre="lectures">\n<url>http://x.org/?a=1&b=2</url>\n<title>T & U</title>\n')
        lines += [f'<seg id="{number}"> {text} </seg>\n' for number, text in segments.items()]
        lines.append("</doc>\n")
    return "".join([*lines, f"</{kind}>\n</mteval>\n"])


def numbered(word, count):
    return {number: f"{word} {number}." for number in range(1, count + 1)}


@pytest.fixture
def folder(tmp_path):
    """Two talks of 7 and 2 segments, in two languages."""
    english = {"922": numbered("Cats &amp; dogs", 7), "923": numbered("Rain", 2)}
    chinese = {"922": {n: f"猫狗{n}。" for n in range(1, 8)}, "923": {n: f"雨{n}。" for n in (1, 2)}}
    (tmp_path / "IWSLT17.TED.tst2015.en-zh.en.xml").write_text(talks("srcset", english), encoding="utf-8")
    (tmp_path / "IWSLT17.TED.tst2015.en-zh.zh.xml").write_text(talks("refset", chinese), encoding="utf-8")
    return tmp_path


def source(folder):
    return folder / "IWSLT17.TED.tst2015.en-zh.en.xml"


def test_segments_of_a_talk_become_paragraphs_with_their_reference(folder):
    found = items_from(str(source(folder)), Paragraph)
    assert [item.id for item in found] == ["en-zh/922/1", "en-zh/922/2", "en-zh/923/1"]
    first, second, third = found
    assert SEGMENTS == 5
    assert first.source == " ".join(f"Cats & dogs {n}." for n in range(1, 6))
    assert first.reference == "猫狗1。猫狗2。猫狗3。猫狗4。猫狗5。"  # nothing between sentences
    assert (first.pair, first.document) == ("en-zh", "922")
    assert second.source == "Cats & dogs 6. Cats & dogs 7."
    assert third.reference == "雨1。雨2。"


def test_a_folder_or_either_file_is_the_same_dataset(folder):
    whole = items_from(f"{folder}/", Paragraph)
    assert whole == items_from(str(source(folder)), Paragraph)
    assert whole == items_from(str(folder / "IWSLT17.TED.tst2015.en-zh.zh.xml"), Paragraph)
    for file in folder.glob("*.xml"):
        (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert whole == items_from(f"{folder}/", Paragraph)


def test_a_folder_may_hold_several_pairs(folder):
    for language in ("en", "fr"):
        (folder / f"IWSLT17.TED.tst2015.en-fr.{language}.xml").write_text(talks("srcset", {"922": numbered("Mot", 3)}))
    found = items_from(f"{folder}/", Paragraph)
    assert {item.pair for item in found} == {"en-zh", "en-fr"}
    assert len({item.id for item in found}) == len(found) == 4


def test_what_is_wrong_with_two_files_is_said(folder):
    reference = folder / "IWSLT17.TED.tst2015.en-zh.zh.xml"

    def wrong(words, file=None):
        with pytest.raises(UsageError, match=words):
            items_from(str(file or source(folder)), Paragraph)

    good = reference.read_text(encoding="utf-8")
    reference.write_text(good.replace('<seg id="3">', '<seg id="33">', 1), encoding="utf-8")
    wrong("zh.xml: document 922 has no segment 3, which .*en.xml has")
    reference.write_text(good.replace("</doc>", '<seg id="9">x</seg></doc>', 1), encoding="utf-8")
    wrong("en.xml: document 922 has no segment 9, which .*zh.xml has")
    reference.write_text(good.replace('id="2"', 'id="1"', 1), encoding="utf-8")
    wrong("document 922 has two segments 1")
    reference.write_text(good.replace('docid="922"', "", 1), encoding="utf-8")
    wrong("segment 1 has no document with a docid")
    reference.write_text(good.replace('<seg id="1">', "<seg>", 1), encoding="utf-8")
    wrong("segment 1 has no id")
    reference.write_text(good.replace("猫狗1。", "", 1), encoding="utf-8")
    wrong("row 1 .aligned segments.: reference wants a text, found an empty one")
    reference.write_text("<mteval></mteval>")
    wrong("found no segments; wanted <doc docid")
    reference.unlink()
    wrong("there is no IWSLT17.TED.tst2015.en-zh.zh.xml beside it")
    other = folder / "talks.xml"
    other.write_text(good)
    wrong("wanted two files called like NAME.en-zh.en.xml", other)


def test_rows_of_the_hub_are_segments_too(tmp_path):
    rows = [{"translation": {"de": f"Satz {n}.", "en": f"Sentence {n}."}} for n in range(1, 8)]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    found = items_from(str(path), Paragraph)
    assert [(item.id, item.pair) for item in found] == [("de-en/1", "de-en"), ("de-en/2", "de-en")]
    assert found[1].source == "Satz 6. Satz 7."
    assert found == fitting(rows, Translation)  # given from Python
    assert kind_at(str(path)) is Paragraph


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"translation": {"de": "a"}}, "row 2 .aligned segments.: translation wants one text in each of two languages, found de"),
        ({"translation": {"de": "a", "en": "b", "fr": "c"}}, "found de, en, fr"),
        ({"translation": "a"}, "found str"),
        ({"translation": {"de": "a", "en": None}}, "reference wants a text, found NoneType"),
        ({"text": "a"}, "row 2: wanted translation, as in the rows before; found text"),
    ],
)
def test_a_row_that_does_not_fit_is_named(tmp_path, row, words):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, [{"translation": {"de": "a", "en": "b"}}, row])))
    with pytest.raises(UsageError, match=words):
        items_from(str(path), Paragraph)


def test_plain_rows_are_paragraphs_as_they_are(tmp_path):
    path = tmp_path / "own.csv"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(PLAIN))
        table.writeheader()
        table.writerows([PLAIN, {**PLAIN, "source_language": "PT-BR"}])
    first, second = items_from(str(path), Paragraph)
    assert first == Paragraph("1", "One.", "Eins.", "en", "de")
    assert second.pair == "pt_br-de"  # a hyphen stands between languages only
    (tmp_path / "x.jsonl").write_text(json.dumps({"source": "a", "target": "b"}))
    with pytest.raises(UsageError, match=r"wanted translation .aligned segments. or source, reference .paragraphs."):
        items_from(str(tmp_path / "x.jsonl"), Paragraph)


def test_languages_that_a_row_does_not_name_are_left_to_the_task(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"src": "One.", "tgt": "Eins."}))
    assert items_from(str(path), Paragraph, {"source": "src", "reference": "tgt"}) == [Paragraph("1", "One.", "Eins.")]


@pytest.mark.parametrize(
    ("languages", "words"),
    [
        ({"target_language": "germna"}, r"row 1 .paragraphs.: unknown language 'germna'; did you mean 'german'"),
        ({"target_language": "eng"}, "row 1: a paragraph is translated into another language"),
        ({"target_language": " "}, "target_language wants a text, found an empty one"),
    ],
)
def test_what_is_wrong_with_a_language_is_said_with_its_row(tmp_path, languages, words):
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({**PLAIN, **languages}))
    with pytest.raises(UsageError, match=words):
        items_from(str(path), Paragraph)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_ends_alike_however_it_is_written(end):
    (found,) = fitting([{**PLAIN, "source": f"One.{end}Two.{end}"}], Translation)
    assert found.source == "One.\nTwo."


def test_other_columns_are_mapped(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"q": "One.", "a": "Eins.", "from": "en", "to": "de"}))
    columns = {"source": "q", "reference": "a", "source_language": "from", "target_language": "to"}
    assert items_from(str(path), Paragraph, columns) == [Paragraph("1", "One.", "Eins.", "en", "de")]


def test_the_test_sets_of_the_hub_have_names(monkeypatch):
    asked = []

    def load_dataset(*names, **options):
        asked.append((*names, options))
        return [{"translation": {"en": f"{n}.", "zh": f"{n}。"}} for n in range(8549)]

    library = ModuleType("datasets")
    library.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", library)
    monkeypatch.setattr("parley.datasets.hub.find_spec", lambda name: True)
    assert len(items_from("iwslt2017-en-zh", Paragraph)) == 1710
    assert asked == [("IWSLT/iwslt2017", "iwslt2017-en-zh", {"split": "test", "revision": "refs/convert/parquet"})]


def test_the_samples_are_twelve_paragraphs_for_each_of_three_pairs():
    (samples,) = named("samples", Paragraph)
    items = samples.items()
    for pair in ("en-zh", "en-fr", "de-en"):
        chosen = [item for item in items if item.pair == pair]
        assert len(chosen) == 12
        for item in chosen:
            assert 60 <= len(item.source.split()) <= 120
            assert item.source != item.reference
    assert all(sum("一" <= mark <= "鿿" for mark in item.reference) > 2 for item in items if item.pair == "en-zh")


def test_they_can_be_checked_from_the_command(folder, tmp_path):
    assert "3 items of type Paragraph read" in command("datasets", "check", source(folder), cwd=tmp_path).out
    assert "36 items" in command("datasets", "check", "samples", "--task", "translation", cwd=tmp_path).out
