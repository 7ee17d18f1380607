"""Reads a run: one class for each thing that a run has."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator

from parley.store.reader.batches import BatchReader
from parley.store.reader.conversations import ConversationReader
from parley.store.reader.match_list import MatchListReader
from parley.store.reader.people import PeopleReader
from parley.store.reader.run import RunFactsReader
from parley.store.reader.usage import UsageReader
from parley.store.types import DigestFault


class RunReader(
    RunFactsReader, BatchReader, ConversationReader, UsageReader, PeopleReader, MatchListReader
):
    """A consistent snapshot of one run, which a store opens."""

    @abstractmethod
    def find_changes(
        self, report: Callable[[int], None] = lambda checked: None
    ) -> Iterator[DigestFault]:
        """Where the record does not match its digests, which are all recomputed. `report` is called
        now and then with the number of matches checked."""
