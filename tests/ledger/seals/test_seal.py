"""Leaves and links change with every value under them, and with nothing else."""

from dataclasses import replace

import pytest

from ledger.seals.seal import GENESIS, SealLink, SealRanges, digest, leaf

LINK = SealLink(1, 5, SealRanges(1, 2, 3, 4), 2, digest([b"a", b"b"]))


def test_a_leaf_is_of_names_and_values_that_are_there():
    row = leaf("t", ["a", "b"], [1, None])
    assert row == leaf("t", ["a"], [1])  # a column that came later
    others = [
        leaf("u", ["a"], [1]), leaf("t", ["b"], [1]), leaf("t", ["a"], [2]),
        leaf("t", ["a"], ["1"]), leaf("t", ["a"], [True]), leaf("t", ["a"], [1], b"x"),
    ]  # fmt: skip
    assert row not in others


def test_the_order_of_leaves_counts():
    assert digest([b"a", b"b"]) != digest([b"b", b"a"])


@pytest.mark.parametrize(
    "other",
    [
        replace(LINK, number=2),
        replace(LINK, sealed_us=6),
        replace(LINK, rows=1),
        replace(LINK, digest=digest([b"a"])),
        replace(LINK, to=SealRanges(9, 2, 3, 4)),
        replace(LINK, to=SealRanges(1, 9, 3, 4)),
        replace(LINK, to=SealRanges(1, 2, 9, 4)),
        replace(LINK, to=SealRanges(1, 2, 3, 9)),
    ],
)  # fmt: skip
def test_a_chain_value_binds_every_number_of_its_link(other):
    assert other.chain(GENESIS) != LINK.chain(GENESIS)


def test_a_chain_value_binds_all_links_before_it():
    assert LINK.chain(LINK.chain(GENESIS)) != LINK.chain(GENESIS)
