"""Which lines go to a provider's batch, and when. Pure.

A model without own engines has nothing to wait for: its lines go at once. Of the others go those
that own engines will not have done before the batch's last stretch, at the pace they show; that is
asked only from `hand_on_s` before the end on, for until then a quiet night may come.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.config.settings import Settings, resolve_model
from gateway.kinds import BATCH_PATHS

WATCHED_S = 300.0  # before this nobody knows a pace
REMEMBERED_S = 3600.0
LEAST_S = 3600.0  # a provider's batch that has less time than this is not worth its making
ENDPOINTS = BATCH_PATHS


def batch_providers(settings: Settings) -> frozenset[str]:
    return frozenset(name for name, provider in settings.providers.items() if provider.batch)


@dataclass(frozen=True, slots=True)
class BatchSpillPolicy:
    """The ways of a model's lines: whether a provider's batch or engines may take them."""

    onward: bool
    own: bool

    @property
    def is_provider_only(self) -> bool:
        """Its lines have nothing to wait for here."""
        return self.onward and not self.own


def spill_policy_of(settings: Settings, asked: str) -> BatchSpillPolicy:
    """By the configuration alone; what a policy or a key says is found line by line."""
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
    """Lines that own engines have done, as a count that only grows; times in seconds."""

    _seen: deque[tuple[float, int]] = field(default_factory=deque)

    def observe(self, done: int, now_s: float) -> None:
        self._seen.append((now_s, done))
        while len(self._seen) > 2 and self._seen[1][0] <= now_s - REMEMBERED_S:
            self._seen.popleft()

    def per_s(self, now_s: float) -> float | None:
        """`None` while too little was seen."""
        if not self._seen or now_s - self._seen[0][0] < WATCHED_S:
            return None
        first_s, first = self._seen[0]
        return (self._seen[-1][1] - first) / (now_s - first_s)


@dataclass(frozen=True, slots=True)
class BatchBacklog:
    """Waiting lines of one batch and model; `left_s` is its time until lines may spill."""

    batch_id: str
    waiting: int
    left_s: float


def surplus_of(queues: Iterable[BatchBacklog], per_s: float, hand_on_s: float) -> dict[str, int]:
    """Return the number of lines of each batch that own engines will not finish in time.

    What ends first comes first. `hand_on_s` counts from where lines may spill, too.
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
