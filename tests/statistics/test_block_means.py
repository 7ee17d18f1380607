"""Columns of block means behave like dicts of block means."""

from random import Random

import pytest

from parley.statistics.block_means import BlockMeans, BlockNames, BlockSums, share_blocks


def add_up(names: BlockNames, seed: int) -> tuple[BlockMeans, dict[str, float]]:
    """The same values as columns and as a dict; some blocks have none."""
    rng, sums = Random(seed), BlockSums(names)
    plain: dict[str, list[float]] = {}
    for _ in range(60):
        block, value = str(rng.randrange(40)), rng.random()
        sums.add(names.number(block), value)
        plain.setdefault(block, []).append(value)
    return sums.means(), {
        block: sum(plain[block]) / len(plain[block]) for block in names.names if block in plain
    }


@pytest.mark.parametrize("seed", range(5))
def test_means_equal_those_of_a_dict(seed) -> None:
    names = BlockNames()
    names.number("never played")
    means, wanted = add_up(names, seed)
    assert dict(means) == pytest.approx(wanted)
    assert list(means.items()) == list(zip(means, means.values(), strict=True))
    assert list(means) == list(wanted)
    assert all(means[block] == value for block, value in means.items())
    assert "never played" not in means
    assert "unknown" not in means


@pytest.mark.parametrize("seed", range(5))
def test_shared_blocks_equal_those_of_dicts(seed) -> None:
    names = BlockNames()
    (ours, our_dict), (theirs, their_dict) = add_up(names, seed), add_up(names, seed + 100)
    wanted = share_blocks(dict(ours), dict(theirs))
    assert list(map(dict, share_blocks(ours, theirs))) == list(wanted)
    assert list(wanted[0]) == [block for block in our_dict if block in their_dict]
    assert all(map(dict.__eq__, map(dict, share_blocks(ours, dict(theirs))), wanted))
    assert share_blocks(ours, ours) == (ours, ours)
    elsewhere, _ = add_up(BlockNames(), seed + 100)
    assert list(map(dict, share_blocks(ours, elsewhere))) == list(wanted)


def test_sums_of_no_values_have_no_means() -> None:
    assert dict(BlockSums(BlockNames()).means()) == {}
