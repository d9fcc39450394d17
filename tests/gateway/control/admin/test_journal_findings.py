"""Findings in journals over HTTP: operators read them, and acknowledge them with the right to."""

from sqlalchemy import insert

from ledger.journals.findings import JournalFinding, LackingBound
from ledger.orm import tables as orm
from ledger.writing.findings import finding_row

PATH = "/v1/organization/journal_findings"


def add_finding(stack, offset: int) -> str:
    bound = LackingBound(None, 3 * 10**10)
    found = JournalFinding("worker-9-x", "worker-9", 1, offset, 5, 2, "why", bound)
    with stack.database.begin() as connection:
        connection.execute(insert(orm.JournalFindingRow), [finding_row(found, "h", 7)])
    return f"worker-9-x:1:{offset}"


def test_operators_read_and_acknowledge_them(stack) -> None:
    places = [add_finding(stack, offset) for offset in (1, 2)]
    reader = stack.key("findings-reader", scopes=("operations",))
    answer = stack.get(PATH + "?journal=worker-9-x", reader.token)
    assert answer.status_code == 200
    first, _ = answer.json()["data"]
    assert (first["place"], first["after"], first["missing"]) == (places[0], 5, 2)
    assert (first["at_most_usd"], first["within_budgets_usd"]) == (None, "0.030000000000")
    assert stack.get(PATH + "?journal=other", reader.token).json()["data"] == []
    body = {"places": places[:1], "note": "seen"}
    assert stack.post(PATH + "/acknowledge", body, reader.token).status_code == 403
    assert stack.get(PATH).status_code == 403

    operator = stack.key("findings", scopes=("operations:apply",))
    answer = stack.post(PATH + "/acknowledge", body, operator.token)
    assert (answer.status_code, answer.json()["acknowledged"]) == (200, places[:1])
    left = stack.get(PATH + "?journal=worker-9-x", operator.token).json()["data"]
    assert [each["place"] for each in left] == places[1:]
    again = stack.post(PATH + "/acknowledge", body, operator.token)
    assert (again.status_code, again.json()["error"]["param"]) == (400, "places")
    assert stack.post(PATH + "/acknowledge", {}, operator.token).status_code == 400
    assert stack.post(PATH + "/acknowledge", {"whole": True}, operator.token).status_code == 200
    assert stack.get(PATH, operator.token).json()["data"] == []
