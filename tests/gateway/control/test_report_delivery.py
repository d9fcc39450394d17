"""Reports go into a folder, or say why not."""

import json

import pytest

from gateway.control.mail import NotTaken
from gateway.control.report_delivery import write_report

REPORT = {"id": "weekly:folder:1", "text": "Reduce to 1 GPU.\n", "verdict": {"gpus": 1}}


def test_a_folder_gets_text_and_json(tmp_path) -> None:
    write_report(tmp_path / "new", "weekly-2026-11-09", REPORT)
    assert (tmp_path / "new" / "weekly-2026-11-09.txt").read_text() == REPORT["text"]
    assert json.loads((tmp_path / "new" / "weekly-2026-11-09.json").read_text()) == REPORT
    (tmp_path / "file").write_text("")
    with pytest.raises(NotTaken, match="cannot write to the folder"):
        write_report(tmp_path / "file", "weekly", REPORT)
