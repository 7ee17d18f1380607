"""What the classes of votes need from their database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NoReturn, Self

from parley.errors import StoreError
from parley.store.digests import RunConnection


class VoteTables(ABC):
    """The tables of votes in a database."""

    location: str  # where the votes are, for a user to read
    remedy: ClassVar[str]  # for damaged votes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *wrong: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def transaction(self) -> AbstractContextManager[RunConnection]:
        """Make all changes inside in one transaction. Nobody else can write meanwhile, and the
        changes are durable afterwards."""

    @abstractmethod
    def _rows(self, query: str, *values: Any) -> list[Any]:
        """Run a query; values are marked by `?`."""

    def _damaged(self, what: str) -> NoReturn:
        raise StoreError(f"{self.location} is damaged: {what}; {self.remedy}")
