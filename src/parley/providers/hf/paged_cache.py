"""Keys and values of many conversations in one pool of pages, as a cache that transformers accepts.

A conversation has a list of pages. Its tokens stand in them in order, without padding, so that it
can grow, stay after a reply, and share a forward pass with conversations of other lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

PAGE = 64  # tokens
TRASH = 0  # the page that padding is written to


class PagePool:
    """The pages of all layers, and where the tokens of the current forward pass go."""

    def __init__(self, torch: Any, device: Any, pages: int) -> None:
        self.torch, self.device, self.count = torch, device, pages
        self.free = list(range(pages - 1, TRASH, -1))
        self.keys: list[Any] = []  # by layer: pages × heads × PAGE × width
        self.values: list[Any] = []
        self.table: Any = None  # rows × pages: the pages of each row of the forward pass
        self.targets: tuple[Any, Any] = (None, None)  # page and place of each new token
        self.positions: Any = None  # of the new tokens: rows × tokens
        self.lengths: Any = None  # tokens of each row, if each row has one new token
        self.kernel: Any = None  # the module whose functions read the pages where they are

    def place(self, table: Any, positions: Any) -> None:
        """Say where the new tokens go: `positions` is rows × tokens; a negative one is padding."""
        known = positions.clamp(min=0)
        page = table.gather(1, known // PAGE)
        self.targets = (
            self.torch.where(positions < 0, TRASH, page),
            self.torch.where(positions < 0, 0, known % PAGE),
        )
        self.table, self.positions = table, positions

    def update(self, layer: int, key: Any, value: Any) -> tuple[Any, Any]:
        """Store new keys and values, and return those of the rows, in order. With a kernel, the
        stored pages themselves are returned."""
        while len(self.keys) <= layer:
            for pages, new in ((self.keys, key), (self.values, value)):
                shape = (self.count, new.shape[1], PAGE, new.shape[3])
                pages.append(self.torch.zeros(shape, dtype=new.dtype, device=self.device))
        page, at = self.targets
        self.keys[layer][page, :, at] = key.transpose(1, 2)
        self.values[layer][page, :, at] = value.transpose(1, 2)
        if self.kernel is not None:
            return self.keys[layer], self.values[layer]
        return self._gather(self.keys[layer]), self._gather(self.values[layer])

    def _gather(self, pages: Any) -> Any:
        found = pages[self.table].transpose(1, 2)  # rows × heads × pages × PAGE × width
        return found.reshape(*found.shape[:2], -1, found.shape[-1])

    def attend(
        self, module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **more: Any
    ) -> tuple[Any, None]:
        """The attention function that transformers calls in every layer."""
        if self.kernel is None:
            found: tuple[Any, None] = sdpa(module, query, key, value, attention_mask, **more)
            return found
        scaling = more.get("scaling") or query.shape[-1] ** -0.5
        if self.lengths is None:
            where = (self.table, self.positions)
            return self.kernel.attend_many(query, key, value, *where, scaling), None
        return self.kernel.attend_one(query, key, value, self.table, self.lengths, scaling), None


def sdpa(*given: Any, **more: Any) -> Any:
    """The attention of torch, as transformers calls it."""
    attend = import_module("transformers.integrations.sdpa_attention").sdpa_attention_forward
    return attend(*given, **more)


def make_cache(pool: PagePool) -> Any:
    """The pool as the cache of a forward pass."""
    utils = import_module("transformers.cache_utils")

    class PagedCache(utils.Cache):  # type: ignore[misc, name-defined]
        """Stands for the rows of the current forward pass."""

        def __init__(self) -> None:
            super().__init__(layers=[])

        def update(self, key_states: Any, value_states: Any, layer_idx: int, *_: Any, **__: Any):  # type: ignore[no-untyped-def]
            return pool.update(layer_idx, key_states, value_states)

    return PagedCache()


def mask_for(torch: Any, positions: Any, width: int) -> Any:
    """Which columns each new token may attend to: those up to itself; padding, the first."""
    columns = torch.arange(width, device=positions.device)
    return (columns <= positions.clamp(min=0)[:, :, None])[:, None]


def pages_for(tokens: int) -> int:
    """How many pages these tokens need."""
    return -(-tokens // PAGE)


def fill_table(torch: Any, rows: Sequence[Sequence[int]], height: int, width: int) -> Any:
    """The table of pages of these rows, filled up with the trash page."""
    table = torch.full((height, width), TRASH, dtype=torch.int64)
    for row, pages in enumerate(rows):
        if pages:
            table[row, : len(pages)] = torch.tensor(pages[:width])
    return table
