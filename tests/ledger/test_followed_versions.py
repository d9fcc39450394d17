"""What workers follow is read again after a commit or at a window's begin, and published."""

import os

from sqlalchemy import event, insert, update

from ledger.budgets.budget_snapshot import read_budgets
from ledger.budgets.entered import BudgetSpec
from ledger.declared import declare
from ledger.followed_versions import FollowedVersions
from ledger.identity.keyring import KeyGeneration
from ledger.identity.tokens import GENERATION
from ledger.orm import tables as orm

NOW_US = 1_795_435_200_000_000
DAY_US = 86_400 * 10**6
SPEC = BudgetSpec("global", "day", 1_000, hard=True, timezone="UTC")


def test_the_books_are_read_again_after_a_commit_and_in_a_new_window(engine, tmp_path) -> None:
    """Red without the watch: five times a second everything is read."""
    declare(engine, contracts=(), budgets=(SPEC,), config=("c", "c"), at_us=NOW_US)
    read: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *given: read.append(given[2]))
    followed = FollowedVersions(engine, tmp_path, lambda at_us: read_budgets(engine, "h1", at_us))
    first = followed.read(NOW_US)
    seen = len(read)
    assert followed.read(NOW_US + 1) == first
    is_watched = engine.dialect.name == "sqlite"
    assert (len(read) == seen) is is_watched
    with engine.begin() as connection:
        connection.execute(insert(orm.MetaRow).values(name=GENERATION, value=7))
    assert followed.read(NOW_US + 2).keys == 7
    seen = len(read)
    assert followed.read(NOW_US + 2 * DAY_US).keys == 7
    assert len(read) > seen
    followed.close()


def test_the_newest_numbers_are_published(engine, tmp_path) -> None:
    with engine.begin() as connection:
        connection.execute(insert(orm.MetaRow).values(name=GENERATION, value=7))
    followed = FollowedVersions(engine, tmp_path, lambda at_us: read_budgets(engine, "h1", at_us))
    followed.publish(followed.read(NOW_US))
    assert KeyGeneration(tmp_path).read() == 7
    with engine.begin() as connection:
        connection.execute(update(orm.MetaRow).values(value=8))
    followed.publish(followed.read(NOW_US))
    assert KeyGeneration(tmp_path).read() == 8
    followed.close()


def test_what_was_read_is_current_until_a_commit_or_a_window(engine, tmp_path) -> None:
    """An idle writer asks this five times a second instead of reading."""
    declare(engine, contracts=(), budgets=(SPEC,), config=("c", "c"), at_us=NOW_US)
    followed = FollowedVersions(engine, tmp_path, lambda at_us: read_budgets(engine, "h1", at_us))
    assert not followed.is_current(NOW_US)
    followed.read(NOW_US)
    if engine.dialect.name == "sqlite":
        for path in (engine.url.database, f"{engine.url.database}-wal"):
            os.utime(path, ns=(1, 1))
        followed.read(NOW_US)
        assert followed.is_current(NOW_US + 1)
        assert not followed.is_current(NOW_US + 2 * DAY_US)
    with engine.begin() as connection:
        connection.execute(insert(orm.MetaRow).values(name=GENERATION, value=7))
    assert not followed.is_current(NOW_US + 1)
    followed.close()
