"""A stand-in for the engine's environment: a script that answers like vLLM, in milliseconds.

It speaks just enough of the command line and of HTTP for supervision and probing to be exercised;
what real vLLM does is tested under tests/real.
"""

import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.engine.environment import Environment, EnvironmentStamp
from backends.engine.flags import EngineLaunch
from backends.engine.supervisor import EngineSpec, SupervisorLimits

FAKE = """
import http.server, json, os, signal, subprocess, sys, threading, time
words = sys.argv[1:]
if "--help=all" in words:
    print("usage: fake [-h] [--model MODEL]")
    for flag in ("--model MODEL", "--served-model-name NAME", "--host HOST", "--port PORT",
                 "--shutdown-timeout S", "--enforce-eager, --no-enforce-eager", "--runner R",
                 "--enable-auto-tool-choice", "--tool-call-parser P", "--behave B",
                 "--max-model-len N", "--otlp-traces-endpoint E"):
        print("  " + flag)
    sys.exit(0)
option = lambda name, default: words[words.index(name) + 1] if name in words else default
behave, state = option("--behave", "well"), os.path.dirname(words[words.index("serve") + 1])
lives = os.path.join(state, "lives")
with open(lives, "a") as file:
    file.write("x")
life = os.path.getsize(lives)
print("fake engine, life", life, flush=True)
if behave == "crash" or (behave == "crash-once" and life == 1):
    print("RuntimeError: no memory left", flush=True)
    sys.exit(3)
adapters = words[words.index("--lora-modules") + 1 :] if "--lora-modules" in words else []
for adapter in adapters[: next((i for i, w in enumerate(adapters) if w[:2] == "--"), None)]:
    name, path = adapter.split("=")
    if os.path.exists(os.path.join(path, "broken")):
        print("  in init_static_loras" + chr(10) + "ValueError: no such modules", flush=True)
        sys.exit(1)
    print(f"Loaded new LoRA adapter: name '{name}', path '{path}'", flush=True)
# A worker in a session of its own, as careless engines leave them.
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                          start_new_session=True)
with open(os.path.join(state, "worker.pid"), "w") as file:
    file.write(str(worker.pid))

PAGE = "".join("vllm:" + line + chr(10) for line in (
    "num_requests_running 1", "num_requests_waiting 0", "num_preemptions_total 0",
    "prompt_tokens_total 5", "generation_tokens_total 5", "kv_cache_usage_perc 0.5"))

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def answer(self, status, document):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        if behave == "deaf" and life == 1 and os.path.exists(os.path.join(state, "deaf")):
            return self.answer(500, {})
        if self.path == "/metrics":
            return self.answer(200, PAGE.encode())
        if self.path.endswith("/models"):
            return self.answer(200, {"data": [{"id": "fake", "max_model_len": 4096}]})
        self.answer(200, {})
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if os.path.exists(os.path.join(state, "stuck")) and life == 1:
            time.sleep(600)
        if behave == "sick":
            return self.answer(500, {"error": {"message": "EngineCore died"}})
        if not body.get("stream"):
            return self.answer(200, {"choices": [{"text": "x"}], "data": [{}]})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        prompt = len(body["prompt"].split())
        time.sleep(0.002 + prompt * 5e-6)
        for count in range(1, body["max_tokens"] + 1):
            time.sleep(0.02 if behave == "paced" else 0.001)
            usage = {"prompt_tokens": prompt, "completion_tokens": count}
            if behave == "no-usage":
                usage = None
            self.wfile.write(b"data: " + json.dumps({"usage": usage}).encode() + b"\\n\\n")
        self.wfile.write(b"data: [DONE]\\n\\n")
        self.close_connection = True

if behave == "deaf-late":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if behave in ("late", "deaf-late") and life == 1:
    time.sleep(600)
if behave == "sharing":
    http.server.ThreadingHTTPServer.allow_reuse_port = True
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(option("--port", "0"))), Handler)
stop = lambda *_: threading.Thread(target=server.shutdown).start()
signal.signal(signal.SIGTERM, signal.SIG_IGN if behave == "stubborn" else stop)
server.serve_forever()
worker.kill()
"""


@pytest.fixture
def fake_environment(tmp_path: Path) -> Environment:
    environment = Environment(tmp_path / "environment")
    script = tmp_path / "fake_engine.py"
    script.write_text(FAKE)
    environment.python.parent.mkdir(parents=True)
    # As an interpreter is called: `python -m MODULE ...` reaches the script with the rest.
    environment.python.write_text(f'#!/bin/sh\nshift 2\nexec {sys.executable} {script} "$@"\n')
    environment.python.chmod(environment.python.stat().st_mode | stat.S_IXUSR)
    environment.write_stamp(EnvironmentStamp("lock", "cpu", "0.0"))
    return environment


@pytest.fixture
def fake_spec(fake_environment: Environment, tmp_path: Path) -> Callable[..., EngineSpec]:
    """Makes a spec whose engine behaves as told; limits are those of a quick test."""

    def make(behave: str = "well", **limits: float) -> EngineSpec:
        model = tmp_path / "models" / "fake"
        model.mkdir(parents=True, exist_ok=True)
        launch = EngineLaunch(
            fake_environment, model, "fake", flags=("--behave", behave), drain_s=0.2
        )
        quick = {"poll_s": 0.02, "watch_s": 0.05, "backoff_first_s": 0.05}
        return EngineSpec(
            "fake", launch, tmp_path / "engine.log", limits=SupervisorLimits(**quick | limits)
        )

    return make
