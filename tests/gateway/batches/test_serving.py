"""What a worker has of batches, and that it has none of it when they are switched off."""


def test_switched_off_there_are_no_routes_and_no_entrance(run_stack) -> None:
    with run_stack(batches={"enabled": False}) as stack:
        assert stack.app.entrance is None
        for path in ("/v1/files", "/v1/batches"):
            assert stack.get(path).json()["error"]["code"] == "unknown_url"
            assert path not in stack.get("/openapi.json").json()["paths"]


def test_lines_count_apart_from_clients_requests(stack) -> None:
    """And learn, journal and hold as those do: one dispatcher but for planner and flights."""
    clients, lines = stack.app.hot, stack.app.entrance.hot
    mine, theirs = lines._dispatcher, clients._dispatcher
    assert mine.metering is theirs.metering
    assert mine.admission.desk is theirs.admission.desk
    assert mine.delivery is theirs.delivery
    assert mine.plans is not theirs.plans
    assert lines._metrics is not clients._metrics
