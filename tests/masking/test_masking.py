"""Names of models and makers: what is found, what stays, and what other seats read."""

import asyncio
import json
import re
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import parley
from parley import Choice, Metric, Role, Task, run
from parley.audit.audit import audit_run
from parley.audit.messages import find_readable_names
from parley.masking import names as names_module
from parley.masking import spans as spans_module
from parley.masking.mask import MASK, MatchMask, NameFinder, describe_spans
from parley.masking.spans import Roster, Span, find_spans
from parley.match.match import Match, clean_text
from parley.match.protocol import Reply
from parley.match.record import MemoryRecord, RecordedCall
from parley.participants.python import Python
from parley.rules.pool import Seat
from parley.testing.by_hand import QUOTATION_KEY

DATA = Path(__file__).parents[1] / "data" / "masking"
PLAYING = Roster.of(
    ["claude-opus-4", "gemini-2.5-pro", "meta-llama/Llama-3-8B", "mistral-large-latest"]
)
NOBODY = Roster()


def shown(text, roster=PLAYING, task=""):
    """A reply as others read it."""
    return mask_spans(text, NameFinder(roster, lambda: task).find(text))


def mask_spans(text, spans):
    """A reply as others read it."""
    pieces, done = [], 0
    for span in spans:
        pieces += (text[done : span.start], MASK)
        done = span.end
    return "".join((*pieces, text[done:]))


def sentences(name):
    """The lines of a file, with the characters that a line cannot show."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [
        re.sub(r"\{([0-9a-f]{4})\}", lambda code: chr(int(code[1], 16)), line).replace("{nl}", "\n")
        for line in lines
        if not line.startswith("%")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "I am GPT-4.1",
        "As GPT-4, I invest 5.",
        "made by OpenAI",
        "call me Claude",
        "I'm Claude",
        "I’m Claude 3.5 Sonnet.",
        "Soy Claude",
        "**GPT-4.1**",
        "<b>GPT</b>-4.1",
        "G P T - 4 . 1",
        '{"model": "gpt-4.1"}',
        "[GPT-4.1]: yes",
        "Claude: The code is correct.",
        "gpt-4.1> ok",
        "Cheers, Claude",
        "/* Claude wrote this */",
        "# author: ChatGPT",
        "Co-Authored-By: Claude <noreply@anthropic.com>",
        "We at Anthropic",
        "我是ChatGPT，由OpenAI训练。",
        "我叫通义千问，是阿里云开发的",
        "我是克劳德",
        "私はクロードです",
        "저는 클로드입니다",
        "Я — Клод, меня обучили в Anthropic",
        "Меня обучил Клод",
        "أنا كلود",
        "Jestem Claude, model firmy Anthropic",
        "Je suis Mistral Large",
        "Ich bin Gemini 2.5 Pro von Google",
        "ＧＰＴ-４",
        "Cl​aude",
        "Сlaude",  # the first letter is Cyrillic
        "I run on llama-3-8b.",
        "I am meta_llama 3",
        '<span title="Claude">me</span>',
        '<response assistant="gpt-4.1">yes</response>',
        "[me](https://openai.com/index)",
        '<a href="https://claude.ai">me</a>',
        'C<b class="x">lau</b>de',
        "A Claude-powered assistant",
    ],
)
def test_a_name_is_hidden_if_its_family_plays(text):
    hidden = shown(text)
    assert MASK in hidden
    left = hidden.replace(MASK, "").lower()
    for name in ("gpt", "claude", "gemini", "openai", "anthropic", "克劳德", "клод", "google"):
        assert name not in left


@pytest.mark.parametrize(
    "text",
    [
        "Claude Monet painted water lilies.",
        "I met Jean-Claude.",
        "Claude-Michel sang.",
        "The llama spat.",
        "Meta-analysis shows it.",
        "a mistral wind",
        "I like palm trees and five coins.",
        "claude = 5",
    ],
)
def test_ordinary_words_stay(text):
    assert shown(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Gemini is a constellation.",
        "Mistral winds blow in Provence.",
        "Claude is a baker.",
        "Google is large.",
        "Amazon 3 is a river in a game.",
    ],
)
def test_ordinary_words_stay_if_no_such_model_plays(text):
    assert shown(text, Roster.of(["gpt-4.1"])) == text


def test_one_hidden_name_hides_all_names_of_a_reply():
    said = "Not Gemini, not Claude, but GPT-4.1."
    assert shown(said, NOBODY) == f"Not {MASK}, not {MASK}, but {MASK}."


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("Translate: Zwillinge. Reference: Gemini is a constellation.", "Gemini is in the sky."),
        ("Die Zwillinge heißen 双子座 oder ジェミニ.", "Gemini is in the sky."),
        ("def f(claude): return claude", "Claude is a parameter."),
        ("Write about the llama.", "Llama wool is soft."),
    ],
)
def test_a_family_that_the_task_names_stays(task, said):
    assert shown(said) != said
    assert shown(said, task=task) == said
    assert MASK in shown(f"{said} I am GPT-4.1.", task=task)


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("I am Google Gemini.", "google/gemini-2.5-pro"),
        ("I am Meta Llama 3.", "meta-llama/Llama-3-8B"),
        ("Alibaba Qwen", "qwen3"),
        ("IBM Granite", "ibm/granite-3"),
        ("Claude Gemini Llama", "claude-opus-4"),
    ],
)
def test_a_name_directly_before_another_name_is_hidden(text, model):
    left = shown(text, PLAYING if " Gemini " in text else Roster.of([model])).replace(MASK, "")
    assert not set(left.split()) & set(text.strip(".").split()[-3:]) - {"I", "am"}


@pytest.mark.parametrize("model", ["ollama/zorb-7b:latest", "org/zorb-7b@main", "zorb-7b:free"])
def test_a_name_is_hidden_without_the_tag_of_its_address(model):
    assert shown("I am Zorb-7b.", Roster.of([model])) == f"I am {MASK}."
    assert shown("I am " + model, Roster.of([model])).endswith(f" {MASK}") or "/" in model


def test_an_ordinary_word_of_the_task_spares_itself_and_not_its_family():
    task = "Soap is made of palm oil. {'meta': 1}"
    assert shown("Palm oil is soft.", task=task) == "Palm oil is soft."
    assert shown("I am Gemini by Google.", task=task) == f"I am {MASK} by {MASK}."
    assert shown("I am Llama 3, by Facebook.", task=task) == f"I am {MASK}, by {MASK}."


@pytest.mark.parametrize(
    "text",
    ["パノラマを見た。", "メタデータです。", "라마단이 시작됐다.", "ドラマは長い。"],
)
def test_a_name_within_a_longer_word_stays(text):
    assert shown(text) == text


def test_the_names_of_the_runs_own_models_are_hidden():
    roster = Roster.of(["org/zorblax-9000-instruct", "lab/tiny_1b", "x", "plainword"])
    assert shown("I am Zorblax-9000-Instruct!", roster) == f"I am {MASK}!"
    assert shown("I am zorblax 9000 instruct or tiny-1b.", roster).count(MASK) == 2
    assert shown("A plainword stays, x too.", roster) == "A plainword stays, x too."
    assert shown("zorblax-9000-instruct", roster, task="zorblax-9000-instruct") == (
        "zorblax-9000-instruct"
    )


def test_words_with_a_space_are_no_name_of_a_model_that_is_written_with_a_hyphen():
    roster = Roster.of(["hf/./my-model"])
    assert shown("In my model, prices rise.", roster) == "In my model, prices rise."
    assert shown("I am my-model or my_model.", roster) == f"I am {MASK} or {MASK}."
    assert shown("I am Claude Ultra.", Roster.of(["claude-ultra"])) == f"I am {MASK}."


def test_most_sentences_that_name_a_family_that_plays_are_hidden():
    """The share is a measurement; nothing is built to raise it."""
    hidden, every = 0, 0
    for line in sentences("claims.txt"):
        text, _, names = line.partition(" ||| ")
        left = shown(text, Roster.of([names or text])).lower()
        every += 1
        hidden += not any(name.strip().lower() in left for name in names.split(",") if name.strip())
    assert hidden / every > 0.9, f"{hidden} of {every}"


def test_most_forms_of_naming_oneself_are_hidden():
    table = Roster.of(["gpt-4.1", "claude-2"])
    missed = [text for text in sentences("forms.txt") if MASK not in shown(text, table)]
    assert len(missed) < 0.05 * len(sentences("forms.txt")), missed


# ---- delivery


@pytest.fixture
def change_table(monkeypatch):
    """Replaces the table, as a later version of Parley may."""
    kept = (names_module.all_spellings, spans_module.family_by_word)
    caches = (
        *kept,
        spans_module.ordinary_words,
        spans_module.words_of,
        spans_module.closed_words,
        spans_module.compile_words,
    )

    def change(families):
        monkeypatch.setattr(names_module, "FAMILIES", families)
        for each in caches:
            each.cache_clear()

    before = names_module.FAMILIES
    yield change
    change(before)


@dataclass(frozen=True)
class Talk(Task):
    """What a speaker says is given to the rule, quoted to a listener, and told to both."""

    roles = {"speaker": Role(), "listener": Role()}

    async def play(self, referee, speaker, listener):
        said = await referee.ask(speaker, "Who are you?")
        GIVEN.append(str(said))
        referee.tell([speaker, listener], f"It was said: {said}")
        await referee.ask(listener, referee.quote(said))
        return {speaker: len(said) % 2, listener: 1}

    def metrics(self, seats):
        return [Metric("points", 0, 1, 1)]


GIVEN = []


def overheard(text, record=None, roster=PLAYING, **options):
    """What the rule was given, what the listener has read, and the outcome."""
    GIVEN.clear()
    heard = []

    def listen(view):
        heard.append(view.text)
        return "fine"

    cast = {
        Seat("speaker"): Python(lambda view: text, {}, "a"),
        Seat("listener"): Python(listen, {}, "b"),
    }
    match = Match(
        Talk(), cast, quotation_key=QUOTATION_KEY, roster=roster, record=record, **options
    )
    outcome = asyncio.run(match.play())
    return GIVEN[0], "\n".join(heard), outcome


def test_others_read_the_mask_and_one_disclosure_is_one_violation():
    said = "I am Claude, yes, Claude, by Anthropic."
    given, heard, outcome = overheard(said)
    assert given == said
    assert "Claude" not in heard
    assert "Anthropic" not in heard
    assert [(each.kind, each.detail, each.outcome) for each in outcome.violations] == [
        ("identity", "Claude, Anthropic", "masked")
    ]


def test_a_name_of_the_item_reaches_the_others():
    _, heard, outcome = overheard("My name is Claude and I bake.", item={"hero": "Claude, a baker"})
    assert "My name is Claude and I bake." in heard
    assert outcome.violations == []


def test_names_are_found_once_and_replayed_from_the_record(change_table):
    """Whatever the table finds later: what is on record decides."""
    record = MemoryRecord()
    _, heard, _ = overheard("I am Claude 4, hello.", record)
    (call,) = [each for each in record.calls.values() if each.seat.role == "speaker"]
    assert [(span.start, span.end, span.family) for span in call.masked] == [(5, 13, "Claude")]
    record.calls = {
        place: each for place, each in record.calls.items() if each.seat.role == "speaker"
    }
    change_table((names_module.Family("Greeting", "hello"),))
    _, again, outcome = overheard("not asked", record, roster=NOBODY)
    assert again == heard
    assert [each.kind for each in outcome.violations] == ["identity"]


def test_words_on_record_are_replaced_wherever_they_stand():
    mask = MatchMask()
    mask.add("I am Claude.", [Span(5, 11, "Claude")])
    assert mask.hide("Claude said so; Claudette and claude did not.") == (
        f"{MASK} said so; Claudette and claude did not."
    )
    mask.add("GPT-4", [Span(0, 5, "GPT", ("judge",))])
    assert mask.hide("GPT-4", "writer") == "GPT-4"
    assert mask.hide("GPT-4", "judge") == mask.hide("GPT-4") == MASK


@pytest.mark.parametrize(
    ("said", "handed_on"),
    [
        (r'{"why": "I am \u0047PT-4"}', "I am GPT-4"),
        (r'{"why": "\u0447\u0430\u0442\u0433\u043f\u0442"}', "чатгпт"),
        ("I am &#71;PT-4", "I am GPT-4"),
        ("我是文心一言", json.dumps("我是文心一言")),
        ("我是文心一言", json.dumps("我是文心一言", ensure_ascii=False)),
        ("Hello,\nGPT-4 here", json.dumps("Hello,\nGPT-4 here")),
        ("I am Gemini 2.5\nPro", "I am Gemini 2.5 Pro"),
        ("I am Gemini 2.5 Pro", "I am Gemini\n  2.5 Pro"),
        ("I am **GPT**-4.1", "I am GPT-4.1"),
        ("I am <b>Gemini</b> 2.5 Pro", "I am Gemini 2.5 Pro"),
        ("ＧＰＴ", "GPT"),
        ("G\u00adPT", "GPT"),
    ],
)
def test_names_are_replaced_where_a_rule_decodes_or_encodes_or_wraps_a_reply(said, handed_on):
    mask = MatchMask()
    mask.add(said, find_spans(said, PLAYING))
    assert MASK in mask.hide(handed_on)
    assert mask.hide(handed_on).count(MASK) == 1
    for name in ("GPT", "чат", "文", "\\u6587", "Gemini", "2.5", "Pro"):
        assert name not in mask.hide(handed_on)


def test_a_name_is_hidden_from_all_roles_for_which_it_is_on_record():
    mask = MatchMask()
    mask.add("GPT-4", [Span(0, 5, "GPT", ("judge",))])
    mask.add("GPT-4", [Span(0, 5, "GPT", ("critic",))])
    assert mask.hide("GPT-4", "judge") == mask.hide("GPT-4", "critic") == MASK
    assert mask.hide("GPT-4", "writer") == "GPT-4"


def test_the_detail_of_a_violation_is_short():
    text = " ".join(f"GPT-{number}" for number in range(1000))
    assert len(describe_spans(text, find_spans(text, NOBODY))) <= 200


PIECES = [
    *(
        "I am Claude. ",
        "GPT-4.1: ",
        "我是文心一言",
        "<b>GPT</b>-4 ",
        "Gemini 2.5 Pro",
        "G P T - 4 ",
    ),
    *("Five coins. ", "Ａ", "а", "\n", '{"x": "', "&#71;PT", "Llama", "Meta", "-", "Claude Monet"),
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=6))
def test_outside_of_the_masks_every_character_is_as_it_was(parts):
    text = "".join(parts)
    spans = NameFinder(PLAYING, str).find(text)
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))
    at = 0
    for piece in mask_spans(text, spans).split(MASK):
        at = text.index(piece, at) + len(piece)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=4))
def test_not_one_byte_that_is_scored_is_changed(parts):
    said = clean_text(" ".join(parts)).strip()
    assume(said and "<think" not in said)
    assert overheard(said)[0] == said


@pytest.mark.parametrize("piece", [*PIECES, "a.b.", "<a<a", "GPT-4.1 and Claude and Gemini, "])
def test_the_search_takes_time_in_proportion_to_the_text(piece):
    def seconds(length):
        text = piece * (length // len(piece)) + " I am Claude."
        began = time.process_time()
        find_spans(text, PLAYING)
        return time.process_time() - began

    seconds(1000)
    assert min(seconds(40_000) for _ in range(2)) < 0.05 + 32 * min(  # quadratic would be 64
        seconds(5_000) for _ in range(3)
    )


def test_a_reply_in_json_is_read_as_it_was_written():
    said = json.dumps({"model": "gpt-4.1", "coins": 5})
    assert json.loads(shown(said)) == {"model": MASK, "coins": 5}


@dataclass(frozen=True)
class Choosing(Task):
    """Two seats choose at once; who cannot be read is asked again."""

    roles = {"a": Role(), "b": Role()}

    async def play(self, referee, a, b):
        pick = Choice("pick", ("x", "y"))
        await referee.ask((a, b), "Pick.", expect=pick, default="x")
        return {a: 1, b: 0}

    def metrics(self, seats):
        return [Metric("points", 0, 1, 1)]


def test_a_seat_may_be_told_its_own_words_that_are_hidden_in_the_reply_of_another(tmp_path):
    """Nothing names a model in the second reply, so nothing in it is hidden from its speaker."""
    result = run(
        Choosing(),
        models={"one": lambda view: "GPT-4 and Titan", "two": lambda view: '{"pick": "Titan"}'},
        store=tmp_path,
    )
    assert audit_run(result.ref, task=Choosing).breaches == []


def test_a_changed_table_changes_neither_what_was_shown_nor_the_audit(tmp_path, change_table):
    models = {
        name: lambda view: json.dumps({"reason": "I am GPT-4", "coins": 5}) for name in ("a", "b")
    }
    settings = {"rounds": 2, "feedback": "investments", "repeats": 2, "store": tmp_path}
    first = parley.run("public_goods", models, max_calls=3, **settings)
    assert first.state == "stopped"
    change_table((names_module.Family("Coins", "coins"),))
    assert audit_run(first.ref).breaches == []
    done = parley.resume(first.path, functions=models, max_calls=100)
    assert done.state == "done"
    found = audit_run(done.ref)
    assert found.breaches == []
    assert {each["masked"] for each in found.masked} == {"GPT-4"}


@dataclass(frozen=True)
class Speech(Task):
    """A speaker is heard by a listener and marked by judges."""

    roles = {
        "speaker": Role(),
        "listener": Role(0, 1, instrument=True),
        "judge": Role(0, 2, instrument=True),
    }

    def metrics(self, seats):
        return [Metric("mark", 0, 5, epsilon=1, judged=True)]

    async def play(self, referee, speaker, listener, judge):
        said = await referee.ask(speaker, "Who are you?")
        await referee.ask(listener, referee.quote(said, speaker))
        mark = Choice("mark", ("0", "5"))
        given = await referee.ask(judge, referee.quote(said, speaker), expect=mark, default="0")
        return {speaker: {"mark": float(next(iter(given.values())))}}


@pytest.mark.parametrize(("word", "left"), [("hello", "coins"), ("coins", MASK)])
def test_new_judges_do_not_read_what_was_hidden_under_the_table_of_then(
    tmp_path, change_table, word, left
):
    """Nor what today's table finds, which those who have read it may know."""
    heard = []

    def judge(view):
        heard.append(view.text)
        return '{"mark": "5"}'

    roles = {"listener": {"l": lambda view: "fine"}, "judge": {"j": judge}}
    models = {"a": lambda view: "I am GPT-4 and keep my coins."}
    first = run(Speech(), models, roles=roles, store=tmp_path)
    change_table((names_module.Family("New", word),))
    again = parley.rejudge(first.path, {"judge": {"k": judge}}, task=Speech(), store=tmp_path)
    assert again.state == "done"
    one, other = heard
    assert f"I am {MASK} and keep my coins." in one
    assert f"I am {MASK} and keep my {left}." in other
    for table in (names_module.FAMILIES, (names_module.Family("Else", "keep"),)):
        change_table(table)
        found = audit_run(again.ref, task=Speech)
        assert found.breaches == []
        assert {each["masked"] for each in found.masked} == {"GPT-4"}


def test_the_audit_finds_a_name_that_a_new_judge_has_read():
    call = RecordedCall(
        1, Seat("writer"), 0, b"", Reply("I am GPT-4"), 0.0, (Span(5, 10, "GPT", ("judge",)),)
    )
    said = {"round": 1, "kind": "reply", "sender": "writer", "audience": [], "attempt": 0}

    def heard_by(seat):
        ask = {"round": 2, "kind": "ask", "sender": None, "audience": [seat], "attempt": 0}
        return list(find_readable_names([said, {**ask, "content": "Rate: I am GPT-4"}], [call]))

    assert len(heard_by("judge.1")) == 1
    assert heard_by("writer") == []
