"""Self-disclosure: a reply that says which model speaks is masked before anybody else reads it.

Only claims about the speaker are masked ("as GPT-4, I …", "I am Claude"); a name that belongs to
the item stays. What was masked is recorded, so that false hits are seen.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import cache, lru_cache

MASK = "[name withheld]"
# all else is a gap
LETTERS = bytes(ord(chr(n).lower()) if n < 128 and chr(n).isalpha() else 32 for n in range(256))
# Names that mean a model wherever they stand.
MODELS = """
    chatgpt gpt deepseek qwen 通义千问 文心一言 baichuan chatglm internlm 讯飞星火 doubao 豆包 hunyuan 混元 mixtral codestral
    smollm olmo dbrx wizardlm command-r nemotron
""".split()  # noqa: E501, SIM905
# Names that people, stars, animals and things bear too.
SHARED = """
    claude gemini gemma llama grok phi nova titan copilot mistral falcon bard palm ernie kimi alpaca vicuna glm granite
""".split()  # noqa: E501, SIM905
# Those who make models: nobody speaks under these names, but one may say to come from there.
MAKERS = """
    openai anthropic deepmind 深度求索 alibaba 阿里巴巴 阿里云 zhipu 智谱 moonshot 月之暗面 minimax xai 01.ai cohere meta
    google 谷歌 microsoft 微软 nvidia amazon baidu 百度 tencent 腾讯 bytedance 字节跳动
""".split()  # noqa: E501, SIM905

VERSION = (
    r"(?:[ .-]?(?:[vr]?\d[a-z0-9]{0,9}+(?:\.\d{1,3}+)?|opus|sonnet|haiku|pro|flash|ultra|turbo|"
    r"mini|nano|max|chat|coder)\b){0,4}+"
)
# In the text that is searched one sign stands for each name; the last is for such signs as were
# there before.
SIGNS = {"own": "\ue000", "model": "\ue001", "shared": "\ue002", "maker": "\ue003", "odd": "\ue004"}
OWN, MODEL, MAKER, SPEAKS, ANYBODY = (
    f"(?P<name>[{signs}])"
    for signs in ("\ue000", "\ue000\ue001", "\ue003", "\ue000-\ue002", "\ue000-\ue003")
)
PERSON = r"(?P<name>\ue002)(?!\s+(?-i:[A-Z])[a-z])"  # "I am Claude Monet" is somebody else

# The patterns are written with plain signs: a space is a gap of any kind, ~ is a gap or none, ' is
# any apostrophe.
SPEAKER = (
    "(?:(?<![a-z])(?:I am|I'm|my name is|call me|speaking as|you're talking to|you are talking "
    "to|ich bin|ich heiße|je suis|je m'appelle|soy|me llamo|sou|sono|mi chiamo|я|меня зовут)(?: "
    "[—–-]|:)? |(?:我是|我叫|我的名字是|作为|私は|저는)~)"
)
SORTS = (
    "actually|really|just|indeed|the|an?|AI|large|language|model|assistant|chatbot|LLM|version "
    "of|called|named|based "
    "on|eine?|KI|sprachmodell|namens|une?|modèle|nommé|el|modelo|asistente|assistente|llamado|"
    "chamado|un|uma?|o"
)
SORT = f"(?:(?:{SORTS})(?![a-z]),? |(?:一个|一款|名为|叫做|人工智能|语言模型|助手)~){{0,9}}"
# What more may stand before a name that surely is a model's; before one that people bear too it
# would hit too much.
MODELLED = (
    f"(?:(?:{SORTS}|der|die|das|große[srn]?|(?:KI-)?modell|(?:KI-)?assistent(?:in)?|le|la|grand|de "
    f"langage|de langue|IA|appelée?|"
    "de lenguaje|de linguagem|il|modello|linguistico|chiamato)(?![a-z]),? |"
    "(?:这个|一个|一款|名为|名叫|叫做|人工智能|AI|大型|大语言模型|大模型|语言模型|模型|助手)~){0,9}"
)
# A line of its own, and the end of a text, as it comes or inside JSON.
LINE, STOP = r"(?:\A|(?<=[\n\"“])|(?<=\\[nr])|(?<=[.!?]) )[*_>(`]{0,3}~", r"(?=[*_`.!)。]{0,3}"
LINE_ENDS, TEXT_ENDS = rf"{STOP}[^\S\n]{{0,4}}(?:\Z|[\n\"”\\]))", rf"{STOP}~(?:\Z|[\"”]))"
SIGNED = (
    "(?:signed|signature|signiert|unterschrift|gezeichnet|signée?|firmado|assinado)(?: by| von| "
    "par| por)?~[:,]?|gez[.]"
)
WRITTEN = (
    "(?:(?:written|answered|submitted|composed|generated|translated) "
    "by|(?:geschrieben|verfasst|übersetzt|erstellt) von|(?:écrit|rédigé|traduit|généré) "
    "par|(?:escrito|escrita) por|author~:|autor~:|auteur~:)"
)
MADE = (
    "(?:trained|developed|created|made|built|designed|programmed|released|engineered|powered)(?: "
    "and [a-z]{1,12})? (?:by|at)"
)
FAIT = (
    "(?:entraîn|développ|cré|conç|desarroll|entren|desenvolv|trein|svilupp|addestr)[a-zé]{1,9} "
    "(?:par|por|pela|da)"
)
FROM = (
    f"(?:{MADE}|{FAIT}|von|(?:разработ|созда|обуч)[а-я]{{1,9}}|(?:model|assistant|AI|LLM|chatbot) "
    f"(?:by|from|of)) "
    "(?:the [a-z]{1,12} (?:at|of) )?"
)
WITHIN = r"(?:[^.!?。！？\n]|\.(?=\w)){0,80}?"  # further on in the same sentence
SELF = "(?=~[,:;—–-]?~(?:I|my|me|ich|mein|je|j'|yo|eu)(?![a-z])| [a-zäöü]{1,20} ich )"
KIND = "(?= (?:AI|model|assistant|language|chatbot)(?![a-z]))"
MARKS = r"(?:[\"'“”*_`«「『《\\]|\\u201[89cd]){0,4}"
CLAIMS = (
    # who the speaker is
    f"{SPEAKER}{MODELLED}{MARKS}{MODEL}",
    f"{SPEAKER}{SORT}{MARKS}{ANYBODY}{KIND}",
    rf"{SPEAKER}{SORT}(?<!\sa\s)(?<!\san\s){MARKS}{PERSON}",  # "I am a Gemini" is born in June
    f"(?<![a-z])(?:as|als|en tant que|como) {MARKS}{SPEAKS}{MARKS}{SELF}",
    f"(?<![a-z])as {MARKS}{MODEL}(?=~,)",
    f"(?<![a-z])I, {SPEAKS}(?=,)",
    f"(?<![a-z])as {MARKS}{SPEAKS}(?=, an? {WITHIN}, I(?![a-z]))",
    rf"(?:\A~|(?<=[.!?]) |(?<![a-z])(?:hi|hello|hey),? ){MARKS}{SPEAKS}(?= here(?![a-z]))",
    f"(?<![a-z])this is {SPEAKS}(?= (?:speaking|here|writing)(?![a-z]))",
    # how a text is signed; only a name of this run, and one that is no plain word, is taken for
    # that of its author
    f"{LINE}(?:{SIGNED}) {MARKS}{MODEL}{MARKS}{LINE_ENDS}",
    f"{LINE}{WRITTEN} {MARKS}{OWN}{MARKS}{LINE_ENDS}",
    f"{LINE}(?:签名|署名|落款|作者|撰写)~[:：]~{MARKS}{OWN}{MARKS}{LINE_ENDS}",
    f"{LINE}(?:--|—|―){{1,2}}~{MARKS}{OWN}{MARKS}{TEXT_ENDS}",
    # where the speaker comes from
    f"(?<![a-z])I (?:was|have been)(?: [a-z]{{1,12}}){{0,2}}? {FROM}{ANYBODY}",
    "(?<![a-z])(?:I am|I'm|ich bin|ich wurde|je suis|soy|sou|sono|я) (?:[—–-] )?"
    f"(?:(?:an?|the|eine?|une?|uma?) |{MARKS}[\ue000-\ue003]){WITHIN}{FROM}{ANYBODY}",
    f"(?<![a-z])as an? {WITHIN}{FROM}{ANYBODY}{SELF}",
    f"我(?:[是叫][^。！？\n]{{0,30}}?)?[由是]?~{ANYBODY}[^。，,]{{0,6}}?(?:开发|训练|研发|创建|推出|打造)",
    f"{ANYBODY} (?:trained|developed|created|made|built) me(?![a-z])",
    f"(?<![a-z])my (?:creators?|developers?|makers?)(?: at|,| is| are) {MAKER}",
)


@cache
def claim_patterns() -> list[re.Pattern[str]]:
    """The patterns for text as it comes: also inside JSON, where line breaks and quotes are written
    with a backslash."""
    spelled = []
    for pattern in CLAIMS:
        pattern = re.sub(r"(?<=[a-zA-Z])'", r"(?:['’]|\\\\u2019)", pattern)
        pattern = pattern.replace(" ", r"(?:\s|\\[nrt]){1,4}+").replace(
            "~", r"(?:\s|\\[nrt]){0,4}+"
        )
        pattern = pattern.replace("(?<![a-z])", r"(?:(?<![a-z])|(?<=\\[nrt]))")
        spelled.append(re.compile(pattern, re.IGNORECASE))
    return spelled


@lru_cache(maxsize=256)
def searched_words(names: frozenset[str]) -> tuple[str, ...]:
    own = {name.lower() for name in names if len(name) >= 3}
    spaced = {re.sub("[-_]", " ", name) for name in own}
    return tuple(
        dict.fromkeys((*sorted(own | spaced, key=len, reverse=True), *MODELS, *SHARED, *MAKERS))
    )


@lru_cache(maxsize=256)
def name_pattern(names: frozenset[str]) -> re.Pattern[str]:
    """Every name, those of this cast included, under the kind that it belongs to."""
    plain = [word for word in searched_words(names) if word not in SHARED and word not in MAKERS]
    own = [word for word in plain if word not in MODELS and not word.isalpha()]
    kinds = (
        *(
            [rf"(?P<own>{any_of(own)}{VERSION}(?:-[a-z0-9.]{{1,20}}+){{0,4}}+(?![a-z0-9]))"]
            if own
            else []
        ),
        rf"(?P<model>{any_of(plain)}{VERSION}(?:-[a-z0-9.]{{1,20}}+){{0,4}}+(?![a-z0-9]))",
        rf"(?P<shared>{any_of(SHARED)}{VERSION}(?![a-z0-9]|-[a-z]))",
        rf"(?P<maker>{any_of(MAKERS)}(?![a-z0-9]|-[a-z]))",
    )
    begins = r"(?:(?<![a-z0-9])|(?<=\\[nrt])|(?<=\\u201[89cd]))"
    return re.compile(rf"{begins}(?:{'|'.join(kinds)})|(?P<odd>[\ue000-\ue004])", re.IGNORECASE)


def any_of(words: Iterable[str]) -> str:
    return "(?:" + "|".join(map(re.escape, words)) + ")"


def may_hold_name(text: str, names: frozenset[str]) -> bool:
    """Whether a text can hold a name at all. Almost none does, so this check has to be fast."""
    if text.isascii() and "\\" not in text:
        words, others = plain_words(names)
        if not words.isdisjoint(text.encode().translate(LETTERS).split()):
            return True
        return bool(others) and any(name in text.lower() for name in others)
    lowered = text.lower()
    return any(name in lowered for name in searched_words(names))


@lru_cache(maxsize=256)
def plain_words(names: frozenset[str]) -> tuple[frozenset[bytes], tuple[str, ...]]:
    """The longest word of every name, and those names that have none."""
    looked_for = [name for name in searched_words(names) if name.isascii()]
    longest = {
        name: max(name.encode().translate(LETTERS).split(), key=len, default=b"")
        for name in looked_for
    }
    return frozenset(filter(None, longest.values())), tuple(
        name for name, word in longest.items() if not word
    )


def mask_names(text: str, names: frozenset[str]) -> tuple[str, list[str]]:
    """Mask claims of identity in a reply; return the text that others may read, and the claims."""
    if not may_hold_name(text, names):
        return text, []
    found: list[str] = []

    def sign(name: re.Match[str]) -> str:
        found.append(name[0])
        return SIGNS[name.lastgroup or "odd"]

    signed = name_pattern(names).sub(sign, text)
    places = [place.start() for place in re.finditer("[\ue000-\ue004]", signed)]
    hidden: dict[int, tuple[int, int]] = {}  # the names to hide, each with the span of its claim
    for pattern in claim_patterns():
        for claim in pattern.finditer(signed):
            hidden.setdefault(bisect_left(places, claim.start("name")), claim.span())

    def restored(start: int, end: int, shown: list[str]) -> str:
        words = iter(shown[bisect_left(places, start) : bisect_left(places, end)])
        return re.sub("[\ue000-\ue004]", lambda _: next(words), signed[start:end])

    leaks = [restored(*span, found) for _, span in sorted(hidden.items())]
    return restored(
        0, len(signed), [MASK if n in hidden else name for n, name in enumerate(found)]
    ), leaks
