"""What one request of ten kilobytes makes a worker hold, and how long that worker works for it.

A worker of its own tells it: the most that Python held beyond what it held before (`tracemalloc`),
and the CPU time of the whole process, between a request's first byte and its answer's last. The
shapes are those that cost most when they are opened: short values, deep ones, escapes, copies.
The target answers each in a few bytes, so that nothing of an answer is in the figures.
"""

import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

LIMIT = 10 * 1024
TIMES = 30  # of `LIMIT`, whatever was sent; the goal is 20, and no worker is brought down by 100
CPU_TIMES = 20  # of a request that asks one word
REPEATS = 3
ASKED = '{"model":"%s","max_tokens":1,'
USER = '"messages":[{"role":"user","content":"hi"}]'
# In the worker: `t` begins to trace, `m` ends it and tells the most held, `c` the CPU time so far.
PROBE = """
import sys
if "gateway.worker" in sys.orig_argv:
    import gc, socket, threading, time, tracemalloc
    def tell():
        line = socket.create_connection(("127.0.0.1", {port}))
        while word := line.recv(1):
            said = 0
            if word == b"t":
                gc.collect()
                tracemalloc.start()
            elif word == b"m":
                said = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            else:
                said = time.process_time_ns()
            line.sendall(b"%d\\n" % said)
    threading.Thread(target=tell, daemon=True).start()
"""


class ProbedGateway:
    """A gateway with one worker, and the line to that worker's probe."""

    def __init__(self, gateway, line: socket.socket) -> None:
        self.gateway, self._line = gateway, line.makefile("rwb", buffering=0)
        headers = {"authorization": f"Bearer {gateway.key()}"}
        self._client = httpx.Client(trust_env=False, headers=headers, timeout=60)

    def close(self) -> None:
        self._client.close()
        self._line.close()

    def told(self, word: bytes) -> int:
        self._line.write(word)
        return int(self._line.readline())

    def send(self, path: str, body: bytes, content_type: str) -> None:
        headers = {"content-type": content_type}
        answer = self._client.post(self.gateway.root + path, content=body, headers=headers)
        assert answer.status_code == 200, (path, body[:80], answer.text[:300])

    def costs(self, *request: Any) -> tuple[int, float]:
        """(bytes held at most, CPU in ms), each the least of some: a worker has other work too."""
        self.send(*request)  # what is made once is made here
        held, cpu = [], []
        for _ in range(REPEATS):
            before = self.told(b"c")
            self.send(*request)
            cpu.append((self.told(b"c") - before) / 1e6)
            self.told(b"t")
            self.send(*request)
            held.append(self.told(b"m"))
        return min(held), min(cpu)


@pytest.fixture(scope="module")
def probed(
    serve, answering: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProbedGateway]:
    priced = {
        "api": ("openai/gpt-4o-mini", ["chat", "completion"]),
        "embed": ("openai/text-embedding-3-small", ["embedding"]),
        "rank": ("voyage/rerank-2.5", ["rerank"]),
        "hear": ("openai/whisper-1", ["transcription"]),
    }
    folder = tmp_path_factory.mktemp("probe")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        text = PROBE.format(port=listener.getsockname()[1])
        (folder / "sitecustomize.py").write_text(text, encoding="utf-8")
        gateway = serve(
            {
                "server": {"port": 0, "workers": 1},
                "models": {name: {"targets": [f"{name}/m"]} for name in priced},
                "providers": {
                    name: {"base_url": f"http://127.0.0.1:{answering}/v1", "simulated": True,
                           "prices_as": price, "kinds": kinds}
                    for name, (price, kinds) in priced.items()
                },
            },
            {"PYTHONPATH": str(folder), "BREAKEVEN_PRELOAD": "0"},  # its threads forbid forks
        )  # fmt: skip
        listener.settimeout(60)
        line, _ = listener.accept()
    made = ProbedGateway(gateway, line)
    yield made
    made.close()
    line.close()


def filled(begins: str, unit: str, ends: str) -> bytes:
    """As many units as fit, with commas between; `#` in one is its number."""
    room, units = LIMIT - len(begins.encode()) - len(ends.encode()), []
    while (room := room - len((made := unit.replace("#", str(len(units)))).encode()) - 1) >= 0:
        units.append(made)
    return (begins + ",".join(units) + ends).encode()


def long(begins: str, letter: str, ends: str) -> bytes:
    room = LIMIT - len(begins.encode()) - len(ends.encode())
    return (begins + letter * (room // len(letter.encode())) + ends).encode()


def deep(begins: str, opens: str, closes: str, depth: int, ends: str) -> bytes:
    return (begins + opens * depth + closes * depth + ends).encode()


def form(fields: int) -> bytes:
    """A file among many fields, in as many bytes."""
    part = '--b\r\ncontent-disposition: form-data; name="%s"\r\n\r\n%s\r\n'
    text = part % ("model", "hear") + "".join(part % (f"a{n}", "") for n in range(fields))
    file = '--b\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
    room = LIMIT - len(text) - len(file) - len("\r\n--b--\r\n")
    return (text + file + "x" * room + "\r\n--b--\r\n").encode()


CHAT, SAID, TOKENS = ASKED % "api", '"messages":[', '"prompt":['
ITEM = '{"role":"user","content":"x"}'
BLOCK = '{"type":"text","text":"x"}'
CALLED = (
    '{"role":"user","content":"x"},'
    '{"role":"assistant","content":[{"type":"tool_use","id":"#","name":"f","input":{}}]},'
    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"#","content":"x"}]}'
)
CASES = {
    "/v1/chat/completions": {
        "text": long(CHAT + '"messages":[{"role":"user","content":"', "x", '"}]}'),
        "text with one emoji": long(CHAT + '"messages":[{"role":"user","content":"🙂', "x", '"}]}'),
        "escapes": long(CHAT + '"messages":[{"role":"user","content":"', "\\u00e9", '"}]}'),
        "messages": filled(CHAT + SAID, ITEM, "]}"),
        "messages, streamed": filled(CHAT + '"stream":true,' + SAID, ITEM, "]}"),
        "spaced messages": filled(CHAT.replace(",", " , ") + SAID, " " + ITEM, "]}"),
        "parts": filled(CHAT + '"messages":[{"role":"user","content":[', BLOCK, "]}]}"),
        "members": filled(CHAT + USER + ",", '"mem#":0', "}"),
        "unknown lists": filled(CHAT + USER + ',"metadata":[', "[]", "]}"),
        "deep unknown lists": deep(CHAT + USER + ',"metadata":', "[", "]", 900, "}"),
        "lists in options": filled(
            CHAT + USER + ',"stream":true,"stream_options":{"x":[', "[]", "]}}"
        ),
        "objects in options": filled(
            CHAT + USER + ',"stream":true,"stream_options":{"x":[', '{"":[]}', "]}}"
        ),
        "deep options": deep(
            CHAT + USER + ',"stream":true,"stream_options":{"x":', '{"":[', "]}", 300, "}}"
        ),
        "names with escapes, and lists": filled(
            CHAT + '"messages":[{"role":"user","content":"\\u0001","x":[', "[]", "]}]}"
        ),
        "tools": filled(
            CHAT + USER + ',"tools":[', '{"type":"function","function":{"name":"f"}}', "]}"
        ),
        # As many as are taken: thousands of empty ones are refused.
        "stops": filled(CHAT + USER + ',"stop":[', f'"{170 * "x"}"', "]}"),
    },
    "/v1/completions": {
        "tokens": filled(CHAT + TOKENS, "1", "]}"),
        "tokens as 5.0": filled(CHAT + TOKENS, "1.0", "]}"),
        "large tokens": filled(CHAT + TOKENS, "1048577", "]}"),
    },
    "/v1/embeddings": {
        "texts": filled('{"model":"embed","input":[', '"xx"', "]}"),
        "tokens of each": filled('{"model":"embed","input":[', "[1,1]", "]}"),
        "tokens as 5.0": filled('{"model":"embed","input":[', "[5.0]", "]}"),
    },
    "/v1/messages": {
        "messages": filled(CHAT + SAID, ITEM, "]}"),
        "blocks": filled(CHAT + '"messages":[{"role":"user","content":[', BLOCK, "]}]}"),
        "calls": filled(CHAT + SAID, CALLED, "]}"),
        "lists in an input": filled(
            CHAT + SAID + '{"role":"user","content":"x"},{"role":"assistant","content":'
            '[{"type":"tool_use","id":"a","name":"f","input":{"x":[',
            "[]",
            ']}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}',
        ),
        "lists in a tool": filled(
            CHAT + USER + ',"tools":[{"name":"f","input_schema":{"x":[', "[]", "]}}]}"
        ),
    },
    "/v1/messages/count_tokens": {
        "messages": filled('{"model":"api",' + SAID, ITEM, "]}"),
    },
    "/v1/responses": {
        "items": filled('{"model":"api","input":[', ITEM, "]}"),
        "lists in a tool": filled(
            '{"model":"api","input":"x","tools":[{"type":"function","name":"f","parameters":{"x":[',
            "[]",
            "]}}]}",
        ),
    },
    "/v1/rerank": {
        "documents": filled('{"model":"rank","query":"x","documents":[', '"x"', "]}"),
    },
    "/v1/audio/transcriptions": {
        "fields": form(60),
        "a file": form(0),
    },
}  # fmt: skip


def test_no_request_costs_many_times_what_it_is(probed: ProbedGateway) -> None:
    plain = (CHAT + USER + "}").encode()
    floor, word_ms = probed.costs("/v1/chat/completions", plain, "application/json")
    found = {}
    for path, cases in CASES.items():
        for name, body in cases.items():
            sent = "multipart/form-data; boundary=b" if "audio" in path else "application/json"
            assert len(body) <= LIMIT
            found[f"{path} {name}"] = probed.costs(path, body, sent)
    print(f"\none word: {floor} bytes held, {word_ms:.2f} ms")
    for name, (held, ms) in sorted(found.items(), key=lambda pair: -pair[1][0]):
        print(f"{held / LIMIT:6.1f} x {ms / word_ms:6.1f} x  {name}")
    assert {name for name, (held, _) in found.items() if held > TIMES * LIMIT} == set()
    assert {name for name, (_, ms) in found.items() if ms > CPU_TIMES * word_ms} == set()
