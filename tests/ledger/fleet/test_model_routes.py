"""Routes that the configuration declares: stored once, changed where they change."""

from ledger.fleet.model_routes import ModelRoute, RouteApi, read_routes, record_routes

CHAT = ModelRoute(
    "chat", "any", (RouteApi("sim/x", "a/x", 12_000), RouteApi("b/y", "b/y", None, True))
)
INSIDE = ModelRoute("inside", "internal_only", ())


def test_what_was_declared_is_read_and_only_changes_are_written(engine) -> None:
    assert record_routes(engine, [CHAT, INSIDE], at_us=1) == 2
    assert record_routes(engine, [CHAT, INSIDE], at_us=2) == 0
    moved = ModelRoute("inside", "any", CHAT.apis)
    assert record_routes(engine, [moved], at_us=3) == 1
    with engine.connect() as connection:
        assert read_routes(connection) == {"chat": CHAT, "inside": moved}
