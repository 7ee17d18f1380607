"""Public goods game: pay into the common pool, or keep your coins and share what others paid."""

from parley.tasks.public_goods.rule import PublicGoods

__all__ = ["PublicGoods"]
