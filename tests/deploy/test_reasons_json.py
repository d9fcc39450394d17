"""The file that ledger and dashboard read is the router's table."""

import json

from deploy import reasons_json
from router.reasons import Reason


def test_the_written_file_is_what_the_table_says() -> None:
    written = reasons_json.WRITTEN.read_text(encoding="utf-8")
    assert written == reasons_json.text(), "run `make settings`"


def test_it_has_a_line_for_each_reason_in_order() -> None:
    assert list(json.loads(reasons_json.text())) == [reason.value for reason in Reason]


def test_it_is_written_where_the_ledger_reads_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(reasons_json, "WRITTEN", tmp_path / "reasons.json")
    reasons_json.main()
    assert (tmp_path / "reasons.json").read_text(encoding="utf-8") == reasons_json.text()
