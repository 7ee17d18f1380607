"""Characters that look like others: what a reader sees in each."""

from __future__ import annotations

from functools import lru_cache
from unicodedata import category, digit, normalize

from parley.tables import HIDDEN

LATIN = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Letters of Cyrillic, Greek, Armenian and Cherokee that look like Latin ones.
LOOK_ALIKES = str.maketrans(
    "АВЕКМНОРСТУХІЈЅԌԚԜҮЅԁаеорсухіјѕһԛԝүӏкмтгпԍьΑΒΕΖΗΙΚΜΝΟΡΤΥΧαοιρνκτυχεγϲϳՕՍօսոհցգᏀᏢᎢᏟᎪᏞᎬᎠᎳᏴᎡᎷᏚᏙᎥ",
    "ABEKMHOPCTYXIJSGQWYSdaeopcyxijshqwylkmtrngbABEZHIKMNOPTYXaoipvktuxeycjOUouuhgqGPTCALEDWBRMSVi",
)
# Letters that are Latin by shape and name, and that NFKC leaves as they are.
SMALL_CAPITALS = str.maketrans("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢıɡɑ", "abcdefghijklmnopqrstuvwyziga")
# Dashes, apostrophes and quotation marks, each as the plain one.
PUNCTUATION = str.maketrans("‐‑‒−﹣⁃ʼ‘’‛′", "------'''''")
# Marks that are put on letters to strike them out or to underline them.
OVERLAYS = frozenset(map(chr, (*range(0x305, 0x307), *range(0x30D, 0x327), *range(0x328, 0x370))))
# Letters that look like digits in many fonts.
NEAR_DIGITS = str.maketrans("oil|зчб", "0111346")
# Brackets that look like square ones, slashes and colons.
SIGNS = str.maketrans(
    "〔〖〘〚【⁅⟦⟬⦋⦍⦏⦗❲⌈⌊⌜⌞⎡⎢⎣「『⸢⸤⹕⹗〕〗〙〛】⁆⟧⟭⦌⦎⦐⦘❳⌉⌋⌝⌟⎤⎥⎦」』⸣⸥⹖⹘\\⁄∕╱⟋⧸〳∖⧵ː։׃܃܄꞉∶⁚︓",
    "[" * 26 + "]" * 26 + "/" * 9 + ":" * 9,
)
KEPT = frozenset("，！？；…")  # compatible forms that stand in every text and hide nothing


@lru_cache(maxsize=4096)
def fold_character(char: str) -> str:
    """One character that is not ASCII, as a reader sees it."""
    if char in KEPT:
        return char
    if (
        category(char) == "Cf"
        or "\ufe00" <= char <= "\ufe0f"
        or char in OVERLAYS
        or char == "\u3164"
    ):
        return ""
    if category(char) == "Zs":
        return " "
    if "\U0001f130" <= char <= "\U0001f189":  # letters in squares and circles
        return LATIN[(ord(char) - 0x1F130) % 32 % 26]
    plain = normalize("NFKC", char).translate(SMALL_CAPITALS).translate(PUNCTUATION)
    return plain if len(plain.lower()) == len(plain) else plain.lower()[0]


@lru_cache(maxsize=4096)
def fold_sign(char: str) -> str:
    """One character as somebody may read it in a short sign, like `[/` or `0a1b`: a look-alike as
    the plain letter, digit, bracket, slash or colon in small letters, without accents."""
    if HIDDEN.match(char):
        return ""
    latin = char.translate(LOOK_ALIKES)
    if latin == char and len(small := char.lower()) == 1:  # a capital whose small form is known
        latin = small.translate(LOOK_ALIKES)
    plain = normalize("NFKD", fold_character(latin))
    bare = "".join(each for each in plain if category(each)[0] != "M")
    folded = bare.translate(LOOK_ALIKES).translate(SIGNS).casefold()
    return "".join(str(digit(each, each)) for each in folded).translate(NEAR_DIGITS)
