"""The chain of condensings is broken by every edit."""

from dataclasses import fields, replace

from ledger.seals.compactions import CompactedBalance, CompactedRefusals, PostingCompaction
from ledger.seals.seal import GENESIS

ONE = PostingCompaction(1, 1, 5, 3, 4, 8, 2, b"g" * 32, 2, b"l" * 32)
BALANCE = CompactedBalance("expense:team:a", 86_400_000_000, 4, 10**30)
REFUSED = CompactedRefusals(0, "acme", "a", "chat", "p", "budget", 429, "team:a", 2)


def chain(item=ONE, before=GENESIS, link=b"link", balances=(BALANCE,), refused=(REFUSED,)) -> bytes:
    return item.chain(before, link, balances, refused)


def others(value):
    """The value with one field changed, for each of them."""
    for field in fields(value):
        old = getattr(value, field.name)
        more = b"x" if isinstance(old, bytes) else "x" if isinstance(old, str) else 1
        yield replace(value, **{field.name: old + more})


def test_every_field_is_chained() -> None:
    assert chain() == chain()
    changed = [chain(before=b"x" * 32), chain(link=b"other")]
    changed += [chain(other) for other in others(ONE)]
    changed += [chain(balances=(other,)) for other in others(BALANCE)]
    changed += [chain(refused=(other,)) for other in others(REFUSED)]
    changed += [chain(balances=()), chain(refused=()), chain(balances=(BALANCE, BALANCE))]
    changed.append(chain(refused=(replace(REFUSED, scope=None),)))
    assert len({chain(), *changed}) == 1 + len(changed)
