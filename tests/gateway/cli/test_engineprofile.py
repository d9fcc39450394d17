"""`breakeven engine profile` against an engine that answers as vLLM does, and one without it."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app

TRACE = {"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, "dur": 75},
    {"ph": "X", "cat": "kernel", "name": "softmax", "ts": 100, "dur": 25},
]}  # fmt: skip
TOKENS = [{"choices": [{"text": "a"}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}]


@pytest.fixture
def vllm(tmp_path):
    """Started with a profiler (`.profiler = False`: without); `asked` is what it was asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            server.asked.append(self.path)
            if self.path == "/v1/completions":
                body = b"".join(
                    f"data: {json.dumps(token)}\n\n".encode() for token in server.tokens
                )
                return self.answer(200, body)
            if self.path == "/stop_profile" and server.traced:
                (tmp_path / "rank0.pt.trace.json").write_text(json.dumps(TRACE))
            return self.answer(200 if server.profiler else 404, b"")

        def answer(self, status, body):
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.tokens, server.profiler, server.traced = [], TOKENS, True, True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def profile(vllm, tmp_path):
    url = f"http://127.0.0.1:{vllm.server_port}/v1"

    def run(*words: str):
        command = ["engine", "profile", url, "--model", "m", "--traces", str(tmp_path), *words]
        return CliRunner().invoke(app, command)

    return run


def test_the_kernels_of_a_recorded_load_are_shown(profile, vllm):
    answer = profile("--users", "2", "--tokens", "1", "--json")
    assert answer.exit_code == 0, answer.stderr
    document = json.loads(answer.stdout)
    assert [(kernel["name"], kernel["share"]) for kernel in document["kernels"]] == [
        ("gemm", 0.75), ("softmax", 0.25),
    ]  # fmt: skip
    assert vllm.asked[0] == "/start_profile"
    assert vllm.asked[1:3] == ["/v1/completions"] * 2
    assert vllm.asked[3:] == ["/stop_profile"]


def test_its_own_traffic_is_recorded_without_ours(profile, vllm):
    answer = profile("--seconds", "0.1")
    assert answer.exit_code == 0, answer.stderr
    assert vllm.asked == ["/start_profile", "/stop_profile"]
    assert "2 kernels of the GPU" in answer.stdout
    assert "75.0%" in answer.stdout
    assert "0.1 ms of work within 0.1 ms (80%)" in answer.stdout


def test_an_engine_without_a_profiler_is_told_what_it_lacks(profile, vllm):
    vllm.profiler = False
    answer = profile("--seconds", "0.1")
    assert answer.exit_code == 1
    assert "start it with --profiler-config.profiler=torch" in answer.stderr.replace("\n", " ")
    assert vllm.asked == ["/start_profile"]


def test_the_profiler_is_stopped_where_the_load_breaks(profile, vllm):
    vllm.tokens = []
    answer = profile("--users", "1")
    assert answer.exit_code == 1
    assert "has no usage" in answer.stderr
    assert vllm.asked == ["/start_profile", "/v1/completions", "/stop_profile"]


def test_a_folder_that_no_trace_comes_to_is_named(profile, vllm):
    vllm.traced = False
    answer = profile("--seconds", "0.1")
    assert answer.exit_code == 1
    assert "torch_profiler_dir" in answer.stderr.replace("\n", " ")
