"""Claims over HTTP: finance reads them, and waives them with the right to apply."""

import pytest

PATH = "/v1/organization/claims"


@pytest.mark.parametrize("query", ["", "?team=search&whole=true&limit=1000"])
def test_finance_reads_them(stack, query) -> None:
    reader = stack.key("claims-reader" + str(len(query)), scopes=("invoices",))
    answer = stack.get(PATH + query, reader.token)
    assert (answer.status_code, answer.json()) == (200, {"object": "list", "data": []})
    assert stack.post(PATH + "/waive", {"attempts": ["r1.1"]}, reader.token).status_code == 403
    assert stack.get(PATH).status_code == 403


def test_what_has_no_claim_is_not_waived(stack) -> None:
    finance = stack.key("claims", scopes=("invoices:apply",))
    answer = stack.post(PATH + "/waive", {"attempts": ["r1.1"]}, finance.token)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "attempts")
    assert "No claim of attempt r1.1" in answer.json()["error"]["message"]
    assert stack.post(PATH + "/waive", {"attempts": []}, finance.token).status_code == 400
