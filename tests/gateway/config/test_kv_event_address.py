"""Where engines tell of their prefix caches: a socket of ours, or what was named."""

import pytest

from gateway.config.kv_event_address import kv_events_address, socket_path
from gateway.config.settings import parse

GPU = "gpu: {type: H100, usd_per_hour: 2}"


def settings(engine: str):
    return parse(
        f"state_dir: /s\npools: {{a: {{engine: {{model: /m, {engine}}}, {GPU}}}}}\n"
        "models: {m: {targets: ['pool:a'], compare_with: [openai/gpt-4o-mini]}}\n",
        name="test",
    )


@pytest.mark.parametrize(
    ("engine", "found"),
    [
        ("replicas: 2", [None, None]),
        ("replicas: 2, kv_events: true", ["ipc:///s/run/kv-a-0", "ipc:///s/run/kv-a-1"]),
        (
            (
                "endpoints: ['http://h:1/v1', 'http://h:2/v1'],"
                " kv_events: ['tcp://h:5557', 'tcp://*:5558']"
            ),
            ["tcp://h:5557", "tcp://*:5558"],
        ),
        ("endpoints: ['http://h:1/v1']", [None]),
        (
            "replicas: 1, endpoints: ['http://h:1/v1'], kv_events: ['tcp://h:5557']",
            [None, "tcp://h:5557"],
        ),
    ],
)
def test_each_seat_has_its_own(engine: str, found: list) -> None:
    read = settings(engine)
    assert [kv_events_address(read, "a", index) for index in range(len(found))] == found


def test_only_a_sockets_address_has_a_path() -> None:
    assert socket_path("ipc:///s/run/kv-a-0") == "/s/run/kv-a-0"
    assert socket_path("tcp://h:5557") == ""
