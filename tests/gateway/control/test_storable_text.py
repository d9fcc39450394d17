"""A character of zero in a path or a query, where the ledger is in PostgreSQL."""

import re

import pytest

from gateway.control.roles import ROLES, KeyRole
from gateway.control.storable_text import PATTERN, check_storable
from gateway.errors import RequestError

TIMES = {"start_time": 1_700_000_000}


@pytest.mark.parametrize("text", [None, "", "a", "ä\n", "a\0", "\0"])
def test_the_document_says_what_is_refused(text) -> None:
    refused = False
    try:
        assert check_storable("after", text) == text
    except RequestError as error:
        refused = error.row.status == 400 and error.param == "after"
    assert refused is (re.match(PATTERN["pattern"], text or "") is None)


def test_a_zero_in_any_path_or_query_is_the_clients_fault(
    postgres_url, run_stack, monkeypatch
) -> None:
    """Of every operation of the document; 503 told clients to come again for ever."""
    monkeypatch.setattr("gateway.host.prepare.check_durable", lambda _: None)
    with run_stack(ledger={"url": postgres_url}) as stack:
        key = stack.key("all", scopes=tuple(ROLES[KeyRole.ADMIN])).token
        headers = {"authorization": f"Bearer {key}"}
        failed, asked = [], 0
        for path, operations in stack.get("/openapi.json").json()["paths"].items():
            for method, operation in operations.items():
                for parameter in operation.get("parameters", ()):
                    if parameter["in"] not in ("path", "query"):  # a header holds no such character
                        continue
                    query = TIMES if "organization" in path else {}
                    place = re.sub("{[^}]*}", "%00" if parameter["in"] == "path" else "a", path)
                    query = query | (
                        {parameter["name"]: "\0"} if parameter["in"] == "query" else {}
                    )
                    answer = stack.client.request(
                        method.upper(), stack.url + place, params=query, headers=headers, timeout=20
                    )
                    asked += 1
                    if answer.status_code >= 500:
                        failed.append((method, path, parameter["name"], answer.status_code))
        assert failed == []
        assert asked > 20
