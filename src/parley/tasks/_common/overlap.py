"""BLEU and chrF by sacrebleu, from 0 to 1: for one text, and for a corpus from the counts of its
texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from parley.rules import languages

MEASURES = ("bleu", "chrf")
# at most this many times the length of the reference is scored, but at least LEAST characters
TIMES, LEAST = 20, 5_000
Counts = dict[str, list[int]]  # by measure: what its score is computed from


class Overlap(NamedTuple):
    """The scores of a text against a reference, and the counts from which a corpus is scored."""

    bleu: float
    chrf: float
    counts: Counts


def compute_overlap(text: str, reference: str, language: str) -> Overlap:
    """Sentence-level BLEU and chrF of a text in a language. A text without words scores 0.

    Only the beginning of a far too long text is scored and counted: at TIMES the length of the
    reference, precision is close to zero anyway, and scoring the rest would take long.
    """
    text = text[: max(LEAST, TIMES * len(reference))]
    counts = {
        name: count_statistics(load_measure(name, language), text, reference) for name in MEASURES
    }
    bleu, chrf = (score_counts(load_measure(name, language), counts[name]) for name in MEASURES)
    return Overlap(bleu, chrf, counts)


def corpus_score(name: str, counts: Iterable[Sequence[int]]) -> float:
    """The corpus-level score from the counts of all texts. It is not the mean of their scores."""
    return score_counts(
        load_measure(name, whole=True), [sum(column) for column in zip(*counts, strict=True)]
    )


def measure_signatures(language: str) -> dict[str, str]:
    """sacrebleu's signature of each measure for single texts. Scores are comparable only if their
    signatures agree."""
    found = {}
    for name in MEASURES:
        each = load_measure(name, language)
        count_statistics(each, "a", "a")  # it has no signature before its first reference
        found[name] = str(each.get_signature()).replace(":", "=").replace("|", ",")
    return found


def corpus_signature(name: str, signature: str) -> str:
    """The signature of the corpus-level score, from that of the sentence-level score."""
    return signature.replace("eff=yes", "eff=no") if name == "bleu" else signature


@cache
def load_measure(name: str, language: str = "", whole: bool = False) -> Any:
    """Load a measure of sacrebleu. BLEU of one text uses the effective order: it skips n-grams
    that the text is too short for.

    Corpus scores (`whole`) need no language, because the counts are of tokens.
    """
    from sacrebleu.metrics.bleu import BLEU  # imported late because it is slow
    from sacrebleu.metrics.chrf import CHRF

    if name == "chrf":
        return CHRF()
    tokenizer = languages.parse_language(language).tokenizer if language else "13a"
    return BLEU(tokenize=tokenizer, effective_order=not whole, force=True)


def count_statistics(measure: Any, text: str, reference: str) -> list[int]:
    """The counts of sacrebleu for one text, as in its own significance tests."""
    (found,) = measure._extract_corpus_statistics([text], [[reference]])
    return list(map(int, found))


def score_counts(measure: Any, counts: Sequence[int]) -> float:
    """A score from counts, from 0 to 1."""
    return min(1.0, float(measure._compute_score_from_stats(list(counts)).score) / 100)
