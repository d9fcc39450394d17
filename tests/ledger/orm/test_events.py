"""The cursor's row has one feed each."""

from ledger.orm.events import EventCursorRow


def test_a_feed_has_one_cursor() -> None:
    assert [column.name for column in EventCursorRow.__table__.primary_key] == ["feed"]
