"""Self-disclosure: a reply that says which model speaks is masked before anybody else reads it.

Only claims about the speaker are masked ("as GPT-4, I …", "I am Claude"); a name that belongs to the item stays.
What was masked is recorded, so that false hits are seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

MASK = "[name withheld]"
# Names that mean a model wherever they stand.
MODELS = (
    "chatgpt gpt deepseek qwen 通义千问 文心一言 baichuan chatglm internlm 讯飞星火 doubao 豆包 hunyuan 混元 mixtral codestral "
    "smollm olmo dbrx wizardlm command-r nemotron"
).split()
# Names that people, stars, animals and things bear too.
SHARED = (
    "claude gemini gemma llama grok phi nova titan copilot mistral falcon bard palm ernie kimi alpaca vicuna glm granite"
).split()
# Those who make models: nobody speaks under these names, but one may say to come from there.
MAKERS = (
    "openai anthropic deepmind 深度求索 alibaba 阿里巴巴 阿里云 zhipu 智谱 moonshot 月之暗面 minimax xai 01.ai cohere meta google "
    "谷歌 microsoft 微软 nvidia amazon baidu 百度 tencent 腾讯 bytedance 字节跳动"
).split()

# The patterns are written with plain signs: a space is a gap of any kind, ~ is a gap or none, ' is any apostrophe.
SPEAKER = (
    "(?<![a-z])(?:I am|I'm|my name is|call me|speaking as|you're talking to|you are talking to|ich bin|ich heiße|je suis|"
    "je m'appelle|soy|me llamo|sou|sono|mi chiamo|я|меня зовут)(?: [—–-]|:)? |(?:我是|我叫|我的名字是|作为|私は|저는)~"
)
SORT = (
    "(?:(?:actually|really|just|indeed|the|an?|AI|large|language|model|assistant|chatbot|LLM|version of|called|named|based on|"
    "eine?|KI|sprachmodell|namens|une?|modèle|nommé|el|modelo|asistente|assistente|llamado|chamado|un|uma?|o)(?![a-z]),? |"
    "(?:一个|一款|名为|叫做|人工智能|语言模型|助手)~)*"
)
MADE = "(?:trained|developed|created|made|built|designed|programmed|released|engineered|powered)(?: and [a-z]+)? (?:by|at)"
FAIT = "(?:entraîn|développ|cré|conç|desarroll|entren|desenvolv|trein|svilupp|addestr|разработ|созда|обуч)\\w+(?: par| por| pela| da|)"
FROM = f"(?:{MADE}|{FAIT}|von|(?:model|assistant|AI|LLM|chatbot) (?:by|from|of)) (?:the [a-z]+ (?:at|of) )?"
WITHIN = r"(?:[^.!?。！？\n]|\.(?=\w)){0,80}?"  # further on in the same sentence
SELF = "(?=~[,:;—–-]?~(?:I|my|me|ich|mein|je|j'|yo|eu)(?![a-z])| [a-zäöü]+ ich )"
MARKS = r"[\"'“”*_`«「『《\\]*"
VERSION = r"(?:[ .-]?(?:[vr]?\d[a-z0-9]*(?:\.\d[a-z0-9]*)*|opus|sonnet|haiku|pro|flash|ultra|turbo|mini|nano|max|chat|coder)\b)*"
KIND = "(?= (?:AI|model|assistant|language|chatbot)(?![a-z]))"


@lru_cache(maxsize=256)
def claims(names: frozenset[str]) -> tuple[tuple[str, ...], tuple[re.Pattern[str], ...]]:
    """The words worth a closer look, and the patterns that take it, for a cast that bears these names."""
    own = sorted({name.lower() for name in names if len(name) >= 3}, key=len, reverse=True)
    words = tuple(dict.fromkeys((*own, *MODELS, *SHARED, *MAKERS)))
    model = rf"(?:{either((*own, *MODELS))}{VERSION}(?:-[a-z0-9.]+)*(?![a-z0-9]))"
    shared = rf"(?:{either(SHARED)}{VERSION}(?![a-z0-9]|-[a-z]))"
    maker = rf"(?:{either(MAKERS)}(?![a-z0-9]|-[a-z]))"
    person = rf"(?:{shared}(?!\s+(?-i:[A-Z])[a-z]))"  # "I am Claude Monet" is somebody else
    anybody = f"(?:{model}|{shared}|{maker})"
    patterns = (
        # where the speaker comes from; before the name itself, which these patterns lean on
        f"(?<![a-z])I (?:was|have been)(?: [a-z]+){{0,2}}? {FROM}(?P<name>{anybody})",
        f"(?:(?<![a-z])(?:I am|I'm|ich bin|ich wurde|je suis|soy|sou|sono|я)|我是)~(?:(?:an?|the|eine?|une?|uma?) |{MARKS}{anybody})"
        f"{WITHIN}{FROM}(?P<name>{anybody})",
        f"(?<![a-z])as an? {WITHIN}{FROM}(?P<name>{anybody}){SELF}",
        f"我(?:[是叫]{WITHIN})?[由是]?~(?P<name>{anybody})[^。，,]{{0,6}}?(?:开发|训练|研发|创建|推出|打造)",
        f"(?<![a-z])(?P<name>{anybody}) (?:trained|developed|created|made|built) me(?![a-z])",
        f"(?<![a-z])my (?:creators?|developers?|makers?)(?: at|,| is| are) (?P<name>{maker})",
        # who the speaker is
        f"(?:{SPEAKER}){SORT}{MARKS}(?P<name>{model}|{maker}{KIND}|{shared}{KIND})",
        f"(?:{SPEAKER}){SORT}(?<!\\sa\\s)(?<!\\san\\s){MARKS}(?P<name>{person})",
        f"(?<![a-z])(?:as|als|en tant que|como) {MARKS}(?P<name>{model}|{shared}){MARKS}{SELF}",
        f"(?<![a-z])as {MARKS}(?P<name>{model})(?=~,)",
        f"(?<![a-z])I, (?P<name>{model}|{shared})(?=,)",
        f"(?<![a-z])this is (?P<name>{model}|{shared})(?= (?:speaking|here|writing)(?![a-z]))",
    )
    return words, tuple(re.compile(spelled(pattern), re.IGNORECASE) for pattern in patterns)


def either(words: Iterable[str]) -> str:
    """Any of these words, however its parts are joined."""
    return "(?:" + "|".join(re.escape(word).replace(r"\-", "[-_ ]") for word in words) + ")"


def spelled(pattern: str) -> str:
    """A pattern for text as it comes: also inside JSON, where line breaks and quotes are written with a backslash."""
    pattern = re.sub(r"(?<=[a-z])'", r"(?:['’]|\\\\u2019)", pattern, flags=re.IGNORECASE)
    pattern = re.sub(r"(?<![\[\\]) (?![.\]])", r"(?:\\s|\\\\[nrt])+", pattern).replace("~", r"(?:\s|\\[nrt])*")
    return pattern.replace("(?<![a-z])", r"(?:(?<![a-z])|(?<=\\[nrt]))")


def masked(text: str, names: frozenset[str]) -> tuple[str, list[str]]:
    """A reply as others may read it, and the claims that were masked in it."""
    words, patterns = claims(names)
    lowered = text.lower()
    if not any(word in lowered for word in words):
        return text, []
    leaks: list[str] = []

    def hide(found: re.Match[str]) -> str:
        leaks.append(found[0])
        start, end = found.span("name")
        return found[0][: start - found.start()] + MASK + found[0][end - found.start() :]

    for pattern in patterns:
        text = pattern.sub(hide, text)
    return text, leaks
