"""Record what clients send, for `test_replays.py`: `PYTHONPATH=. python tests/sdk/record.py NAME`.

Without a name all of them are recorded.

Runs the clients of `RECORDED` in front of a gateway whose upstream makes them run a tool, and
writes what each sent to `recorded/NAME.json`: method, path, the headers that an API reads and the
body, its long texts cut, and the names that the gateway had given to answers, items and calls.
"""

import json
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from loop_agents import Place, run_agent
from loop_gateway import opened_gateway
from loop_programs import command_of, packages_of, said_by

HERE = Path(__file__).parent
RECORDED = {  # client: the program and its check, or a coding agent
    "ai-sdk-responses-turns": ("loop_checks", "ai_responses_turns"),
    "ai-sdk-messages-loop": ("loop_checks", "ai_anthropic_stream"),
    "langchain-js-responses": ("loop_checks", "langchain_responses_agent"),
    "agent-framework-session": ("kernel_checks", "framework_session"),
    "semantic-kernel-responses": ("kernel_checks", "kernel_responses"),
    "litellm-azure": ("guide_checks", "litellm_azure"),
    "litellm-messages": ("guide_checks", "litellm_anthropic"),
    "dspy-document": ("guide_checks", "dspy_document"),
    "crewai": ("agno_checks", "crewai_chat"),
    "smolagents": ("agno_checks", "smolagents_tools"),
    "claude-code": ("agents", "claude-code"),
    "codex-gpt-5.5": ("agents", "codex-gpt-5.5"),
    "codex-gpt-5.6-sol": ("agents", "codex-gpt-5.6-sol"),
    "opencode": ("agents", "opencode"),
    "continue": ("agents", "continue"),
    "cline": ("agents", "cline"),
}
TEXT_LIMIT = 48
READ_HEADERS = ("content-type", "accept", "user-agent", "openai-", "anthropic-", "x-stainless-",
                "x-litellm", "originator", "session")  # fmt: skip
NAMES = re.compile(r'"(?:id|call_id|tool_call_id|item_id)": ?"([^"]+)"')


def names_in(answer: str) -> list[str]:
    """Names that an answer gives, each once and in their order."""
    return list(dict.fromkeys(NAMES.findall(answer)))


def shortened(value: Any) -> Any:
    """The same form, with texts of a few words: nobody's prompts are kept here."""
    if isinstance(value, dict):
        return {
            key: item if key in {"arguments", "encrypted_content"} else shortened(item)
            for key, item in value.items() if key != "$schema"
        }  # fmt: skip
    if isinstance(value, list):
        return [shortened(item) for item in value]
    if isinstance(value, str) and len(value) > TEXT_LIMIT:
        return value[: TEXT_LIMIT // 2].rstrip() + " ..."
    return value


class Recorder(BaseHTTPRequestHandler):
    """Passes a request on to the gateway, and keeps it with the names of its answer."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        self.forward(self.rfile.read(length))

    def do_GET(self) -> None:
        self.forward(b"")

    def forward(self, body: bytes) -> None:
        headers = {key.lower(): value for key, value in self.headers.items()}
        dropped = {"host", "connection", "content-length", "accept-encoding", "transfer-encoding"}
        sent = {key: value for key, value in headers.items() if key not in dropped}
        answer = httpx.request(
            self.command, self.server.root + self.path, headers=sent, content=body, timeout=60,
            trust_env=False,
        )  # fmt: skip
        if self.command == "POST":
            kept = {key: value for key, value in sent.items() if key.startswith(READ_HEADERS)}
            self.server.kept.append({
                "path": self.path, "headers": kept, "body": shortened(json.loads(body)),
                "status": answer.status_code, "names": names_in(answer.text),
            })  # fmt: skip
        self.send_response(answer.status_code)
        for key in ("content-type", "x-request-id"):
            if key in answer.headers:
                self.send_header(key, answer.headers[key])
        self.send_header("content-length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *_: object) -> None:
        pass


def record(name: str, gateway: Any, folder: Path) -> list[dict]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    server.root, server.kept = gateway.root, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root, key = f"http://127.0.0.1:{server.server_address[1]}", gateway.key(team=name)
    program, check = RECORDED[name]
    if program == "agents":
        run_agent(check, Place(folder, f"{root}/v1", key, packages_of("agents")))
    else:
        environ = {"PATH": os.environ["PATH"], "HOME": str(folder),
                   "OPENAI_BASE_URL": f"{root}/v1", "OPENAI_API_KEY": key,
                   "ANTHROPIC_BASE_URL": root, "ANTHROPIC_API_KEY": key}  # fmt: skip
        said_by([*command_of(program, folder), check], folder, environ)
    server.shutdown()
    server.server_close()
    return server.kept


def main(wanted: list[str]) -> None:
    with opened_gateway({}) as (gateway, folder):
        for name in wanted or RECORDED:
            place = folder / name
            place.mkdir()
            kept = record(name, gateway, place)
            text = "".join(f"{json.dumps(each, separators=(',', ':'))}\n" for each in kept)
            (HERE / "recorded" / f"{name}.jsonl").write_text(text, encoding="utf-8")
            print(name, len(kept), len(text), [each["status"] for each in kept], flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
