"""The SDK as it is set up: headers, what is off, and an end that comes also without a collector."""

import socket
import threading

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from gateway.clock import Clock
from gateway.config.schema_otel import OpenTelemetrySection
from gateway.telemetry.otel.exporting import OtelObserver, make_otel_observer
from gateway.telemetry.otel.genai import GenAi
from gateway.telemetry.otel.sending import ExportCounters

NAMES = (frozenset({"chat"}), frozenset({"pool:main/0"}))


def made(environ: dict[str, str] | None = None, **members) -> OtelObserver:
    settings = OpenTelemetrySection(**members)
    return make_otel_observer(settings, "host/0", NAMES, Clock(), environ or {}, None)


@pytest.fixture
def deaf():
    """An address that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def tell(found: OtelObserver, plan, step, ending) -> None:
    story = found.start_trace("req_1", "/v1/x", [])
    story.on_decided(0.0, plan())
    story.on_dispatched("req_1.1", 1, plan(), step())
    story.on_settled(ending())
    story.on_ended(200, None)


@pytest.mark.parametrize("away", ["deaf", "closed"])
def test_it_ends_without_its_collector(away, deaf, free_port, plan, step, ending) -> None:
    """Well within `EXPORT_S` each; that it returns at all is what is asked."""
    endpoint = deaf if away == "deaf" else f"http://127.0.0.1:{free_port}"
    found = made(endpoint=endpoint)
    tell(found, plan, step, ending)
    found.close()
    tell(found, plan, step, ending)  # a late ending is dropped


def test_a_worker_does_not_wait_for_the_sdk_to_end(free_port, monkeypatch) -> None:
    """It waits half a minute for a collector that trickles, and there are two of them."""
    released, waited = threading.Event(), []
    monkeypatch.setattr(TracerProvider, "shutdown", lambda _: waited.append(released.wait(20)))
    made(endpoint=f"http://127.0.0.1:{free_port}").close()
    assert waited == []
    released.set()


def test_an_end_in_order_says_nothing(there, plan, step, ending, caplog) -> None:
    found = made(endpoint=there.base)
    tell(found, plan, step, ending)
    found.close()
    assert caplog.text == ""


def test_a_collector_that_sends_on_is_a_failure_in_the_log(
    there, plan, step, ending, caplog
) -> None:
    there.way = "elsewhere"
    found = made(endpoint=there.base, metrics=False)
    tell(found, plan, step, ending)
    found.close()
    assert "not followed" in caplog.text


def test_what_is_off_is_not_made(free_port, plan, step, ending) -> None:
    found = made(endpoint=f"http://127.0.0.1:{free_port}", traces=False, metrics=False)
    tell(found, plan, step, ending)
    assert found.start_trace("req_1", "/v1/x", []).on_dispatched("req_1.1", 1, plan(), step()) == {}
    found.close()


def test_an_attempt_that_was_never_sent_is_no_news(free_port, ending, monkeypatch) -> None:
    counted = []
    monkeypatch.setattr(GenAi, "record_attempt", lambda *told: counted.append(told))
    found = OtelObserver(
        OpenTelemetrySection(endpoint=f"http://127.0.0.1:{free_port}", traces=False),
        Resource({}), {}, NAMES, Clock(), ExportCounters(None),
    )  # fmt: skip
    found.start_trace("req_1", "/v1/x", []).on_settled(ending())
    assert counted == []
    found.close()
