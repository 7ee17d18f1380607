"""Characters that cannot be seen, or that turn the direction of writing, made visible.

A text can hold words that people and models read differently: U+202E turns letters around, U+200B
splits a word for one reader and not for another. Judges, tables, pages and CSV files show such
characters by their numbers. Joiners stay where the script or the emoji needs them.
"""

from __future__ import annotations

import re

# Directions (U+061C, U+200E, U+202A…), spaces and joiners without a width, soft hyphens, byte order
# marks, annotations, tags, and letters and marks that are drawn as nothing. Signs of numbers and
# the like, which are of the same category but can be seen, are not among them.
HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
# Scripts whose letters join, or whose marks combine: Arabic to N'Ko, those of India, Myanmar,
# Khmer, Mongolian, and those of their families.
JOINING = (
    "\u0600-\u07ff\u0840-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\u1900-\u1cff\ua840-\ua87f"
    "\ua8e0-\ua9df\uaa60-\uaa7f\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f"
)
# marks after which a joiner may stand at the end of a word
VIRAMAS = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u1039\u103a\u17d2"
PICTURES = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001fbff"
)
NEEDED = re.compile(
    f"(?<=[{JOINING}])[\u200c\u200d](?=[{JOINING}])"
    f"|(?<=[{VIRAMAS}])[\u200c\u200d]"
    f"|(?<=[{PICTURES}\ufe0f])\u200d(?=[{PICTURES}])"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180e]"  # Mongolian letters have variants
    "|(?<=\U0001f3f4)[\U000e0020-\U000e007e]+\U000e007f"  # flags of England, Scotland, Wales
)


def show_hidden(text: str) -> str:
    """A text in which every hidden character that no script or emoji needs is shown by its
    number, as in <U+202E>."""
    if text.isascii() or not HIDDEN.search(text):
        return text
    needed = {at for found in NEEDED.finditer(text) for at in range(*found.span())}
    return HIDDEN.sub(
        lambda found: found[0] if found.start() in needed else f"<U+{ord(found[0]):04X}>", text
    )
