"""Self-disclosure is masked, whatever else bears a model's name stays."""

import asyncio
import json
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from parley import Metric, Role, Task
from parley.match.claims import (
    ALIASES,
    MAKER_SIGNS,
    MAKERS,
    MODELS,
    SHARED,
    SIGNS,
    WORD_OUTSIDE,
    claim_table,
    search_shortest_words,
    shortest_words,
)
from parley.match.evidence import RULES, find_evidence
from parley.match.folding import fold_for_search
from parley.match.lexicon import tag_text
from parley.match.masking import MASK, NamesInText, closed_words, mask_names
from parley.match.match import Match, clean_text
from parley.match.starts import EDGE, NAME, keys_of_row
from parley.participants.python import Python
from parley.rules.pool import Seat
from parley.testing.by_hand import QUOTATION_KEY

NOBODY = frozenset()
CLAIMS = """
As GPT-4, I invest 5.
As GPT-4, the best choice is 5.
as Claude, I'd pay
As ChatGPT I must decline.
I am Claude and I pay.
I'm Claude 3.5 Sonnet.
I’m “Gemini”, hello
I am **Qwen2.5-32B-Instruct**.
I am GPT-4o-mini
I'm ChatGPT, trained by OpenAI.
I'm GPT-3.5, a model trained by OpenAI.
I was developed by Anthropic.
I was created and trained by the team at Anthropic.
I have been built by Google
I am a large language model, trained by Google.
I am an AI model developed by DeepSeek.
I'm an AI assistant called Claude, made by Anthropic.
I am an OpenAI model.
I am a Claude model.
As an AI language model developed by OpenAI, I cannot.
My name is Gemini.
Speaking as Llama 3, I agree.
You're talking to ChatGPT.
I, Claude, accept.
This is GPT-4 speaking.
As Claude, a helpful assistant, I would say 5.
Claude here: 5.
Hi, GPT-4 here.
OpenAI created me to help.
My creators at Anthropic
Ich bin ChatGPT, ein von OpenAI entwickeltes Sprachmodell.
Als GPT-4 investiere ich fünf.
Je suis ChatGPT, un modèle développé par OpenAI.
En tant que ChatGPT, je refuse.
Soy ChatGPT, un modelo entrenado por OpenAI.
Eu sou o ChatGPT.
Sono Claude, sviluppato da Anthropic.
Я — ChatGPT, разработанный OpenAI.
我是ChatGPT，由OpenAI训练。
我是一个由OpenAI训练的语言模型
我是文心一言
我叫通义千问，是阿里云开发的
作为GPT-4，我投资5
私はChatGPTです
""".strip().splitlines()
NAMES = (
    "gpt",
    "claude",
    "gemini",
    "qwen",
    "llama",
    "deepseek",
    "openai",
    "anthropic",
    "google",
    "文心",
    "通义",
    "阿里",
)


@pytest.mark.parametrize("text", CLAIMS)
def test_a_claim_to_be_a_model_is_masked_and_named(text):
    hidden, leaks = mask_names(text, NOBODY)
    assert MASK in hidden
    assert leaks
    assert not any(name in hidden.lower() for name in NAMES), hidden


@pytest.mark.parametrize(
    "text",
    """
Claude Monet painted water lilies.
as Claude Monet said, I like light.
I am Claude Monet.
I met Claude.
I think Claude is right.
a text about Gemini
I am a Gemini.
As a Gemini, I am curious.
I am a llama in this story.
I am Philip.
I'm coherent.
I'm meta-cognitive.
I like palm trees and I am happy.
I use minimax search.
as OpenAI reported, prices fell.
as Google, Amazon and others do
I was impressed by Google.
I was reading a text published by Google.
I am using the framework developed by Google.
I am not sure whether GPT-4 was trained by OpenAI.
ChatGPT was trained by OpenAI.
The model was developed by OpenAI.
This is Google's policy.
Ich habe von Google gehört.
我认为这是谷歌的问题
我知道OpenAI训练了模型
我喜欢豆包
    """.strip().splitlines(),
)
def test_false_friends_stay(text):
    assert mask_names(text, NOBODY) == (text, [])


@pytest.mark.parametrize(
    ("name", "text", "hidden"),
    [
        ("Tulu-3-8B", "As Tulu-3-8B, I pay.", f"As {MASK}, I pay."),
        ("Tulu-3-8B", "I am tulu 3 8b!", f"I am {MASK}!"),
        ("secret-model", "I am secret-model-v2 and I pay.", f"I am {MASK} and I pay."),
        ("a+b(c", "I am a+b(c", f"I am {MASK}"),
        ("claude", "I am Claude Monet, I met Claude.", "I am Claude Monet, I met Claude."),
        ("x", "I am x and you are y", "I am x and you are y"),
        ("Tulu-3-8B", "What do you know about Tulu-3-8B?", "What do you know about Tulu-3-8B?"),
    ],
)
def test_the_names_of_the_cast_are_masked_too(name, text, hidden):
    assert mask_names(text, frozenset({name}))[0] == hidden


ZEBRA = frozenset({"zebra-9000"})
SIGNED = """
Signed: zebra-9000
Signed, zebra-9000
A fine text. Signed: zebra-9000.
-- zebra-9000
My answer is 5. — **zebra-9000**
Written by zebra-9000-0613
*Written by zebra-9000*
Author: zebra-9000
Signiert: zebra-9000
gez. zebra-9000
Geschrieben von zebra-9000
Signé : zebra-9000
Rédigé par zebra-9000
署名：zebra-9000
I am the model zebra-9000.
Ich bin zebra-9000.
Ich bin das Modell zebra-9000.
Ich bin ein Sprachmodell namens zebra 9000.
Ich bin das große Sprachmodell zebra-9000.
Ich bin der KI-Assistent zebra-9000.
Je suis le modèle zebra-9000.
Je suis un modèle de langage nommé zebra-9000.
Soy el modelo zebra-9000.
Sono il modello zebra-9000.
我是模型 zebra-9000。
我是大语言模型zebra-9000。
我是一个名叫zebra-9000的模型
""".strip().splitlines()


@pytest.mark.parametrize("text", SIGNED)
def test_what_is_signed_with_a_name_of_the_run_is_masked(text):
    for around in ("{}", "Well, this is it.\n{}", "Five coins.\n\n{}\n"):
        said = around.format(text)
        hidden, leaks = mask_names(said, ZEBRA)
        assert "zebra" not in hidden, hidden
        assert len(leaks) == 1
        inside, _ = mask_names(json.dumps({"reason": said, "coins": 5}, ensure_ascii=False), ZEBRA)
        assert "zebra" not in inside, inside
        assert json.loads(inside)["coins"] == 5


@pytest.mark.parametrize(
    "text",
    """
The zebra-9000 is a printer.
What do you know about zebra-9000?
Written by hand on a zebra-9000 printer.
Written by zebra-9000 users in Kenya.
The manual was written by zebra-9000 fans.
The contract was signed: zebra-9000 printers for all.
Ich bin das Modell, das den zebra-9000 trägt.
Ich bin der Meinung, dass zebra-9000 gut ist.
Ich bin das Kind neben dem zebra-9000.
Je suis le propriétaire de zebra-9000.
Je suis la personne qui a vu zebra-9000.
Two printers -- zebra-9000 and lion-1 -- were sold.
- zebra-9000
* zebra-9000
1. zebra-9000
我是模型师，喜欢zebra-9000
作者说：zebra-9000很好
I bought it -- zebra-9000 was cheap.
    """.strip().splitlines(),
)
def test_a_name_of_the_run_that_belongs_to_the_item_stays(text):
    for said in (text, f"Well.\n{text}\nYes.", json.dumps({"reason": text}, ensure_ascii=False)):
        assert mask_names(said, ZEBRA) == (said, [])


@pytest.mark.parametrize(
    "text",
    [
        "-- zebra",
        "Written by Zebra",
        "Lions\n-- zebra",
        "— Zebra",
        "Ich bin der Titan.",
        "Je suis la nova.",
    ],
)
def test_a_name_that_is_a_plain_word_signs_nothing(text):
    assert mask_names(text, frozenset({"zebra"})) == (text, [])


@pytest.mark.parametrize(
    "piece",
    [
        "-- ",
        "Signed: ",
        "Written by zebra-9000 ",
        "— zebra-9000\n",
        "我是模型",
        "Ich bin das Modell ",
        '\n*_"',
    ],
)
def test_no_text_keeps_the_mask_busy(piece):
    began = time.process_time()
    mask_names("zebra-9000 " + piece * (50_000 // len(piece)), ZEBRA)
    assert time.process_time() - began < 8  # a second or two


@pytest.mark.parametrize(
    "text", ["\ue000 I am Claude \ue003", "\ue001\ue002 as GPT-4, I", "I am \ue000 and Claude"]
)
def test_signs_of_no_script_do_not_confuse_the_search(text):
    hidden, leaks = mask_names(text, NOBODY)
    assert (
        hidden == text.replace("Claude", MASK).replace("GPT-4", MASK) if leaks else hidden == text
    )


def test_only_the_name_is_taken_out_and_the_claim_is_told():
    assert mask_names("Well. As GPT-4, I pay 5.", NOBODY) == (
        f"Well. As {MASK}, I pay 5.",
        ["As GPT-4"],
    )


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(CLAIMS) | st.text(max_size=20), max_size=5),
    st.sampled_from(["\n", "\n\n", "\t", '"', "\\"]),
)
def test_a_json_reply_stays_one_and_its_claims_are_masked_inside(said, between):
    text = between.join(said)
    reply = json.dumps({"reason": text, "coins": 5}, ensure_ascii=False)
    read = json.loads(mask_names(reply, NOBODY)[0])
    assert read["coins"] == 5
    if not any(claim in text for claim in CLAIMS):
        assume(mask_names(text, NOBODY)[1] == [])
        assert read["reason"] == text


@pytest.mark.parametrize("before", ["Fine.\n", "Fine.\n\n", 'He said "yes".\r\n', "\t"])
def test_a_claim_after_a_line_break_inside_json_is_masked(before):
    for claim in CLAIMS[:10]:
        hidden, _ = mask_names(json.dumps({"reason": before + claim}), NOBODY)
        assert not any(name in hidden.lower() for name in NAMES), hidden


@settings(deadline=None)
@given(st.text(), st.frozensets(st.text(min_size=1, max_size=9), max_size=3))
def test_a_text_without_any_name_is_unchanged(text, names):
    known = (*MODELS, *SHARED, *MAKERS, *ALIASES)
    assume(not any(name.lower() in text.lower() for name in (*known, *names)))
    assert mask_names(text, names) == (text, [])


TABLE = frozenset({"gpt-4.1", "claude-2"})
CORPUS = Path(__file__).parent.parent / "data" / "masking"


def sentences(name):
    """The lines of a file, with the characters that a line cannot show."""
    lines = (CORPUS / name).read_text(encoding="utf-8").splitlines()
    return [
        re.sub(r"\{([0-9a-f]{4})\}", lambda code: chr(int(code[1], 16)), line).replace("{nl}", "\n")
        for line in lines
        if not line.startswith("%")
    ]


def names_left(text):
    """Names that a reader still finds, however they are written."""
    folded = fold_for_search(text, closed_words(TABLE)).text.lower()
    return [name for name in ("gpt", "claude", "openai", "anthropic") if name in folded]


def test_every_form_that_folding_shows_is_masked():
    wrong = []
    for text in sentences("forms.txt"):
        hidden, leaks = mask_names(text, TABLE)
        if (
            not names_left(text)
            or names_left(hidden)
            or not leaks
            or any(leak not in text for leak in leaks)
        ):
            wrong.append((text, hidden, leaks))
    assert not wrong, "\n".join(map(repr, wrong))


def test_no_name_of_a_claim_is_left():
    wrong = []
    for line in sentences("claims.txt"):
        text, _, names = line.partition(" ||| ")
        hidden, leaks = mask_names(text, TABLE)
        left = [name for name in names.split(";") if hidden.count(name) >= text.count(name)]
        if left or any(leak not in text for leak in leaks):
            wrong.append((text, hidden, left, leaks))
    assert not wrong, "\n".join(map(repr, wrong))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("I am Claude. Anthropic is small.", f"I am {MASK}. {MASK} is small."),
        ("I am Claude. Google is big.", f"I am {MASK}. Google is big."),
        ("I am Claude. Claude Monet is dead.", f"I am {MASK}. Claude Monet is dead."),
        (f"I am Claude. {'So. ' * 100}Anthropic", f"I am {MASK}. {'So. ' * 100}Anthropic"),
        ("Claude is by Anthropic.", "Claude is by Anthropic."),
    ],
)
def test_near_a_masked_name_its_family_is_masked_too(said, shown):
    assert mask_names(said, TABLE)[0] == shown


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gemini", "Name: Gemini\nMaker: Google"),
        ("grok", "This is Grok from xAI."),
    ],
)
def test_a_maker_beside_it_shows_that_a_name_is_a_models(name, text):
    assert name not in mask_names(text, TABLE)[0].lower()
    without = re.sub("(?:, |\nMaker: | from )(?:Google|xAI)", "", text)
    assert mask_names(without, TABLE) == (without, [])


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("We Claudes never lie.", f"We {MASK}s never lie."),
        ("We feed llamas here.", "We feed llamas here."),
        ("I was made by Anthropic, as Sonnet.", f"I was made by {MASK}, as {MASK}."),
        ("I am Sonnet 18.", "I am Sonnet 18."),
    ],
)
def test_plurals_are_names_with_a_capital_and_versions_beside_their_family(said, shown):
    assert mask_names(said, NOBODY)[0] == shown


def test_what_is_no_claim_stays_as_it_is():
    wrong = []
    for text in sentences("innocent.txt"):
        reply = json.dumps({"reason": text}, ensure_ascii=False)
        for said in (text, f"Well.\n{text}\nYes.", reply):
            hidden, leaks = mask_names(said, TABLE)
            if (hidden, leaks) != (said, []):
                wrong.append((said, hidden, leaks))
    assert not wrong, "\n".join(map(repr, wrong))


class EveryRow(NamesInText):
    """The search with all rows at all places."""

    def _match_rows(self, lowered, start, end):
        for pattern in claim_table().patterns:
            yield from pattern.finditer(self._signed, start, end)


def test_rows_that_are_tried_where_they_can_begin_find_all_that_they_would_find():
    lines = [
        line for name in ("claims.txt", "forms.txt", "innocent.txt") for line in sentences(name)
    ]
    for line in lines[::7]:
        text = line.partition(" ||| ")[0]
        assert NamesInText(text, TABLE).hidden == EveryRow(text, TABLE).hidden, text


@pytest.mark.parametrize(
    ("row", "keys"),
    [
        (r"(?<!\w)my name is @speaks", {"my "}),
        ("(?:I am|Im|I'm) @own", {"i ", "im"}),
        ("(?:the )?(?:author|writers?) @own", {"the ", "autho", "write"}),
        (r"(?:\A|(?<=\n))by @own", {EDGE}),
        (r"(?<!\w)@maker(?= made me)", {NAME}),
        ("我是@own", {"我"}),
        (r"[a-z]{1,9} @own", None),
        (r"(?:the )?\w @own", None),
    ],
)
def test_a_row_is_filed_under_what_it_can_begin_with(row, keys):
    assert keys_of_row(row) == keys


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("I was trained by X.", "IBKbC."),
        ("Ich wurde von X trainiert.", "IBbCK."),
        ("J'ai été entraîné par X.", "IBBKbC."),
        ("Fui entrenado por X.", "AKbC."),
        ("Меня обучили в X.", "OKPC."),
        ("我由X训练。", "IbCK."),
        ("私はXによって訓練", "ICbK"),
        ("저는 X가 훈련한", "ICPK"),
        ("I'm “X”\n— it's mine", 'IA"C"¶—tsm'),
    ],
)
def test_words_of_all_languages_get_the_same_tags(text, tags):
    signed = text.replace("X", SIGNS["lab"])
    assert tag_text(signed, 0, len(signed), MAKER_SIGNS).tags == tags


def test_every_rule_is_shown_by_a_sentence_of_the_corpus(monkeypatch):
    """A rule that no sentence of the corpus fits says nothing about what is masked."""
    unseen = dict.fromkeys(each.about for each in RULES)
    search = find_evidence

    def spy(tagged, number, kind, labels):
        before, after = tagged.tags[:number], tagged.tags[number + 1 :]
        for each in RULES:
            if kind in each.kinds and each.after.match(after) and each.before.search(before):
                unseen.pop(each.about, None)
        return search(tagged, number, kind, labels)

    monkeypatch.setattr("parley.match.masking.find_evidence", spy)
    monkeypatch.setattr(NamesInText, "_match_rows", lambda *_: iter(()))
    for line in (*sentences("claims.txt"), *sentences("forms.txt")):
        mask_names(line.partition(" ||| ")[0], TABLE)
    assert list(unseen) == []


@pytest.mark.parametrize(
    ("quoted", "plain"),
    [
        ('The founder says: "We at Mistral AI trust it."', "We at Mistral AI trust it."),
        ("« Je m'appelle Claude », dit-il, et je ris.", "Je m'appelle Claude, et je ris."),
        ("I am Claude, the gardener says.", "I am Claude, and I say so."),
        ("「私はクロードです」と彼は言いました。", "私はクロードです。"),
    ],
)
def test_what_somebody_else_says_stays(quoted, plain):
    assert mask_names(quoted, TABLE) == (quoted, [])
    assert MASK in mask_names(plain, TABLE)[0]


def test_a_name_that_the_task_brings_in_stays():
    said = "My name is Claude and I am a baker. I am GPT-4.1."
    assert mask_names(said, TABLE, frozenset({"claude"}))[0] == said.replace("GPT-4.1", MASK)


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from([*sentences("forms.txt"), *sentences("innocent.txt")])
        | st.text(max_size=30),
        max_size=4,
    )
)
def test_outside_of_the_masks_every_character_is_as_it_was(parts):
    text = "\n".join(parts)
    hidden, leaks = mask_names(text, TABLE)
    if not leaks:
        assert hidden == text
    at = 0
    for piece in hidden.split(MASK):  # all that is shown stands in what was said, in its order
        at = text.index(piece, at) + len(piece)


@pytest.mark.parametrize(
    "piece",
    [
        "Five coins are enough for today, I think. ",
        "**Five** coins are `enough` for <b>today</b>, I think. ",
        "五枚硬币今天够了，我想。",
        "Cinq pièces suffisent aujourd’hui, je crois… ",
        "Пяти монет на сегодня хватит. ",
        "G P T - 4 . 1 ",
        "ＧＰＴ",
        "<b>G</b>",
        "a.b.",
        "&#71;",
        "I am GPT-4.1. ",
        "GPT-4.1: ",
        "<a<a",
    ],
)
def test_masking_takes_time_in_proportion_to_the_text(piece):
    def seconds(length):
        text = piece * (length // len(piece)) + " I am Claude."
        began = time.process_time()
        mask_names(text, TABLE)
        return time.process_time() - began

    seconds(1000)
    assert min(seconds(40_000) for _ in range(2)) < 0.05 + 32 * min(  # quadratic would be 64
        seconds(5_000) for _ in range(3)
    )


@dataclass(frozen=True)
class Talk(Task):
    """What a speaker says is given to the rule, quoted to a listener, and told to both."""

    roles = {"speaker": Role(), "listener": Role()}

    async def play(self, referee, speaker, listener):
        said = await referee.ask(speaker, "Who are you?")
        GIVEN.append(str(said))
        referee.tell([speaker, listener], f"It was said in capitals: {said.upper()}")
        await referee.ask(listener, referee.quote(said))
        return {speaker: len(said) % 2, listener: 1}

    def metrics(self, seats):
        return [Metric("points", 0, 1, 1)]


GIVEN = []


def overheard(text, **options):
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
    outcome = asyncio.run(
        Match(Talk(), cast, quotation_key=QUOTATION_KEY, names=TABLE, **options).play()
    )
    return GIVEN[0], heard[0], outcome


def test_others_read_the_mask_and_the_leak_is_recorded():
    given, heard, outcome = overheard("I am Claude.")
    assert given == "I am Claude."
    assert "claude" not in heard.lower()
    assert MASK in heard
    assert [(each.kind, each.detail, each.outcome) for each in outcome.violations] == [
        ("identity", "I am Claude", "masked")
    ]


def test_the_rule_is_given_what_was_said_and_nobody_else_reads_the_name():
    wrong = []
    for text in sentences("forms.txt"):
        given, heard, outcome = overheard(text)
        told = heard.partition("said, which is material")[2]
        kinds = {each.kind for each in outcome.violations}
        if given != text.strip() or names_left(told) or kinds != {"identity"}:
            wrong.append((text, given, told, kinds))
    assert not wrong, "\n".join(map(repr, wrong))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from(sentences("forms.txt")) | st.text(max_size=30), max_size=3))
def test_not_one_byte_that_is_scored_is_changed(parts):
    said = clean_text(" ".join(parts)).strip()
    assume(said and "<think" not in said)
    assert overheard(said)[0] == said


def test_a_name_of_the_item_reaches_the_others():
    _, heard, outcome = overheard("My name is Claude and I bake.", item={"hero": "Claude, a baker"})
    assert "My name is Claude and I bake." in heard
    assert outcome.violations == []


@pytest.mark.parametrize(
    "text",
    [
        'The bot replied "I am ChatGPT, a model trained by OpenAI", which I had expected.',
        "Je suis d'accord : ni OpenAI ni Google ne devraient écrire la loi.",
        "I like neither Claude nor Gemini.",
    ],
)
def test_what_is_quoted_or_denied_needs_stronger_words_around_it(text):
    assert mask_names(text, TABLE) == (text, [])


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("I pass. Signed, the artist formerly known as Bard.", 1),
        ("मैं ChatGPT से कम ही पूछता हूँ।", 0),
    ],
)
def test_words_around_a_name_count(text, claims):
    assert len(mask_names(text, TABLE)[1]) == claims


def test_long_replies_are_searched_beside_the_event_loop_and_each_reply_once(monkeypatch):
    searched, search = [], NamesInText.__init__

    def note(self, text, names, stay=frozenset(), only=None):
        if only is None and not stay and text in replies:
            searched.append((len(text), threading.current_thread() is threading.main_thread()))
        search(self, text, names, stay, only)

    replies = ["I am Claude. " * 10, "I am Claude. " * 2_000]
    monkeypatch.setattr(NamesInText, "__init__", note)
    for reply in replies:
        _, heard, _ = overheard(reply)
        assert "Claude" not in heard
    assert searched == [(130, True), (26_000, False)]


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ['"', "“", "”", "«", "»", "'", " ", "\n", "I am Claude", "he said", "(so)", "12"]
        ),
        max_size=30,
    )
)
def test_a_claim_is_reported_if_it_stands_in_some_quotation(parts):
    text = "".join(parts)
    found = NamesInText(text + " Claude", NOBODY)
    signed = found._signed

    def looks_reported(start, place):
        for begin, end in found._quotations:
            if begin <= start and place < end:
                return WORD_OUTSIDE.search(signed[:begin] + signed[end:]) is not None
        return False

    for start in range(0, len(signed), 3):
        for place in range(start, len(signed), 5):
            assert found._is_reported(start, place) == looks_reported(start, place)


PIECES = [
    *[
        "ti",
        "tan",
        "er",
        "nie",
        "so",
        "nar",
        "st",
        "ral",
        "tu",
        "lu",
        "lar",
        "hua",
        "wei",
        "gp",
        "t",
        "cla",
        "ude",
        "met",
        "a",
        "op",
        "en",
        "ai",
        "o1",
        "-",
        ".",
        "yi",
    ],
    *(" ", "\n", "e", "s", "open ai", "gémini", "我", "智谱", "ja", "mistr", "allen ", "institute"),
]


def test_the_quick_search_finds_what_any_of_its_words_is_in():
    names = frozenset({"bluebird-7b", "a.b(c"})
    for ascii_only in (True, False):
        words = shortest_words(names, ascii_only)
        search = search_shortest_words(names, ascii_only)
        for word in words:
            assert search.has_word(f"so {word}x")
            cut = f"{word[:-1]} {word[1:]}"
            assert search.has_word(cut) == any(each in cut for each in words)


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_the_quick_search_finds_the_words_in_any_text(pieces):
    text = "".join(pieces)
    for names in (frozenset(), frozenset({"titan-a", "stun"})):
        words = shortest_words(names, text.isascii())
        search = search_shortest_words(names, text.isascii())
        assert search.has_word(text) == any(word in text for word in words)
