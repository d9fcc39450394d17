"""Traces and metrics by OpenTelemetry: what a collector receives, and one that is not there.

The collector here takes OTLP over HTTP and reads it with OpenTelemetry's own definitions.
"""

import contextlib
import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from backends.engine import tinymodel

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
REQUEST = "breakeven.request.id"
CLIENT, FAILED = 3, 2  # a kind of span, a status
MESSAGES = [{"role": "user", "content": "a-prompt-that-stays-here"}]
ASKED = {"messages": MESSAGES, "max_tokens": 8}
FAST = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_METRIC_EXPORT_INTERVAL": "200"}


class Collector:
    """`status`: what it answers; everything that it was sent is kept."""

    def __init__(self) -> None:
        self.status = 200
        self.bodies: list[tuple[str, bytes]] = []
        self.headers: list[dict[str, str]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.bodies.append((self.path, body))
                collector.headers.append({k.lower(): v for k, v in self.headers.items()})
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def spans(self) -> list:
        return [
            span
            for path, body in list(self.bodies)
            if path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def named(self, name: str) -> list:
        return [span for span in self.spans() if span.name == name]

    def metrics(self) -> dict:
        """The newest of each name."""
        return {
            metric.name: metric
            for path, body in list(self.bodies)
            if path == "/v1/metrics"
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@contextlib.contextmanager
def listening() -> Iterator[Collector]:
    collector = Collector()
    try:
        yield collector
    finally:
        collector.close()


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with listening() as found:
        yield found


@pytest.fixture(scope="module")
def traced(faulty_with, collector):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in FAST.items():
            patch.setenv(name, value)
        yield faulty_with(
            opentelemetry={
                "endpoint": collector.url, "headers_env": "COLLECTOR", "environment": "staging",
            },
            environ={"COLLECTOR": "authorization=Bearer%20canary-otlp,x-team=sre"},
        )  # fmt: skip


@pytest.fixture(autouse=True)
def peace(traced) -> Iterator[None]:
    yield
    traced.peace()


def said(span) -> dict:
    """Its attributes, as Python has them."""

    def plain(value):
        kind = value.WhichOneof("value")
        if kind == "array_value":
            return [plain(each_value) for each_value in value.array_value.values]
        return getattr(value, kind)

    return {attribute.key: plain(attribute.value) for attribute in span.attributes}


def whole_trace(collector, patiently, request_id: str) -> list:
    """All spans of one request, once its own has come: that ends last."""

    def found():
        all_spans = collector.spans()
        traces = {
            all_span.trace_id for all_span in all_spans if said(all_span).get(REQUEST) == request_id
        }
        return [all_span for all_span in all_spans if all_span.trace_id in traces]

    return patiently(found)


def test_a_stream_is_one_trace_from_client_to_engine(traced, collector, patiently) -> None:
    given = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    answer = traced.stack.post(
        "/v1/chat/completions", {"model": "own", "stream": True, **ASKED}, **given
    )
    spans = whole_trace(collector, patiently, answer.headers["x-request-id"])
    by_name = {span.name: span for span in spans}
    assert sorted(by_name) == ["POST /v1/chat/completions", "chat own", "decide"]
    root, tried = by_name["POST /v1/chat/completions"], by_name["chat own"]
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (TRACE, PARENT)
    assert {span.parent_span_id for span in (tried, by_name["decide"])} == {root.span_id}
    assert said(root)["http.response.status_code"] == 200
    (row,) = traced.stack.settled(answer)
    told = said(tried)
    assert told["gen_ai.operation.name"] == "chat"
    assert told["breakeven.attempt.id"] == row["attempt_id"]
    assert told["breakeven.cost.pusd"] == row["cost_pusd"]
    assert told["gen_ai.usage.output_tokens"] == row["output_tokens"]
    assert told["gen_ai.response.finish_reasons"] == [row["finish_reason"]]
    assert tried.events[0].name == "gen_ai.first_token"
    assert tried.end_time_unix_nano - tried.start_time_unix_nano == row["duration_us"] * 1000
    assert root.start_time_unix_nano <= tried.start_time_unix_nano
    assert tried.start_time_unix_nano < tried.events[0].time_unix_nano <= tried.end_time_unix_nano
    head = traced.engine.seen[-1].head.lower().decode()
    assert f"traceparent: 00-{TRACE}-{tried.span_id.hex()}-01" in head


def test_an_api_is_told_nothing_of_a_trace(traced, collector, patiently) -> None:
    given = {"traceparent": f"00-{'2' * 32}-{PARENT}-01", "tracestate": "vendor=1"}
    answer = traced.stack.post("/v1/chat/completions", {"model": "api", **ASKED}, **given)
    spans = whole_trace(collector, patiently, answer.headers["x-request-id"])
    assert said(next(span for span in spans if span.kind == CLIENT))["breakeven.backend"] == "api"
    head = traced.alpha.seen[-1].head.lower()
    assert b"traceparent" not in head
    assert b"tracestate" not in head


def test_a_failed_attempt_is_an_error_and_the_next_one_a_span_of_its_own(
    traced, collector, patiently, rule
) -> None:
    answer = traced.ask("own", rule(ending="reset", after_bytes=0))
    spans = whole_trace(collector, patiently, answer.headers["x-request-id"])
    tried = [span for span in spans if span.kind == CLIENT]
    tried.sort(key=lambda item: item.start_time_unix_nano)
    assert tried[0].status.code == FAILED
    assert said(tried[0])["error.type"]
    ids = [row["attempt_id"] for row in traced.stack.settled(answer)]
    assert [said(item)["breakeven.attempt.id"] for item in tried] == ids


def test_a_refusal_is_a_trace_too(traced, collector, patiently) -> None:
    answer = traced.stack.post("/v1/chat/completions", {"model": "nobody", **ASKED})
    (root,) = whole_trace(collector, patiently, answer.headers["x-request-id"])
    assert said(root)["http.response.status_code"] == answer.status_code == 404


def test_who_is_not_sampled_by_its_client_makes_no_span(traced, collector, patiently) -> None:
    silent = "1" * 32
    given = {"traceparent": f"00-{silent}-{PARENT}-00"}
    traced.stack.post("/v1/chat/completions", {"model": "own", **ASKED}, **given)
    assert b"traceparent" not in traced.engine.seen[-1].head.lower()
    marked = traced.stack.chat("own").headers["x-request-id"]
    whole_trace(collector, patiently, marked)
    assert silent not in {span.trace_id.hex() for span in collector.spans()}


@pytest.mark.parametrize("sent", ["garbage", f"00-{'0' * 32}-{PARENT}-01", "00-" + "z" * 60, "é"])
def test_a_broken_traceparent_begins_a_new_trace(traced, collector, patiently, sent) -> None:
    given = {"traceparent": sent.encode("latin-1")}
    answer = traced.stack.post("/v1/chat/completions", {"model": "own", **ASKED}, **given)
    assert answer.status_code == 200
    spans = whole_trace(collector, patiently, answer.headers["x-request-id"])
    assert spans[0].trace_id.hex() not in (TRACE, "0" * 32)


def test_metrics_follow_the_conventions_and_no_client_adds_a_series(
    traced, collector, patiently
) -> None:
    for model in ("own", "own", "api", "nobody-1", "nobody-2"):
        traced.stack.post("/v1/chat/completions", {"model": model, **ASKED})
    finished = len(traced.stack.rows("settled_us IS NOT NULL"))

    def counted():
        found = collector.metrics().get("gen_ai.client.operation.duration")
        points = [] if found is None else list(found.histogram.data_points)
        return points if sum(point.count for point in points) >= finished else None

    points = patiently(counted)
    models = {said(point)["gen_ai.request.model"] for point in points}
    assert models <= {"own", "api"}
    tokens = collector.metrics()["gen_ai.client.token.usage"].histogram.data_points
    assert {said(point)["gen_ai.token.type"] for point in tokens} == {"input", "output"}
    assert tokens[0].explicit_bounds[:3] == [1.0, 4.0, 16.0]


def test_it_is_sent_with_its_headers_and_says_where_it_is_from(
    traced, collector, patiently
) -> None:
    traced.stack.chat("own")
    patiently(collector.spans)
    assert collector.headers[-1]["authorization"] == "Bearer canary-otlp"
    assert collector.headers[-1]["x-team"] == "sre"
    body = next(body for path, body in collector.bodies if path == "/v1/traces")
    resource = ExportTraceServiceRequest.FromString(body).resource_spans[0].resource
    told = said(resource)
    assert (told["service.name"], told["deployment.environment.name"]) == ("breakeven", "staging")
    assert told["service.instance.id"] == f"{traced.stack.runtime.host}/0"


def test_no_prompt_no_answer_and_no_key_is_sent(traced, collector, patiently) -> None:
    answer = traced.stack.post("/v1/chat/completions", {"model": "own", **ASKED})
    whole_trace(collector, patiently, answer.headers["x-request-id"])
    text = answer.json()["choices"][0]["message"]["content"].encode()
    sent = b"".join(body for _, body in collector.bodies)
    for secret in (b"a-prompt-that-stays-here", text, traced.stack.token.encode(), b"canary-otlp"):
        assert secret
        assert secret not in sent


def test_a_collector_that_is_away_costs_no_request_anything(
    faulty_with, free_port, monkeypatch
) -> None:
    for name, value in FAST.items():
        monkeypatch.setenv(name, value)
    host = faulty_with(opentelemetry={"endpoint": f"http://127.0.0.1:{free_port}"})
    assert [host.stack.chat("own").status_code for _ in range(20)] == [200] * 20


@pytest.mark.parametrize("status", [429, 500])
def test_what_is_lost_is_counted_and_spans_come_again(
    faulty_with, patiently, monkeypatch, status: int
) -> None:
    for name, value in FAST.items():
        monkeypatch.setenv(name, value)
    with listening() as collector:
        collector.status = status
        host = faulty_with(opentelemetry={"endpoint": collector.url})
        counted = 'breakeven_otel_spans_total{outcome="%s"}'

        def counts(outcome: str) -> float:
            lines = host.stack.get("/metrics").text.splitlines()
            (line,) = [line for line in lines if line.startswith(counted % outcome)]
            return float(line.rpartition(" ")[2])

        assert host.stack.chat("own").status_code == 200
        assert patiently(lambda: counts("lost") >= 3)
        assert counts("sent") == 0
        collector.status = 200
        answer = host.stack.chat("own")
        assert len(whole_trace(collector, patiently, answer.headers["x-request-id"])) >= 3
        assert patiently(lambda: counts("sent") >= 3)  # they come in one batch or in two


def test_nothing_is_loaded_where_nothing_is_said(stack) -> None:
    assert stack.app.hot._dispatcher.observer is None


@pytest.mark.long
@pytest.mark.part("vllm")
def test_a_real_engines_span_hangs_under_its_attempt(serve, engine_python, tmp_path, patiently):
    """vLLM, started by `serve`, tells the same collector: its queue, its prefill, its tokens."""
    tinymodel.make(tmp_path / "model", shape=tinymodel.TinyModelShape())
    engine = {
        "model": str(tmp_path / "model"), "served_name": "tiny", "port": 0, "replicas": 1,
        "environment": str(engine_python.parent.parent), "flags": ["--max-model-len", "2048"],
    }  # fmt: skip
    gpu = {"type": "CPU", "billing": "owned", "usd_per_hour": 0.1}
    with listening() as collector:
        gateway = serve(
            {
                "models": {"tiny": {"targets": ["pool:tiny"], "compare_with": ["openai/gpt-5.5"]}},
                "pools": {"tiny": {"engine": engine, "gpu": gpu}},
                "opentelemetry": {"endpoint": collector.url},
            }
        )
        headers = {"authorization": f"Bearer {gateway.key(team='sre')}"}
        url, body = f"{gateway.base_url}/chat/completions", {"model": "tiny", **ASKED}

        def answered():
            found = httpx.post(url, json=body, headers=headers, timeout=60, trust_env=False)
            return found if found.status_code == 200 else None

        answer = gateway.until(answered, 400)

        def both():
            spans = whole_trace(collector, patiently, answer.headers["x-request-id"])
            tried = [span for span in spans if span.kind == CLIENT]
            within = [span for span in spans if tried and span.parent_span_id == tried[0].span_id]
            return within and (tried[0], within[0])

        tried, engines = gateway.until(both, 30)
        gateway.stop()
    print(engines.name, said(engines))
    assert (
        said(engines)["gen_ai.usage.completion_tokens"] == said(tried)["gen_ai.usage.output_tokens"]
    )
    assert tried.start_time_unix_nano <= engines.start_time_unix_nano
