"""Results of verify in the books: the newest first; of many findings the first, and how many."""

from ledger.verify.checks import Finding, VerifyResult
from ledger.verify.results import FINDINGS_KEPT, record_verification, verifications


def test_results_are_kept_and_read_newest_first(engine):
    many = tuple(Finding("holds_end", f"a{n}", "still held") for n in range(FINDINGS_KEPT + 3))
    good = VerifyResult(("holds_end",), (), ())
    record_verification(engine, good, actor="ada", at_us=5)
    record_verification(engine, VerifyResult(("holds_end",), many, (), 2), actor="bob", at_us=9)
    with engine.connect() as connection:
        found = verifications(connection, 10)
        assert verifications(connection, 1) == found[:1]
    assert [(finding.actor, finding.at_us, finding.is_clean) for finding in found] == [
        ("bob", 9, False),
        ("ada", 5, True),
    ]
    assert (found[0].found, found[0].disputed) == (FINDINGS_KEPT + 3, 2)
    assert found[0].findings == many[:FINDINGS_KEPT]
