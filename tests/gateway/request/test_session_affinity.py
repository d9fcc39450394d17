"""A bounded memory of where sessions went."""

from gateway.request.session_affinity import SessionAffinity


def test_the_last_target_is_remembered_and_the_oldest_session_forgotten() -> None:
    sessions = SessionAffinity(limit=2)
    sessions.remember("a", "x")
    sessions.remember("b", "x")
    sessions.remember("a", "y")
    sessions.remember("c", "x")
    assert [sessions.target(name) for name in "abc"] == ["y", None, "x"]
