"""What other servers do not offer is not there; ours is what the protocol put in its place."""

from gateway.http.connection import CONNECTION, connection_of


def test_only_our_own_server_offers_a_connection() -> None:
    for scope in ({"type": "http"}, {"type": "http", "extensions": None}, {"extensions": {}}):
        assert connection_of(scope) is None
    here = object()
    assert connection_of({"extensions": {CONNECTION: here}}) is here
