"""Hits and imported spending are shown, and the figures of the period stay as they are."""

import re
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import create_engine, insert

from ledger.orm.tables import CacheHitRow
from ledger.spend_history import HistoryCell, HistorySums, replace_day

CELL = HistoryCell("acme", "search", "k", "ann", "chat", "openai")
HIT = {
    "key_id": "k", "user_id": None, "team_id": "search", "org_id": "acme", "kind": "chat",
    "stream": False, "model": "chat", "policy": "plain", "target": "openai/x", "age_us": 1,
    "answered_by": "r0", "input_tokens": 1, "output_tokens": 1, "tags": None,
}  # fmt: skip


def test_they_stand_beside_the_sums(month, page, text_of, tmp_path) -> None:
    before = text_of(page("spend", month.url))
    assert "response cache" not in before
    assert "Imported from" not in before
    file = tmp_path / "ledger.db"
    shutil.copy(Path(month.url.removeprefix("sqlite:///")), file)
    engine, now_us = create_engine(f"sqlite:///{file}"), time.time_ns() // 1000 - 3_600_000_000
    rows = [
        HIT | {"request_id": "h1", "hit_us": now_us, "backend": "api", "engine_us": 0,
               "avoided_pusd": 3 * 10**12},
        HIT | {"request_id": "h2", "hit_us": now_us, "backend": "own", "engine_us": 5 * 10**6,
               "avoided_pusd": 9 * 10**12},
    ]  # fmt: skip
    day = datetime.fromtimestamp(now_us / 1e6, UTC).date().isoformat()
    with engine.begin() as connection:
        connection.execute(insert(CacheHitRow), rows)
        replace_day(connection, "litellm:db/x", day, {CELL: HistorySums(4, 0, 1, 1, 7 * 10**12)})
    engine.dispose()
    shown = text_of(page("spend", f"sqlite:///{file}"))
    assert "Avoided by the response cache" in shown
    assert re.search(r"2 requests got an earlier answer; own engines were spared 5 s", shown)
    assert re.search(r"Imported from litellm:db/x: .*7\.00 for 4 requests", shown)
    totals = re.compile(r"Total\W+([^ ]+)")
    assert totals.findall(shown)[:1] == totals.findall(before)[:1]
