"""A BERT encoder in numpy: from tokens to one vector of unit length for each text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

HEADS = 12
EPSILON = 1e-12  # of layer normalisation
ROWS = 32  # of the widest matrix at a time, so that they stay in the processor's cache

Floats: TypeAlias = NDArray[np.float32]

# erf(x) = x p(x²) / q(x²) for |x| <= 4, within 5e-7 in float32; beyond, erf is ±1 to float32.
NUMERATOR = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
DENOMINATOR = (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
    -1.42647390514189e-02,
)  # fmt: skip


def approximate_erf(x: Floats) -> Floats:
    """The error function, by a quotient of polynomials."""
    x = np.clip(x, np.float32(-4), np.float32(4))
    square = np.square(x)
    top = evaluate_polynomial(NUMERATOR, square)
    top *= x
    top /= evaluate_polynomial(DENOMINATOR, square)
    return top


def evaluate_polynomial(coefficients: Sequence[float], x: Floats) -> Floats:
    """By Horner's rule, the highest power first."""
    total = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total *= x
        total += np.float32(coefficient)
    return total


def apply_gelu(x: Floats) -> None:
    """x Φ(x), in place."""
    for start in range(0, len(x), ROWS):
        some = x[start : start + ROWS]
        weight = approximate_erf(some * np.float32(0.5**0.5))
        weight += np.float32(1)
        weight *= np.float32(0.5)
        some *= weight


class Linear:
    """x W + b. Several with the same input are one product."""

    def __init__(self, tensors: Mapping[str, NDArray[Any]], *names: str) -> None:
        weights = [tensors[f"{name}.weight"] for name in names]
        self.weight = np.ascontiguousarray(np.concatenate(weights).T, np.float32)
        self.bias = np.concatenate([tensors[f"{name}.bias"] for name in names]).astype(np.float32)

    def apply(self, x: Floats, texts: Sequence[slice]) -> Floats:
        """Text by text: rounding depends on the shape of a matrix, and the vector of a text must
        not depend on the other texts."""
        result = np.empty((len(x), len(self.bias)), np.float32)
        for text in texts:
            np.matmul(x[text], self.weight, out=result[text])
        result += self.bias
        return result


class LayerNorm:
    """Mean 0 and variance 1 in each row, then a scale and a shift."""

    def __init__(self, tensors: Mapping[str, NDArray[Any]], name: str) -> None:
        self.weight = tensors[f"{name}.weight"].astype(np.float32)
        self.bias = tensors[f"{name}.bias"].astype(np.float32)

    def apply(self, x: Floats) -> None:
        """In place."""
        x -= x.mean(axis=1, keepdims=True)
        variance = np.square(x).mean(axis=1, keepdims=True)
        variance += np.float32(EPSILON)
        x /= np.sqrt(variance, out=variance)
        x *= self.weight
        x += self.bias


class Layer:
    """One layer of the encoder: attention, then a network of two linear maps."""

    def __init__(self, tensors: Mapping[str, NDArray[Any]], name: str) -> None:
        self.attention = Linear(
            tensors, *(f"{name}.attention.self.{part}" for part in ("query", "key", "value"))
        )
        width = len(self.attention.bias) // 3
        scale = np.float32((width // HEADS) ** -0.5)  # of the products of queries and keys
        self.attention.weight[:, :width] *= scale
        self.attention.bias[:width] *= scale
        self.attention_output = Linear(tensors, f"{name}.attention.output.dense")
        self.attention_norm = LayerNorm(tensors, f"{name}.attention.output.LayerNorm")
        self.inner = Linear(tensors, f"{name}.intermediate.dense")
        self.output = Linear(tensors, f"{name}.output.dense")
        self.norm = LayerNorm(tensors, f"{name}.output.LayerNorm")

    def apply(self, x: Floats, texts: Sequence[slice]) -> Floats:
        projected = self.attention.apply(x, texts)
        attended = np.empty_like(x)
        for text in texts:
            attended[text] = attend(projected[text])
        middle = self.attention_output.apply(attended, texts)
        middle += x
        self.attention_norm.apply(middle)
        inner = self.inner.apply(middle, texts)
        apply_gelu(inner)
        result = self.output.apply(inner, texts)
        result += middle
        self.norm.apply(result)
        return result


def attend(projected: Floats) -> Floats:
    """Attention within one text, from its queries, keys and values side by side."""
    size = len(projected)
    query, key, value = projected.reshape(size, 3, HEADS, -1).transpose(1, 2, 0, 3)
    weights: Floats = np.matmul(query, key.transpose(0, 2, 1))
    weights -= weights.max(axis=2, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=2, keepdims=True)
    result: Floats = np.matmul(weights, value).transpose(1, 0, 2).reshape(size, -1)
    return result


class Bert:
    """The encoder of a checkpoint, given by its tensors."""

    def __init__(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        self.words = tensors["embeddings.word_embeddings.weight"]
        kind = tensors["embeddings.token_type_embeddings.weight"][0]
        self.positions: Floats = tensors["embeddings.position_embeddings.weight"] + kind
        self.norm = LayerNorm(tensors, "embeddings.LayerNorm")
        names = {name.split(".")[2] for name in tensors if name.startswith("encoder.layer.")}
        self.layers = [
            Layer(tensors, f"encoder.layer.{number}") for number in sorted(names, key=int)
        ]

    def encode(self, texts: Sequence[Sequence[int]]) -> Floats:
        """The mean over the tokens of each text, at unit length."""
        ends = np.cumsum([len(tokens) for tokens in texts]).tolist()
        places = [slice(first, last) for first, last in zip([0, *ends], ends, strict=False)]
        x = np.concatenate([self.words[list(tokens)] for tokens in texts]).astype(np.float32)
        for place, tokens in zip(places, texts, strict=True):
            x[place] += self.positions[: len(tokens)]
        self.norm.apply(x)
        for layer in self.layers:
            x = layer.apply(x, places)
        means = np.array([x[place].mean(axis=0) for place in places])
        means /= np.sqrt(np.square(means).sum(axis=1, keepdims=True))
        return means
