"""Sampling in a worker of requests answered by own engines, for the drift process.

Only conversations of teams in the pool's `sampling` are drawn. Samples go through a socket into
that process's memory; no file or table contains a prompt. If the process does not listen, or the
socket is full, the sample is dropped; the request never waits.
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
    """A conversation as its client sent it, and the pool whose engine answered."""

    pool: str
    messages: msgspec.Raw


class SampleSender:
    """Sender of samples; one per worker. `rng` draws the requests."""

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
        """Draw from the requests that `target` has answered, and send the sample."""
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
            return  # no listener, or the socket is full: the sample is dropped

    def close(self) -> None:
        self._socket.close()


def open_drawing(settings: Settings, run_dir: Path) -> SampleSender | None:
    """Return a worker's sample sender, or `None` if no pool is sampled."""
    if all(pool.sampling is None for pool in settings.pools.values()):
        return None
    return SampleSender(settings, run_dir, random.SystemRandom())
