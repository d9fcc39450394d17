"""One request does not hold up the loop that all streams share, however long its prompt.

Measured is the CPU time of the worker's serving thread for one request, from its first byte to its
settled row: no part of it can have blocked the loop for longer. A busy or slow machine makes all
requests dearer, so a long prompt is compared with a short one of the same moment. A short one
takes 1.7 ms, and the goal of the data plane is 5 ms up to 128 KB: three times that.
"""

import base64
import json
import time
from pathlib import Path
from typing import Any

MOST = 3.0  # times what a short prompt takes
AGAIN = 3
MOST_LARGE = 6.0  # of a megabyte: what is read of it besides in a thread
CALM_MS = 6.0  # in 300 ms, of two workers without requests
REPEATS = 4
KB, MB = 1024, 1024 * 1024
WORDS = "How many tokens does this hold? "


def one(size: int) -> Any:
    return [{"role": "user", "content": WORDS * (size // len(WORDS))}]


def many(size: int) -> Any:
    message = {"role": "user", "content": WORDS}
    return [message] * (size // len(json.dumps(message)))


def picture(size: int) -> Any:
    address = "data:image/png;base64," + base64.b64encode(bytes(size * 3 // 4)).decode()
    return [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": address}}]}]


def escaped(size: int) -> Any:
    return [{"role": "user", "content": "\x01é\n" * (size // 14)}]


def ids(size: int) -> Any:
    return [1234] * (size // 5)


CASES = [
    ("/v1/chat/completions", "messages", one, False),
    ("/v1/chat/completions", "messages", one, True),
    ("/v1/chat/completions", "messages", many, True),
    ("/v1/chat/completions", "messages", picture, False),
    ("/v1/chat/completions", "messages", escaped, False),
    ("/v1/messages", "messages", many, False),
    ("/v1/responses", "input", many, False),
    ("/v1/completions", "prompt", ids, False),
]

# The second is the longest that the loop itself translates from another dialect.
SIZES = ((16 * KB, MOST), (31 * KB, MOST), (128 * KB, MOST), (MB, MOST_LARGE))


def cpu_ms(pids: list[int]) -> float:
    """Of the threads that serve, to the nanosecond."""
    files = [Path(f"/proc/{pid}/task/{pid}/schedstat") for pid in pids]
    return sum(int(file.read_text().split()[0]) for file in files) / 1e6


def is_calm(pids: list[int]) -> bool:
    """Whether what follows a start is over."""
    before = cpu_ms(pids)
    time.sleep(0.3)
    return cpu_ms(pids) - before < CALM_MS


class Meter:
    """Requests of one host, and what its serving thread had to do for them."""

    def __init__(self, host) -> None:
        self._host, self._pids = host, host.pids("gateway.worker")
        token = f"Bearer {host.token}"
        self._headers = {"authorization": token, "content-type": "application/json"}

    def cost_ms(self, path: str, body: bytes, *, fits: bool = True) -> float:
        before = cpu_ms(self._pids)
        url = self._host.url + path
        answer = self._host.client.post(url, content=body, headers=self._headers)
        assert answer.status_code == 200 or not fits, answer.text[:300]
        time.sleep(0.01)
        return cpu_ms(self._pids) - before

    def ratio(self, path: str, body: bytes, *, fits: bool = True) -> float:
        """To a short prompt; the least of some of each, for a worker does other things beside."""
        short, long = [], []
        for _ in range(REPEATS):
            short.append(self.cost_ms("/v1/chat/completions", SHORT))
            long.append(self.cost_ms(path, body, fits=fits))
        return min(long) / min(short)


def body_of(path: str, name: str, prompt: Any, *, stream: bool = False) -> bytes:
    members = {"model": "api", "stream": stream, name: prompt}
    if path != "/v1/responses":
        members["max_tokens"] = 9
    return json.dumps(members, separators=(",", ":")).encode()


SHORT = body_of("/v1/chat/completions", "messages", one(KB))


def test_no_prompt_blocks_the_loop(make_host, patiently, answering: int) -> None:
    host = make_host(
        workers=1,
        engines=1,
        providers={
            "p": {"base_url": f"http://127.0.0.1:{answering}/v1", "simulated": True,
                  "prices_as": "openai/gpt-4.1-mini"},
        },
        models={
            "own": {"targets": ["pool:main"], "compare_with": ["openai/gpt-4o-mini"]},
            "api": {"targets": ["p/m"]},
        },
        budgets=[{"scope": "global", "usd": 1_000_000, "period": "day", "hard": True}],
    )  # fmt: skip
    host.start()
    for _ in range(20):  # the worker has everything loaded
        host.ask("api", stream=True)
    patiently(lambda: is_calm(host.pids("gateway.worker")))
    meter, slow, report = Meter(host), [], {}
    for size, most in SIZES:
        for path, name, shape, stream in CASES:
            body = body_of(path, name, shape(size), stream=stream)
            ratio = meter.ratio(path, body)
            for _ in range(AGAIN):  # what else the machine does costs caches, now and then
                if ratio > most:
                    ratio = min(ratio, meter.ratio(path, body))
            kind = f"{path} {shape.__name__} {'stream ' if stream else ''}{size // KB} KB"
            report[kind] = round(ratio, 2)
            slow += [kind] if ratio > most else []
    print(json.dumps(report, indent=1))
    assert slow == []
    # The control: ten megabytes take longer, as the measure sees.
    body = body_of("/v1/chat/completions", "messages", one(9 * MB))
    control = meter.ratio("/v1/chat/completions", body, fits=False)
    print(f"9 MB: {control:.2f}")
    assert control > MOST
    assert host.terminate() == 0
