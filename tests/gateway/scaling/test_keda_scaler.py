"""What a KEDA hears over a real gRPC connection, and what it does by it."""

import threading

import grpc
import pytest

from gateway.scaling import keda_messages as messages
from gateway.scaling.keda_scaler import (
    STREAMS,
    KedaScaler,
    OrdersUnknown,
    metric_name,
    serve_keda,
)


class Orders:
    """How many engines of each pool are ordered; None: not known."""

    def __init__(self) -> None:
        self.counts: dict[str, int | None] = {"llama": 3}

    def __call__(self, pool: str) -> int:
        count = self.counts.get(pool)
        if count is None:
            raise OrdersUnknown(f"pool `{pool}` is not known")
        return count


class Client:
    """KEDA's side: it knows the names of methods and the numbers of fields."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")

    def call(self, method: str, request, answer, *, streams: bool = False):
        make = self.channel.unary_stream if streams else self.channel.unary_unary
        return make(
            f"/externalscaler.ExternalScaler/{method}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=answer.FromString,
        )(request, timeout=10)

    def metric(self, pool: str = "llama", name: str = "") -> float:
        asked = messages.GetMetricsRequest(scaledObjectRef=reference(pool), metricName=name)
        (value,) = self.call("GetMetrics", asked, messages.GetMetricsResponse).metricValues
        assert value.metricValue == value.metricValueFloat
        return value.metricValueFloat


def reference(pool: str | None):
    found = messages.ScaledObjectRef(name="engines", namespace="ml")
    if pool is not None:
        found.scalerMetadata.add(key="pool", value=pool)
    return found


@pytest.fixture
def orders() -> Orders:
    return Orders()


@pytest.fixture
def client(orders):
    server, port = serve_keda(KedaScaler(orders, look_s=0.01), "127.0.0.1:0")
    found = Client(port)
    yield found
    found.channel.close()
    server.stop(None).wait()


def test_the_metric_is_the_number_that_is_ordered(client, orders) -> None:
    spec = client.call("GetMetricSpec", reference("llama"), messages.GetMetricSpecResponse)
    (spec,) = spec.metricSpecs
    assert (spec.metricName, spec.targetSize, spec.targetSizeFloat) == (
        metric_name("llama"), 1, 1.0,
    )  # fmt: skip
    for count in (3, 0, 7):
        orders.counts["llama"] = count
        assert client.metric(name=spec.metricName) == count
        active = client.call("IsActive", reference("llama"), messages.IsActiveResponse)
        assert active.result == (count > 0)


def test_what_is_not_known_is_an_error_and_no_zero(client, orders) -> None:
    orders.counts["llama"] = None
    for method, request, answer in (
        ("IsActive", reference("llama"), messages.IsActiveResponse),
        ("GetMetrics", messages.GetMetricsRequest(scaledObjectRef=reference("llama")),
         messages.GetMetricsResponse),
    ):  # fmt: skip
        with pytest.raises(grpc.RpcError) as failed:
            client.call(method, request, answer)
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "not known" in failed.value.details()


@pytest.mark.parametrize(("pool", "name"), [(None, ""), ("llama", "other")])
def test_a_trigger_that_names_no_pool_or_another_metric_is_told(client, pool, name) -> None:
    asked = messages.GetMetricsRequest(scaledObjectRef=reference(pool), metricName=name)
    with pytest.raises(grpc.RpcError) as failed:
        client.call("GetMetrics", asked, messages.GetMetricsResponse)
    assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "pool" in failed.value.details() or "metric" in failed.value.details()


def test_a_stream_tells_each_change_once(client, orders) -> None:
    stream = client.call(
        "StreamIsActive", reference("llama"), messages.IsActiveResponse, streams=True
    )
    assert next(stream).result is True
    orders.counts["llama"] = 2  # no change of what is told
    orders.counts["llama"] = 0
    assert next(stream).result is False
    stream.cancel()


def test_streams_leave_threads_for_questions(client) -> None:
    streams = []
    for _ in range(STREAMS):
        stream = client.call(
            "StreamIsActive", reference("llama"), messages.IsActiveResponse, streams=True
        )
        next(stream)
        streams.append(stream)
    one_more = client.call(
        "StreamIsActive", reference("llama"), messages.IsActiveResponse, streams=True
    )
    with pytest.raises(grpc.RpcError) as failed:
        next(one_more)
    assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    answers: list[float] = []
    asking = [threading.Thread(target=lambda: answers.append(client.metric())) for _ in range(8)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(20)
    assert answers == [3.0] * 8
    for stream in streams:
        stream.cancel()


def test_an_address_in_use_is_told(client) -> None:
    with pytest.raises(OSError, match=r"cannot listen on .* for KEDA"):
        serve_keda(KedaScaler(Orders()), f"127.0.0.1:{client.port}")
