"""Parse numbers as people write them, and compare answers. A number that is not understood does not
count as one."""

from __future__ import annotations

import re
from fractions import Fraction
from unicodedata import normalize

RAISED, VULGAR = re.compile(r"[⁺⁻⁰¹²³⁴-⁹]+"), re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞↉])")
SCALES = {
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "万": 10**4,
    "亿": 10**8,
}
NUMERAL = re.compile(
    r"(?<![A-Za-z0-9_.^√)])(?<![A-Za-z0-9)]-)(?<!\d[:,/*+])"
    r"(?:(?P<sign>[-+])?[$€£¥]?|[$€£¥](?P<inner>[-+]))"
    r"(?P<digits>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,40}|(?=\.\d))(?:(?:\.\d{1,40})?(?:[eE][-+]?\d{1,2})?|/[1-9]\d{0,9}))"
    r"(?:\s?%)?(?:\s?(?P<scale>thousand|million|billion|trillion)\b|(?P<unit>[万亿]))?"
    r"(?![\d^!]|/(?![A-Za-z]{2})|[.,:]\d|[eE][-+]?\d|[xyznkipqrtKMBT](?![A-Za-z])|[十百万亿]|千(?![克米瓦卡]))"
    r"(?!\s?(?:dozen|hundred|thousand|million|billion|trillion)\b)"
)
# Numbers as typeset in LaTeX and print, to be rewritten in plain characters.
FRACTION = re.compile(
    r"(\d?)\\[dt]?frac\s?(?:\{\s?(\d{1,20})\s?\}\s?\{\s?([1-9]\d{0,9})\s?\}|(\d)([1-9])(?!\d))"
)
GROUPED = re.compile(r"(?<=\d)(?:\{,\}|\\[,;:! ]| )(?=\d{3}(?!\d))")
TEXT, MATHS, ESCAPED = (
    re.compile(r"\\(?:text|mathrm)\{([^{}]{0,80})\}"),
    re.compile(r"\\[()\[\]]"),
    re.compile(r"\\([$%])"),
)
BELOW = re.compile(
    r"\b(?:minus|negative)\s(?=[\d.$])|负(?=[\d.])|(?<![\w)])[–—−‒](?=[\d.$])", re.IGNORECASE
)
EMPHASIS = re.compile(r"\*\*|__|`")
OPERATOR = re.compile(r"[+^√π<>×÷|\\]")
SUM_BEFORE, SUM_AFTER = re.compile(r"[-*/]\s?\Z"), re.compile(r"\s?[-*/]\s?\(?[A-Za-z](?![A-Za-z])")
AREA = re.compile(r"\b(?:[cdkm]?m|in|ft|feet|inches|met(?:er|re)s|units)\^[23]\b")
SUM = re.compile(r"[\d\s.,$+*/×÷()-]+[.\s]*")
DENIED = re.compile(
    r"\b(?:not|never|wrong|incorrect|neither|nor|cannot|unable)\b|n['’]t\b|不|非|错", re.IGNORECASE
)
PAIRS = {"**", "__", "``", "$$", '""', "“”", "‘’", "''", "「」"}
WORDS_INSIDE = re.compile(r"[(\[]([^\W\d_][\w\s'’-]+)[)\]]")
ARTICLE = re.compile(r"(?:an?|the)\s+(?=\w\w)")
# limits: characters of an answer, and signs around words
LONGEST_ANSWER, LAYERS = 500, 8


def fold_widths(text: str) -> str:
    """Give every character one width; 10² does not become 102, nor 1½ 11/2."""
    apart = VULGAR.sub(" ", RAISED.sub(lambda found: f"^{found[0]}", text))
    return normalize("NFKC", apart).replace("⁄", "/")


def parse_number(text: str) -> Fraction | None:
    """Parse a text as one number: with thousands separators, a currency, per cent, a power of ten,
    or as a LaTeX fraction."""
    words = (
        normalise_notation(text[: LONGEST_ANSWER + 1]).strip("$€£¥*_` ").removesuffix(".").strip()
    )
    if words[:1] in "([{" and words[-1:] in ")]}":
        words = words[1:-1].strip()
    found = NUMERAL.fullmatch(words) if len(text) <= LONGEST_ANSWER else None
    return numeral_value(found) if found else None


def numeral_value(found: re.Match[str]) -> Fraction:
    digits = found["digits"].replace(",", "")
    scale = SCALES[found["scale"] or found["unit"]] if found["scale"] or found["unit"] else 1
    return Fraction(digits) * scale * (-1 if "-" in (found["sign"], found["inner"]) else 1)


def normalise_notation(text: str) -> str:
    """Rewrite numbers as typeset in LaTeX and print in plain characters."""
    words = EMPHASIS.sub("", fold_widths(text))
    words = ESCAPED.sub(r"\1", MATHS.sub(" ", TEXT.sub(r" \1 ", GROUPED.sub(",", words))))
    words = FRACTION.sub(
        lambda got: f"{got[1] and got[1] + ' '}{got[2] or got[4]}/{got[3] or got[5]}", words
    )
    return BELOW.sub("-", words)


def normalise_numeral(text: str) -> str:
    """A number in plain spelling, so 1,234.50 is 1234.5; empty if it is not a number."""
    found = parse_number(text)
    return "" if found is None else format_fraction(found)


def format_fraction(found: Fraction) -> str:
    places = next((n for n in range(41) if (found * 10**n).denominator == 1), None)
    if places is None:
        return str(found)
    digits = f"{abs(found) * 10**places}".zfill(places + 1)
    whole = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{whole}" if found < 0 else whole


def find_only_number(words: str) -> str:
    """Find the only number in a text, or the result of a sum; empty if there is none, if there are
    several, or if it is denied."""
    if len(words) > LONGEST_ANSWER or DENIED.search(words):
        return ""
    sides = normalise_notation(words).split("=")
    last = find_single_number(sides[-1])
    if last is None and len(sides) == 2 and SUM.fullmatch(sides[1]):
        last = find_single_number(sides[0])  # 18 = 9 * 2
    return "" if last is None else format_fraction(last)


def find_single_number(words: str) -> Fraction | None:
    """The number in a text, unless there is another one or it is part of a term."""
    words = AREA.sub("", words)
    found = NUMERAL.search(words)
    if found is None:
        return None
    before, after = words[: found.start()], words[found.end() :]
    others = any(mark.isdigit() for mark in before + after) or OPERATOR.search(before + after)
    return (
        None
        if others or SUM_BEFORE.search(before) or SUM_AFTER.match(after)
        else numeral_value(found)
    )


def normalise_words(text: str) -> str:
    """Remove case, a leading article and punctuation around a text; signs with a meaning stay."""
    words = fold_widths(text).strip()
    for _ in range(LAYERS):
        bare = words.rstrip(".。,;，； ")
        bare = bare[:-1] if bare.endswith("!") and bare[-3:-1].isalpha() and len(bare) > 2 else bare
        bare = bare[1:-1].strip() if len(bare) > 2 and bare[0] + bare[-1] in PAIRS else bare
        if not bare or bare == words:
            break
        words = bare
    inside = WORDS_INSIDE.fullmatch(words)
    words = (inside[1] if inside else words).casefold()
    return " ".join(
        ARTICLE.sub("", words, count=1).split() if ARTICLE.match(words) else words.split()
    )


def is_same_answer(said: str, answer: str) -> bool:
    """Whether an answer is right: the same number and no other, or the same words. 50% equals 50,
    not 0.5."""
    wanted = parse_number(answer)
    if wanted is None:
        return normalise_words(said) == normalise_words(answer)
    mine = parse_number(said)
    return wanted == (parse_number(find_only_number(said)) if mine is None else mine)
