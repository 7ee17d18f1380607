"""BLEU and chrF by sacrebleu, from 0 to 1: of one text, and of many texts from the counts of
each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from parley.rules import languages

MEASURES = ("bleu", "chrf")
# characters of a text that are scored: so many times those of its reference, and no fewer than
# these
TIMES, LEAST = 20, 5_000
Counts = dict[str, list[int]]  # by measure: what its score is computed from


class Overlap(NamedTuple):
    """How far a text agrees with a reference, and the counts by which many such texts are scored
    together."""

    bleu: float
    chrf: float
    counts: Counts


def compute_overlap(text: str, reference: str, language: str) -> Overlap:
    """Sentence-level BLEU and chrF of a text in a language; one without words has nothing in common
    with anything.

    A text that is far too long scores as its beginning does, in the counts too: at TIMES the length
    of the reference it has lost nearly all precision, so more of it could only lose the little that
    is left, and would keep everybody waiting.
    """
    text = text[: max(LEAST, TIMES * len(reference))]
    counts = {
        name: count_statistics(load_measure(name, language), text, reference) for name in MEASURES
    }
    bleu, chrf = (score_counts(load_measure(name, language), counts[name]) for name in MEASURES)
    return Overlap(bleu, chrf, counts)


def corpus_score(name: str, counts: Iterable[Sequence[int]]) -> float:
    """The corpus-level score of texts from the counts of each: not the mean of their scores."""
    return score_counts(
        load_measure(name, whole=True), [sum(column) for column in zip(*counts, strict=True)]
    )


def measure_signatures(language: str) -> dict[str, str]:
    """What each measure says of itself where it scores one text: two scores compare only if these
    agree."""
    found = {}
    for name in MEASURES:
        each = load_measure(name, language)
        count_statistics(each, "a", "a")  # before it has seen a reference it has no signature
        found[name] = str(each.get_signature()).replace(":", "=").replace("|", ",")
    return found


def corpus_signature(name: str, signature: str) -> str:
    """The signature of the corpus-level score beside that of the sentence-level one."""
    return signature.replace("eff=yes", "eff=no") if name == "bleu" else signature


@cache
def load_measure(name: str, language: str = "", whole: bool = False) -> Any:
    """A measure of sacrebleu's; BLEU of one text leaves out the lengths of n-grams that the text is
    too short for.

    Counts are scored as a whole without a language: they are of tokens.
    """
    from sacrebleu.metrics.bleu import BLEU  # not before it is needed
    from sacrebleu.metrics.chrf import CHRF

    if name == "chrf":
        return CHRF()
    tokenizer = languages.parse_language(language).tokenizer if language else "13a"
    return BLEU(tokenize=tokenizer, effective_order=not whole, force=True)


def count_statistics(measure: Any, text: str, reference: str) -> list[int]:
    """What sacrebleu counts in one text, as it does for its own tests of significance."""
    (found,) = measure._extract_corpus_statistics([text], [[reference]])
    return list(map(int, found))


def score_counts(measure: Any, counts: Sequence[int]) -> float:
    """A score from counts, from 0 to 1."""
    return min(1.0, float(measure._compute_score_from_stats(list(counts)).score) / 100)
