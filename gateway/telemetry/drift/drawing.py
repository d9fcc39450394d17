"""In a worker: draws requests that an own engine has answered, for the process that compares.

Only of teams that the pool's `sampling` names, and only conversations. What is drawn goes through a
socket into that process' memory: no file and no table ever holds a prompt. Where nobody listens, or
the socket is full, it is let go; the request that it came from waits for nothing.
"""

import random
import socket
from collections.abc import Mapping
from pathlib import Path

import msgspec

from gateway.config.schema_upkeep import SamplingSection
from gateway.config.settings import Settings
from gateway.fleet.fleet import Target
from gateway.kinds import KINDS
from gateway.kinds.inference_request import InferenceRequest
from ledger.identity.keys import Identity
from ledger.unixsocket import short_path

SOCKET = "drift.sock"
LONGEST = 64 * 1024  # bytes of a conversation; longer ones are not drawn


class DriftSample(msgspec.Struct, frozen=True):
    """A conversation, as its client wrote it, and the pool whose engine answered."""

    pool: str
    messages: msgspec.Raw


class SampleSender:
    """One per worker. `rng` draws."""

    def __init__(self, settings: Settings, run_dir: Path, rng: random.Random) -> None:
        self._rules: Mapping[str, tuple[SamplingSection, str]] = {
            name: (pool.sampling, pool.engine.served_name or name)
            for name, pool in settings.pools.items()
            if pool.sampling is not None
        }
        self._address = run_dir / SOCKET
        self._rng = rng
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)

    def offer(self, asked: InferenceRequest, identity: Identity, target: Target) -> None:
        """A request that `target` has answered."""
        found = self._rules.get(target.pool or "")
        if found is None:
            return
        rule, served = found
        if (
            identity.team_id not in rule.teams
            or not KINDS[asked.kind].sampled
            or target.upstream_model != served  # an adapter's answers have another baseline
            or self._rng.random() >= rule.share
        ):
            return
        messages = bytes(asked.members.get("messages", b""))
        if not messages or len(messages) > LONGEST:
            return
        news = msgspec.json.encode(DriftSample(target.pool or "", msgspec.Raw(messages)))
        try:
            with short_path(self._address) as address:
                self._socket.sendto(news, address)
        except OSError:
            return  # nobody listens, or too many wait: this one is let go

    def close(self) -> None:
        self._socket.close()


def open_drawing(settings: Settings, run_dir: Path) -> SampleSender | None:
    """A worker's; `None` where no pool is sampled."""
    if all(pool.sampling is None for pool in settings.pools.values()):
        return None
    return SampleSender(settings, run_dir, random.SystemRandom())
