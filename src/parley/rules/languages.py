"""Languages: codes, names, the BLEU tokenizer, and the separator between sentences."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from parley.errors import UsageError, unknown_name


@dataclass(frozen=True)
class Language:
    """A language. Its code has no hyphen, because a hyphen separates the two languages of a
    pair."""

    code: str
    name: str
    # other codes: ISO 639-2 and 639-3, and those with a script or region that mean the same
    also: tuple[str, ...] = ()
    tokenizer: str = "13a"  # sacrebleu's
    between: str = " "  # sentences


TABLE = """
af Afrikaans afr | ar Arabic ara arb | az Azerbaijani aze azj | be Belarusian bel | bg Bulgarian bul | bn Bengali ben
bs Bosnian bos | ca Catalan cat | cs Czech ces cze | cy Welsh cym wel | da Danish dan | de German deu ger | el Greek ell gre
en English eng | eo Esperanto epo | es Spanish spa | et Estonian est ekk | eu Basque eus baq | fa Persian fas per pes farsi
fi Finnish fin | fr French fra fre | ga Irish gle | gl Galician glg | gu Gujarati guj | ha Hausa hau | he Hebrew heb iw
hi Hindi hin | hr Croatian hrv | hu Hungarian hun | hy Armenian hye arm | id Indonesian ind | ig Igbo ibo | is Icelandic isl ice
it Italian ita | ka Georgian kat geo | kk Kazakh kaz | kn Kannada kan | ko Korean kor | ky Kyrgyz kir | lt Lithuanian lit
lv Latvian lav lvs | mk Macedonian mkd mac | ml Malayalam mal | mn Mongolian mon khk | mr Marathi mar | ms Malay msa may zsm
mt Maltese mlt | nb Norwegian nob no nor | ne Nepali nep npi | nl Dutch nld dut | pa Punjabi pan | pl Polish pol
ps Pashto pus | pt Portuguese por | ro Romanian ron rum mo | ru Russian rus | si Sinhala sin | sk Slovak slk slo
sl Slovenian slv slovene | so Somali som | sq Albanian sqi alb | sr Serbian srp | sv Swedish swe | sw Swahili swa swh
ta Tamil tam | te Telugu tel | tl Filipino tgl fil tagalog | tr Turkish tur | uk Ukrainian ukr | ur Urdu urd
uz Uzbek uzb uzn | vi Vietnamese vie | xh Xhosa xho | yo Yoruba yor | zu Zulu zul
"""  # noqa: E501
LANGUAGES = [
    *(
        Language(code, name, tuple(also))
        for code, name, *also in (each.split() for each in re.split(r"[|\n]", TABLE.strip()))
    ),
    Language("pt_br", "Brazilian Portuguese"),
    Language("zh", "Chinese", ("zho", "chi", "cmn", "mandarin"), "zh", ""),
    Language("zh_tw", "Chinese in traditional characters", ("zh_hant", "zh_hk", "zh_mo"), "zh", ""),
    Language("yue", "Cantonese", ("zh_yue",), "zh", ""),
    Language("ja", "Japanese", ("jpn",), "char", ""),
    Language("th", "Thai", ("tha",), "char", ""),
    Language("km", "Khmer", ("khm",), "char", ""),
    Language("lo", "Lao", ("lao",), "char", ""),
    Language("my", "Burmese", ("mya", "bur"), "char", ""),
]
TAGGED = re.compile(r"([a-z]{2,3})(_[a-z]{4})?(_(?:[a-z]{2}|\d{3}))?")  # language, script, region


@cache
def languages_by_name() -> dict[str, Language]:
    """Every language under each of its codes and names."""
    return {
        name: each for each in LANGUAGES for name in (each.code, each.name.casefold(), *each.also)
    }


def parse_language(said: str) -> Language:
    """Parse a code or an English name. A script or region is ignored unless the table has a
    separate language for it."""
    found = find_language(said)
    if found is None:
        codes = ", ".join(sorted(each.code for each in LANGUAGES))
        raise unknown_name(
            "language",
            said,
            languages_by_name(),
            f"write an English name or one of these codes: {codes}",
        )
    return found


def find_language(said: str) -> Language | None:
    """Find a language by its code or name; None if it is unknown."""
    name = said.strip().casefold().replace("-", "_")
    tagged = TAGGED.fullmatch(name)
    if name in languages_by_name() or not tagged or tagged[1] not in languages_by_name():
        return languages_by_name().get(name)
    stem, mark = languages_by_name()[tagged[1]], tagged[2] or tagged[3] or ""
    return languages_by_name().get(stem.code + mark, stem)


def parse_language_pair(said: str) -> tuple[Language, Language]:
    """Parse two languages with a hyphen between them, each with or without a region: `en-zh`,
    `en-zh-CN`, `DE-eng`."""
    parts = said.split("-")
    sides = [("-".join(parts[:at]), "-".join(parts[at:])) for at in range(1, len(parts))]
    if len(sides) == 1:
        ((source, target),) = sides
        return check_different(parse_language(source), parse_language(target))
    found = {
        (one, other)
        for source, target in sides
        if (one := find_language(source)) and (other := find_language(target))
    }
    if len(found) != 1:
        why = (
            f"{said!r} is ambiguous: write a region with an underscore, like en-pt_BR"
            if found
            else f"found {said!r}"
        )
        raise UsageError(f"expected a pair of languages like en-zh; {why}")
    return check_different(*found.pop())


def check_different(source: Language, target: Language) -> tuple[Language, Language]:
    if source == target:
        raise UsageError(f"expected two different languages, found {source.name} twice")
    return source, target
