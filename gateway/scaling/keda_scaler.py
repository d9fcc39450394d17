"""KEDA external scaler: reports the ordered number of a pool's engines over gRPC.

A trigger names its pool: `metadata: {scalerAddress: HOST:PORT, pool: NAME}`. The metric is the
number of engines with a target of 1, so that KEDA sets exactly that many replicas. All hosts give
the same answer: it is counted in the ledger, from intents stored under the pool's lease, spend
limit and quiet hours. If the number is unknown, the answer is an error, never zero: KEDA then keeps
the replicas.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc

from gateway.scaling import keda_messages as messages

THREADS = 16  # each open `StreamIsActive` occupies one
STREAMS = THREADS - 4
LOOK_S = 1.0


class OrdersUnknown(Exception):
    """Error: the number of ordered engines is unknown; the message says why."""


class KedaScaler:
    """gRPC service; `ordered` returns a pool's ordered engines or raises `OrdersUnknown`."""

    def __init__(
        self,
        ordered: Callable[[str], int],
        *,
        look_s: float = LOOK_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._ordered, self._look_s, self._sleep = ordered, look_s, sleep
        self._streams = 0

    def is_active(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Return whether any engine is ordered; KEDA scales to and from zero by it."""
        return messages.IsActiveResponse(result=self._count(request, context) > 0)

    def stream_is_active(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        """Yield whether any engine is ordered, at first and after each change."""
        if self._streams >= STREAMS:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many streams: poll instead")
        self._streams += 1
        told: bool | None = None
        try:
            while context.is_active():
                is_active = self._count(request, context) > 0
                if is_active != told:
                    told = is_active
                    yield messages.IsActiveResponse(result=is_active)
                self._sleep(self._look_s)
        finally:
            self._streams -= 1

    def metric_spec(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Return the pool's metric with a target of 1."""
        name = metric_name(self._pool(request, context))
        spec = messages.MetricSpec(metricName=name, targetSize=1, targetSizeFloat=1.0)
        return messages.GetMetricSpecResponse(metricSpecs=[spec])

    def metrics(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Return how many engines are ordered."""
        reference = request.scaledObjectRef
        name = metric_name(self._pool(reference, context))
        if request.metricName not in ("", name):
            words = f"the metric is `{name}`, not `{request.metricName[:200]}`"
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, words)
        count = self._count(reference, context)
        value = messages.MetricValue(
            metricName=name, metricValue=count, metricValueFloat=float(count)
        )
        return messages.GetMetricsResponse(metricValues=[value])

    def _pool(self, reference: Any, context: grpc.ServicerContext) -> str:
        pool = messages.metadata_of(reference).get("pool", "")
        if not pool:
            words = "the trigger's `metadata` needs `pool`: the name of a pool that sizes itself"
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, words)
        return pool

    def _count(self, reference: Any, context: grpc.ServicerContext) -> int:
        try:
            return self._ordered(self._pool(reference, context))
        except OrdersUnknown as error:
            context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
            raise  # `abort` has raised: this is for the type checker


def metric_name(pool: str) -> str:
    """Return the name under which KEDA publishes the metric."""
    return f"breakeven-engines-{pool}"


def serve_keda(scaler: KedaScaler, address: str) -> tuple[grpc.Server, int]:
    """Start a server on `HOST:PORT`; return it and its port. Raises `OSError` if in use."""
    methods = {
        "IsActive": (scaler.is_active, messages.ScaledObjectRef, False),
        "StreamIsActive": (scaler.stream_is_active, messages.ScaledObjectRef, True),
        "GetMetricSpec": (scaler.metric_spec, messages.ScaledObjectRef, False),
        "GetMetrics": (scaler.metrics, messages.GetMetricsRequest, False),
    }
    handlers = {
        name: (
            grpc.unary_stream_rpc_method_handler if streams else grpc.unary_unary_rpc_method_handler
        )(
            method,
            request_deserializer=asked.FromString,
            response_serializer=lambda answer: answer.SerializeToString(),
        )
        for name, (method, asked, streams) in methods.items()
    }
    server = grpc.server(
        ThreadPoolExecutor(THREADS, thread_name_prefix="keda"),
        handlers=[grpc.method_handlers_generic_handler(messages.SERVICE, handlers)],
        options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", 64 * 1024)],
        maximum_concurrent_rpcs=4 * THREADS,
    )
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(f"cannot listen on {address} for KEDA: {error}") from error
    server.start()
    return server, port
