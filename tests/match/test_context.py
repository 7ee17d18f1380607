"""The weights of the words around a name: learned from the corpus, and what they find.

`PARLEY_UPDATE=1 pytest -k weights_are_those tests/match/test_context.py` learns them again.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from bisect import bisect_left
from collections import Counter
from pathlib import Path

import numpy as np

import parley.match.context_weights
from parley.match.context import list_features, split_for_context
from parley.match.masking import KIND_OF_SIGN, NamesInText, mask_names

CORPUS = Path(__file__).parent.parent / "data" / "masking"
WEIGHTS = Path(parley.match.context_weights.__file__)
FILE = """# ruff: noqa: E501
\"\"\"The weights of the words around a name, in hundredths, each before the features that have it.

They are learned from the corpus in tests/data/masking by tests/match/test_context.py.
\"\"\"

# A digest of the sentences.
CORPUS = "{corpus}"
WEIGHTS = r\"\"\"{weights}\"\"\"
"""
TABLE = frozenset({"gpt-4o", "claude-3-5-sonnet"})
LINES = {
    name: CORPUS / f"{name}.txt"
    for name in ("claims", "innocent", "forms", "context_claims", "context_innocent")
}
LEAST_SEEN = 9  # how often a feature occurs, in all contexts, before it has a weight
SHRINKAGE, STEPS, RATE = 0.5, 300, 0.1


def read_lines(name):
    """The sentences of a file, each with its names; None where no name is claimed."""
    for line in LINES[name].read_text(encoding="utf-8").splitlines():
        if line.startswith("%"):
            continue
        shown = re.sub(r"\{([0-9a-f]{4})\}", lambda code: chr(int(code[1], 16)), line)
        text, _, names = shown.partition(" ||| ")
        claimed = {"forms": ["gpt", "claude", "openai", "anthropic"]}.get(name) or names.split(";")
        yield text.replace("{nl}", "\n"), None if "innocent" in name else claimed


def put_in_contexts(text):
    """A sentence by itself, between others, and inside JSON."""
    return text, f"Well.\n{text}\nYes.", json.dumps({"reason": text}, ensure_ascii=False)


def list_examples(text, names):
    """The features of every name in a text, and whether the speaker claims it."""
    found = NamesInText(text, TABLE, 2)
    signed = found._signed if found.found else ""
    words = split_for_context(signed, 0, len(signed))
    for name, place in zip(found.found, getattr(found, "_places", []), strict=True):
        said = text[name.start : name.end].lower()
        claimed = names is not None and any(
            each.lower() in said or said in each.lower() or each.lower() in name.name
            for each in names
        )
        if claimed or names is None:
            at = bisect_left(words.starts, place)
            yield set(list_features(words, at, KIND_OF_SIGN[signed[place]])), claimed


def learn_weights(examples):
    """Logistic regression with quadratic shrinkage, by gradient steps of AdaGrad."""
    seen = Counter(feature for features, _ in examples for feature in features)
    kept = sorted(feature for feature, count in seen.items() if count >= LEAST_SEEN)
    number = {feature: at for at, feature in enumerate(kept)}
    pairs = [
        (row, number[feature])
        for row, (features, _) in enumerate(examples)
        for feature in sorted(features)
        if feature in number
    ]
    rows, columns = np.array(pairs).T
    wanted = np.array([float(claimed) for _, claimed in examples])
    weights, squares = np.zeros(len(kept)), np.full(len(kept), 1e-8)
    bias, bias_squares = 0.0, 1e-8
    for _ in range(STEPS):
        odds = np.bincount(rows, weights[columns], len(examples)) + bias
        wrong = 1 / (1 + np.exp(-odds)) - wanted
        slope = np.bincount(columns, wrong[rows], len(kept)) + SHRINKAGE * weights
        squares += slope**2
        weights -= RATE * slope / np.sqrt(squares)
        bias_squares += wrong.sum() ** 2
        bias -= RATE * wrong.sum() / np.sqrt(bias_squares)
    rounded = {
        feature: round(float(weight) * 100) for feature, weight in zip(kept, weights, strict=True)
    }
    return {"bias": round(bias * 100)} | {
        name: weight for name, weight in rounded.items() if abs(weight) > 2
    }


def write_weights(weights):
    """The weights as a module: a line for each weight, with its features."""
    lines = {}
    for feature, weight in weights.items():
        lines.setdefault(weight, []).append(feature.replace('"', "”"))
    text = "\n".join(f"{weight} {' '.join(lines[weight])}" for weight in sorted(lines))
    return FILE.format(corpus=digest_corpus(), weights=text)


def digest_corpus():
    """A digest of all sentences that the weights are learned from."""
    text = "\n".join(LINES[name].read_text(encoding="utf-8") for name in sorted(LINES))
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_weights_are_those_of_the_corpus():
    if os.environ.get("PARLEY_UPDATE"):
        examples = [
            example
            for name in LINES
            for text, names in read_lines(name)
            for around in put_in_contexts(text)
            for example in list_examples(around, names)
        ]
        weights = learn_weights(examples)
        WEIGHTS.write_text(write_weights(weights), encoding="utf-8")
    assert f'CORPUS = "{digest_corpus()}"' in WEIGHTS.read_text(encoding="utf-8"), (
        "the corpus has changed: learn the weights again with PARLEY_UPDATE=1"
    )


def count_caught(name):
    """How many sentences of a file are masked as they should be, and those that are not."""
    lines = list(read_lines(name))
    missed = []
    for text, names in lines:
        hidden, claims = mask_names(text, TABLE)
        if names is None:
            wrong = bool(claims)
        else:
            wrong = any(hidden.count(each) >= text.count(each) for each in names)
        if wrong:
            missed.append(text)
    return len(lines) - len(missed), missed


def test_of_the_further_claims_most_are_found():
    caught, missed = count_caught("context_claims")
    assert caught >= 0.65 * (caught + len(missed)), missed


def test_of_the_further_innocent_sentences_hardly_one_is_masked():
    caught, masked = count_caught("context_innocent")
    assert caught >= 0.99 * (caught + len(masked)), masked


def test_masking_is_the_same_in_every_process():
    """Sets have another order in each process, and sums of floats depend on their order."""
    said = "Mistral is ready. Mistral has made up its mind: 30, not a coin more. ||| Mistral"
    code = f"from parley.match.masking import mask_names\nprint(mask_names({said!r}, frozenset()))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }
    assert len(found) == 1
