"""Self-disclosure: a reply that says which model speaks is masked before anybody else reads it.

Only claims about the speaker are masked ("as GPT-4, I …", "I am Claude"); a name that belongs to the item stays.
What was masked is recorded, so that false hits are seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

MASK = "[name withheld]"
# Names that mean a model or a vendor wherever they stand.
PLAIN = """
    chatgpt gpt openai anthropic deepseek deepmind qwen alibaba 通义千问 文心一言 ernie baichuan chatglm glm zhipu internlm
    讯飞星火 kimi moonshot doubao 豆包 hunyuan minimax mixtral codestral vicuna alpaca smollm olmo dbrx wizardlm xai bard
    palm 01.ai cohere command-r nemotron granite
""".split()  # noqa: SIM905
# Names that people, stars and animals bear too.
SHARED = """
    claude gemini gemma llama grok phi nova titan copilot meta google microsoft nvidia amazon mistral falcon
""".split()  # noqa: SIM905
WORD = r"[\w.+-]*"
CLAIM = (
    r"(?:\bI\s+am|\bI['’]m|\bmy\s+name\s+is|\bthis\s+is|\bcall\s+me|\bspeaking\s+as|\bich\s+bin|\bje\s+suis|\bsoy|我是|我叫|作为)"
    r"(?:\s*(?:an?|the|called|named|actually|just|only|really|eine?|un|une|一个|一款))*"
    r"(?:\s+(?:AI|large|language|model|assistant|chatbot|LLM|version|of|by|from)\b,?)*\s*"
)
MADE = r"\bI(?:['’]m|\s+am|\s+was|\s+have\s+been)\b[^.!?\n]{0,80}?\b(?:by|from|at)\s+"


@lru_cache(maxsize=256)
def claims(names: frozenset[str]) -> tuple[tuple[str, ...], re.Pattern[str]]:
    """The words worth a closer look, and the pattern that takes it, for a cast that bears these names."""
    own = sorted({name.lower() for name in names if len(name) >= 3}, key=len, reverse=True)
    plain, shared = (*own, *PLAIN), tuple(SHARED)

    def group(words: Iterable[str]) -> str:
        return "(?:" + "|".join(re.escape(word) for word in words) + ")"

    any_name = rf"(?P<{{0}}>{group((*plain, *shared))}{WORD}(?:[ -]\d[\w.]*)?)"
    pattern = "|".join(
        (
            CLAIM + any_name.format("claimed") + r"(?!\s+[A-Z][a-z])",
            MADE + any_name.format("maker"),
            rf"\bas\s+(?P<as_plain>{group(plain)}{WORD}(?:[ -]\d[\w.]*)?)",
            rf"\bas\s+(?P<as_shared>{group(shared)}{WORD}(?:[ -]\d[\w.]*)?)(?=\s*,|\s+I\b)",
        )
    )
    return tuple(dict.fromkeys((*plain, *shared))), re.compile(pattern, re.IGNORECASE)


def masked(text: str, names: frozenset[str]) -> tuple[str, list[str]]:
    """A reply as others may read it, and the claims that were masked in it."""
    words, pattern = claims(names)
    lowered = text.lower()
    for word in words:
        if word in lowered:
            break
    else:
        return text, []
    leaks: list[str] = []

    def hide(found: re.Match[str]) -> str:
        leaks.append(found[0])
        name = found.lastgroup or ""
        return found[0][: found.start(name) - found.start()] + MASK + found[0][found.end(name) - found.start() :]

    return pattern.sub(hide, text), leaks
