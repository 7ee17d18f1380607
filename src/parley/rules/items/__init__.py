"""How a task declares the items that it is played on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass
from typing import Any, TypeAlias

from parley.errors import TaskError

ItemType: TypeAlias = type[Any]


@dataclass(frozen=True)
class Items:
    """The items a task is played on: their type, and how a run chooses among them."""

    type: ItemType  # a frozen dataclass with a field `id`
    _: KW_ONLY
    sample: int | None = None  # how many items a run draws by default; None: all
    bundled: Sequence[Any] = ()  # items that the task brings along, played by default
    # a field of items: a sample keeps the proportions of its values. None: take the first items
    stratum: str | None = None
    # parameters of the task that name what is played, each with the field that holds such names
    picks: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        is_class = is_dataclass(self.type) and isinstance(self.type, type)
        known = {each.name for each in fields(self.type)} if is_class else set()
        if "id" not in known or not self.type.__dataclass_params__.frozen:
            raise TaskError(
                f"items: expected a frozen dataclass with a field `id`, found {self.type!r:.80}"
            )
        for name in (*self.picks.values(), *filter(None, [self.stratum])):
            if name not in known:
                raise TaskError(
                    f"items: {self.type.__name__} has no field {name!r}; "
                    f"its fields are: {', '.join(sorted(known))}"
                )
