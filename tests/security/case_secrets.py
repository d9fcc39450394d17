"""S3: secrets through a host that fails in every way, with every log at debug: none shows.

A provider and an engine quote what they were sent, in errors of every status and in answers that
break off; keys are wrong, revoked, of no scope; the webhook is away. Then every byte of what the
host wrote is searched: output, logs, journals, database, metrics, changes, exports, answers.
"""

import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from case import Case, CaseFigures, Given
from parts import ROOT, Host, eventually
from sites import CARELESS, SITE

LEAST = 12
ITS_OWN = {"pepper", "dashboard.key"}  # files that are secrets, beside what they open
MODELS = ("quoted", "env/m", "file/m", "own", "told/m", "lite/m", "none")
BREAKEVEN = "from gateway.cli.main import main; main()"
# What a host prints goes on to who started it, and into a file beside its state's.
TEED = """
import os, subprocess
tee = subprocess.Popen(["tee", {path!r}], stdin=subprocess.PIPE)
os.dup2(tee.stdin.fileno(), 1)
os.dup2(1, 2)
"""
STATUSES = (200, 400, 401, 403, 404, 413, 422, 429, 500, 502, 503)


class QuotingTarget(BaseHTTPRequestHandler):
    """A target that says in its answer all that it was sent."""

    protocol_version = "HTTP/1.1"
    count = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        QuotingTarget.count += 1
        status = STATUSES[QuotingTarget.count % len(STATUSES)]
        words = f"{self.headers} {body!r}".encode("unicode_escape").decode().replace('"', "'")
        said = f'{{"error":{{"message":"{words}","type":"x","code":"{words[:80]}"}}}}'.encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said)))
        self.send_header("x-quoted", words[:500].replace("\r", "").replace("\n", ""))
        self.end_headers()
        self.wfile.write(said[: len(said) // 2] if QuotingTarget.count % 7 == 0 else said)
        if QuotingTarget.count % 7 == 0:
            self.close_connection = True

    do_GET = do_POST  # noqa: N815  (the library's name)

    def log_message(self, *_: Any) -> None:
        return


def canaries() -> dict[str, str]:
    names = (
        "key", "revoked key", "guessed key", "provider's key", "provider's key in a file",
        "engine's key", "webhook", "webhook's secret", "kept answers' secret", "prompt", "tool",
        "user's text", "a command's output", "ledger's password",
    )  # fmt: skip
    return {name: f"cnry{place:02d}{secrets.token_hex(12)}" for place, name in enumerate(names)}


def leaked(given: Given) -> CaseFigures:
    found = canaries()
    assert len(found) >= LEAST
    with tempfile.TemporaryDirectory() as folder:
        target = ThreadingHTTPServer(("127.0.0.1", 0), QuotingTarget)
        threading.Thread(target=target.serve_forever, daemon=True).start()
        host = _host(Path(folder), found, target.server_address[1])
        kept = Path(folder) / "state/kept"
        kept.mkdir()
        (Path(folder) / "site").mkdir()
        talks = f"KEPT = {str(kept)!r}\n{SITE}" + (CARELESS if given.broken else "")
        (Path(folder) / "site/sitecustomize.py").write_text(talks)
        host.environ["PYTHONPATH"] = f"{Path(folder) / 'site'}:{ROOT}"
        host.serve = TEED.format(path=str(Path(folder) / "state/output")) + BREAKEVEN
        try:
            host.start()
            found["key"] = host.token.rpartition("_")[2]
            answers = list(_trouble(host, found, 42 if given.full else 7))
            said = _written(host, Path(folder), answers)
            said["a ledger that is away"] = _without_its_ledger(host, found)
        finally:
            host.close()
            target.shutdown()
            target.server_close()
    hits = []
    for name, text in found.items():
        for place, data in said.items():
            before, seen, _ = data.partition(text.encode())
            if seen and not (place == "answers" and name in _OWN_WORDS):
                hits.append(f"{name} in {place}")
                given.say(f"  {hits[-1]}, behind {before[-200:]!r}")
    size = f"{len(found)} secrets, {len(answers)} answers, {sum(map(len, said.values())):,} bytes"
    return CaseFigures(len(hits), f"{size}{': ' * bool(hits)}{'; '.join(hits[:6])}")


_OWN_WORDS = {"prompt", "tool", "user's text"}  # whoever asked may read what it said itself


def _host(folder: Path, found: dict[str, str], port: int) -> Any:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        away = nobody.getsockname()[1]
    (folder / "provider.key").write_text(found["provider's key in a file"])
    (folder / "command.key").write_text(found["a command's output"])
    quoting = f"http://127.0.0.1:{port}/v1"
    engine = {
        "kind": "vllm",
        "served_name": "q",
        "endpoints": [quoting],
        "api_key_env": "ENGINE_KEY",
    }
    price, compared = "openai/gpt-4o-mini", ["openai/gpt-4o-mini"]
    host = Host(
        folder / "state",
        server={
            "port": 0, "workers": 1,
            "idempotency": {"replay": {"enabled": True, "key_env": "REPLAY_KEY"}},
        },
        pools={
            "main": {"engine": {
                "kind": "simulated", "model": "h200-llama-3.1-8b-fp8", "served_name": "llama",
                "replicas": 1, "port": 0,
            }, "gpu": {"type": "H200", "usd_per_hour": "3.50"}},
            "quoting": {"engine": engine, "gpu": {"type": "H200"}},
        },
        models={
            "own": {"targets": ["pool:main"], "compare_with": compared},
            "quoted": {"targets": ["pool:quoting", "env/m"], "compare_with": compared},
            **dict.fromkeys(("env/*", "file/*", "told/*", "lite/*"), "passthrough"),
        },
        providers={
            "env": {"base_url": quoting, "api_key_env": "PROVIDER_KEY", "prices_as": price},
            "file": {
                "base_url": quoting, "api_key_file": str(folder / "provider.key"),
                "prices_as": price,
            },
            "told": {
                "base_url": quoting, "prices_as": price,
                "api_key_exec": {"argv": ["cat", str(folder / "command.key")]},
            },
            "lite": {
                "kind": "litellm", "litellm_prefix": "ollama", "base_url": quoting[:-3],
                "api_key_env": "PROVIDER_KEY", "prices_as": price,
            },
        },
        logs={"level": "debug", "format": "json"},
        budgets=[{"scope": "global", "usd": 0.0001, "period": "day", "hard": False}],
        alerts={"webhook_env": "WEBHOOK", "secret_env": "WEBHOOK_SECRET"},
    )  # fmt: skip
    host.environ.update({
        "ENGINE_KEY": found["engine's key"], "PROVIDER_KEY": found["provider's key"],
        "LITELLM_LOG": "DEBUG",
        "REPLAY_KEY": found["kept answers' secret"] * 2,
        "WEBHOOK": f"http://127.0.0.1:{away}/{found['webhook']}",
        "WEBHOOK_SECRET": found["webhook's secret"],
    })  # fmt: skip
    return host


def _trouble(host: Any, found: dict[str, str], times: int) -> Iterator[bytes]:
    """Answers, whole: heads and bodies."""
    revoked = host.key("revoked")
    found["revoked key"] = revoked.rpartition("_")[2]
    breakeven = [sys.executable, "-c", BREAKEVEN, "keys", "revoke"]
    command = [*breakeven, revoked.split("_")[1], "--config", str(host.config)]
    subprocess.run(command, cwd=ROOT, env=host.environ, capture_output=True, check=True)
    guessed = f"gw_{secrets.token_hex(8)}_{found['guessed key']}"
    tool = {"type": "function", "function": {"name": "f", "description": found["tool"]}}
    for number in range(times):
        for token in (host.token, revoked, guessed, found["guessed key"]):
            model = MODELS[number % len(MODELS)]
            body = {
                "model": model, "max_tokens": 2, "stream": number % 2 == 0, "tools": [tool],
                "messages": [{"role": "user", "content": found["prompt"]}],
                "user": "u", "metadata": {"note": found["user's text"]},
            }  # fmt: skip
            headers = {"authorization": f"Bearer {token}", "idempotency-key": f"{number}"}
            if number % 5 == 4:
                body["n"] = found["user's text"]
            answer = host.client.post(f"{host.url}/v1/chat/completions", json=body, headers=headers)
            yield str(answer.headers).encode() + answer.content
    for path in ("/v1/models", "/metrics", "/v1/organization/costs", "/openapi.json", "/readyz"):
        answer = host.get(path)
        yield str(answer.headers).encode() + answer.content


def _without_its_ledger(host: Any, found: dict[str, str]) -> bytes:
    """All that a start says whose database cannot be reached, with a password in its address."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        away = nobody.getsockname()[1]
    settings = yaml.safe_load(host.config.read_text()) | {"ledger": {"url_env": "LEDGER"}}
    config = host.state / "away.yaml"
    config.write_text(yaml.safe_dump(settings))
    password = found["ledger's password"]
    url = f"postgresql+psycopg://ledger:{password}@127.0.0.1:{away}/x"
    done = subprocess.run(
        [sys.executable, "-c", BREAKEVEN, "serve", "--config", str(config)],
        cwd=ROOT, env=host.environ | {"LEDGER": url}, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode, "it served without a ledger"
    return done.stdout + done.stderr


def _written(host: Any, folder: Path, answers: list[bytes]) -> dict[str, bytes]:
    """All that is left of it, by where it lies; the database twice: its file, and its rows."""
    breakeven, config = [sys.executable, "-c", BREAKEVEN], ["--config", str(host.config)]
    time.sleep(3.0)  # alerts are looked for every two seconds
    said = {"answers": b"".join(answers)}
    for name, words in {
        "changes": ["ledger", "changes", "--json"], "keys": ["keys", "list", "--json"],
        "report": ["ledger", "report", "--json"], "verify": ["ledger", "verify"],
        "export": ["ledger", "export", "--from", "2026-01-01", "--to", "2100-01-01"],
        "check": ["check"],
    }.items():  # fmt: skip
        done = subprocess.run(
            [*breakeven, *words, *config],
            cwd=ROOT,
            env=host.environ,
            capture_output=True,
            check=False,
        )
        said[name] = done.stdout + done.stderr
    host.process.terminate()
    host.process.wait(60)
    eventually(lambda: not host.pids("gateway.worker"))
    for path in sorted((folder / "state").rglob("*")):
        if path.is_file() and path.name not in ITS_OWN:
            said[str(path.relative_to(folder / "state"))] = path.read_bytes()
    return said


CASES = (Case("S3", "secrets found", leaked, "a log has the key, unstruck"),)
