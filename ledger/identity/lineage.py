"""The origin of keys: rotations, and the keys or the person that made them.

Keys that follow each other by rotation are one line, named by the first key. Keys that a line made
end with its last key and count on its budgets, so making keys does not raise anyone's budget.
"""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from sqlalchemy import Connection, func, or_, select

from ledger.orm.identity import KeyChangeRow, KeyRow

DEEPEST = 8  # maximum depth of keys that make keys
MOST_COUNTED = 24  # maximum keys whose budgets bind one key


class KeyOrigin(NamedTuple):
    """The origin of a key, as stored in `KeyRow`."""

    line: str | None = None
    makers: tuple[str, ...] = ()
    counts_on: tuple[str, ...] = ()
    member: str | None = None

    @property
    def root(self) -> str | None:
        """Return the person or the first line that such keys come from, `None` for an admin."""
        if self.member is not None:
            return f"person {self.member}"
        return f"key {self.makers[0]}" if self.makers else None


NOBODYS = KeyOrigin()  # the origin of a key that an admin made


def follow(key_id: str, origin: KeyOrigin) -> KeyOrigin:
    """Return the origin of a key's successor, which the same budgets bind.

    After `MOST_COUNTED` keys, those in the middle of a line are left out. The first key stays, and
    all keys of the line count on it.
    """
    counts_on = (*origin.counts_on, key_id)
    if len(counts_on) > MOST_COUNTED:
        counts_on = (*counts_on[: len(origin.makers) + 1], *counts_on[len(origin.makers) + 2 :])
    return origin._replace(line=origin.line or key_id, counts_on=counts_on)


def descend(key_id: str, origin: KeyOrigin) -> KeyOrigin:
    """Return the origin of a key that this key makes."""
    makers = (*origin.makers, origin.line or key_id)
    return KeyOrigin(None, makers, (*origin.counts_on, key_id), origin.member)


def ends_of_lines(connection: Connection, lines: Collection[str]) -> Iterator[int | None]:
    """Yield the end of each line's last key: `None` if it does not end, 0 if it is over."""
    if not lines:
        return
    ends = select(func.min(KeyChangeRow.ends_us)).where(KeyChangeRow.key_id == KeyRow.id)
    query = select(
        func.coalesce(KeyRow.line, KeyRow.id), KeyRow.expires_us, ends.scalar_subquery()
    ).where(or_(KeyRow.id.in_(lines), KeyRow.line.in_(lines)), KeyRow.revoked_us.is_(None))
    found: dict[str, int | None] = dict.fromkeys(lines, 0)
    for line, expires_us, ends_us in connection.execute(query):
        known = found[line]
        over_us = min((at for at in (expires_us, ends_us) if at is not None), default=None)
        found[line] = None if known is None or over_us is None else max(known, over_us)
    yield from found.values()
