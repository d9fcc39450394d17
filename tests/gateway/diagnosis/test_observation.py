"""Findings are plain data, for people and for programs."""

import json

from gateway.diagnosis.observation import DoctorVerdict, failed, fine, noted, warned


def test_each_verdict_has_its_word() -> None:
    found = [fine("a", "b"), noted("a", "b"), warned("a", "b", "c"), failed("a", "b", "c")]
    assert [finding.verdict for finding in found] == list(DoctorVerdict)
    assert json.loads(json.dumps(found[3]._asdict())) == {
        "subject": "a", "verdict": "error", "words": "b", "fix": "c",
    }  # fmt: skip
