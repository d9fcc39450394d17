"""Creation of a worker's store of idempotency keys."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.request.idempotency.idempotency_store import IdempotencyStore
from gateway.request.idempotency.response_replay import ResponseReplayStore
from gateway.runtime import Runtime
from ledger.database import make_engine


def open_submissions(
    settings: Settings, runtime: Runtime, clock: Clock, environ: Mapping[str, str]
) -> IdempotencyStore:
    """Return the idempotency store, with replays if they are enabled."""
    replay, kept = settings.server.idempotency.replay, None
    if replay.enabled:
        from gateway.request.idempotency.aes_gcm_cipher import AesGcmCipher  # noqa: PLC0415  (a library for this alone)

        cipher = AesGcmCipher(environ.get(replay.key_env or "", ""))
        kept = ResponseReplayStore(cipher, replay, clock.wall_us)
    return IdempotencyStore(
        partial(make_engine, runtime.ledger_url, keep_open=True),
        Path(runtime.state_dir),
        hours=settings.server.idempotency.hours,
        wall_us=clock.wall_us,
        kept=kept,
    )
