"""Rules for which lines go to a provider's batch, and when. No I/O.

Lines of a model without own engines go at once. For other models, lines go that own engines will
not finish in time at their observed pace. This is decided only within `hand_on_s` before the end,
because engines may be idle before that.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.config.settings import Settings, resolve_model
from gateway.kinds import BATCH_PATHS

WATCHED_S = 300.0  # minimum observation before a pace is known
REMEMBERED_S = 3600.0
LEAST_S = 3600.0  # minimum time left for a provider's batch to be useful
ENDPOINTS = BATCH_PATHS


def batch_providers(settings: Settings) -> frozenset[str]:
    return frozenset(name for name, provider in settings.providers.items() if provider.batch)


@dataclass(frozen=True, slots=True)
class BatchSpillPolicy:
    """Options for a model's lines: a provider's batch (`onward`), own engines (`own`)."""

    onward: bool
    own: bool

    @property
    def is_provider_only(self) -> bool:
        """Return whether the lines can only go to a provider's batch."""
        return self.onward and not self.own


def spill_policy_of(settings: Settings, asked: str) -> BatchSpillPolicy:
    """Return the policy by the configuration alone; rules and keys are checked per line."""
    found = resolve_model(settings, asked)
    if found is None:
        return BatchSpillPolicy(onward=False, own=False)
    model = found[1]
    taking = batch_providers(settings)
    named = [target.partition("/")[0] for target in model.overflow]
    return BatchSpillPolicy(
        onward=model.residency == "any" and any(name in taking for name in named),
        own=any(target.startswith("pool:") for target in model.reachable),
    )


@dataclass(slots=True)
class CompletionRate:
    """Rate at which own engines complete lines, from a growing count; times in seconds."""

    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def observe(self, done: int, now_s: float) -> None:
        self._seen.append((now_s, done))
        while len(self._seen) > 2 and self._seen[1][0] <= now_s - REMEMBERED_S:
            self._seen.popleft()

    def per_s(self, now_s: float) -> float | None:
        """Return the lines per second; `None` until `WATCHED_S` were observed."""
        if not self._seen or now_s - self._seen[0][0] < WATCHED_S:
            return None
        first_s, first = self._seen[0]
        return (self._seen[-1][1] - first) / (now_s - first_s)


@dataclass(frozen=True, slots=True)
class BatchBacklog:
    """Waiting lines of one batch and model; `left_s` is the time until its lines may spill."""

    batch_id: str
    waiting: int
    left_s: float


def surplus_of(queues: Iterable[BatchBacklog], per_s: float, hand_on_s: float) -> dict[str, int]:
    """Return the number of lines of each batch that own engines will not finish in time.

    Batches are served in the order of their end. `hand_on_s` also ends where lines may spill.
    """
    found: dict[str, int] = {}
    taken = 0.0
    for queue in sorted(queues, key=lambda backlog: backlog.left_s):
        room = max(0.0, per_s * queue.left_s - taken)
        stays = min(queue.waiting, int(room))
        taken += stays
        if queue.waiting > stays and LEAST_S <= queue.left_s <= hand_on_s:
            found[queue.batch_id] = queue.waiting - stays
    return found
