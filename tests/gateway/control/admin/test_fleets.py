"""Fleets over HTTP: who may look, who may pause, and that no call changes what starts engines."""

PATH = "/v1/organization/fleet"


def test_who_may_read_contracts_reads_and_who_operates_pauses(stack) -> None:
    reader = stack.key("fleet-reader", scopes=("contracts",))
    answer = stack.get(PATH, reader.token)
    assert answer.status_code == 200
    assert answer.json() == {"object": "list", "data": []}  # no pool of this stack sizes itself
    assert stack.get(PATH).status_code == 403
    assert stack.get(f"{PATH}/plan", reader.token).json()["data"] == []
    refused = stack.get(f"{PATH}/changes?pool=main", reader.token)
    assert refused.status_code == 400
    assert refused.json()["error"]["param"] == "pool"
    assert "There is no pool `main` with `scale`" in refused.json()["error"]["message"]
