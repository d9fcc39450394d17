"""Measurement of NIXL's speed between two processes, as one engine reads another's KV.

The owner process registers memory and waits. The reader process fetches the memory whole, and in
blocks of the size of a KV block. The memory is on the last two GPUs, on the only GPU, or on the
host without GPUs. The last output line is a JSON document. The lines before it are UCX's report of
how it moves bytes (`UCX_PROTO_INFO`), which the caller reads.

Runs as a standalone script where nixl is installed: `python kv_transfer.py [--mib 256]`.
"""

import argparse
import base64
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from nixl._api import nixl_agent, nixl_agent_config

BLOCK = 64 << 10  # bytes: K and V of 16 tokens of one layer of an 8B shape, bf16
REPEATS = 5


class Memory:
    """Registered memory of one NIXL agent, which can be described in parts."""

    def __init__(self, name: str, size: int, gpu: int | None) -> None:
        self.agent = nixl_agent(name, nixl_agent_config(backends=["UCX"]))
        place = "cpu" if gpu is None else f"cuda:{gpu}"
        value = 0 if name == "reader" else 7
        self.tensor = torch.full((size,), value, dtype=torch.uint8, device=place)
        self.agent.register_memory(self.tensor)

    def parts(self, size: int) -> Any:
        return self.agent.get_xfer_descs(list(self.tensor.split(size)))


def own(size: int, gpu: int | None) -> None:
    """Print how to reach this process's memory, then wait until the reader closes the pipe."""
    memory = Memory("owner", size, gpu)
    words = [memory.agent.get_agent_metadata()]
    words += [memory.agent.get_serialized_descs(memory.parts(part)) for part in (size, BLOCK)]
    told = [base64.b64encode(word).decode() for word in words]
    sys.stdout.write(json.dumps({"owner": told}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


def read(size: int, gpu: int | None, told: list[str]) -> dict[str, Any]:
    """Return bytes per second of a whole read and of a read in blocks.

    Raises `RuntimeError` if the bytes received differ from the owner's.
    """
    memory = Memory("reader", size, gpu)
    metadata, *descriptors = (base64.b64decode(word) for word in told)
    owner = memory.agent.add_remote_agent(metadata)
    rates: dict[str, Any] = {}
    for name, part, theirs in zip(("whole", "blocks"), (size, BLOCK), descriptors, strict=True):
        request = memory.agent.initialize_xfer(
            "READ", memory.parts(part), memory.agent.deserialize_descs(theirs), owner, b"probe"
        )
        seconds = [_seconds(memory.agent, request) for _ in range(REPEATS + 1)][1:]
        memory.agent.release_xfer_handle(request)
        rates[name] = {"value": size / statistics.median(seconds), "low": size / max(seconds),
                       "high": size / min(seconds), "descriptors": size // part}  # fmt: skip
    if int(memory.tensor.min()) != 7:
        raise RuntimeError("what was read is not what the owner holds")
    return rates


def _seconds(agent: Any, request: Any) -> float:
    began_s = time.perf_counter()
    state = agent.transfer(request)
    while state == "PROC":
        state = agent.check_xfer_state(request)
    if state != "DONE":
        raise RuntimeError(f"the transfer ended as {state}")
    return time.perf_counter() - began_s


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--own", action="store_true", help="the other process")
    given = parser.parse_args(arguments)
    count, size = torch.cuda.device_count(), given.mib << 20
    gpus = (count - 1, max(count - 2, 0)) if count else (None, None)
    if given.own:
        own(size, gpus[0])
        return 0
    script = Path(__file__).resolve()
    with subprocess.Popen(  # noqa: S603  (this script, by this interpreter)
        [sys.executable, "-P", str(script), "--own", "--mib", str(given.mib)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as owner:  # fmt: skip
        lines = owner.stdout or ()
        told = next((line for line in lines if line.startswith('{"owner"')), None)
        if told is None:
            raise RuntimeError("the process that owns the memory ended early")
        rates = read(size, gpus[1], json.loads(told)["owner"])
        owner.communicate()
    memory = "host" if gpus[0] is None else "one GPU" if gpus[0] == gpus[1] else "two GPUs"
    sys.stdout.write("\n" + json.dumps({"breakeven_kv": 1, "memory": memory, **rates}) + "\n")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("UCX_PROTO_INFO", "y")
    os.environ.setdefault("UCX_CUDA_IPC_ENABLE_GET_ZCOPY", "on")  # as for engines in a role
    sys.exit(main(sys.argv[1:]))
