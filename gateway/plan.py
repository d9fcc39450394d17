"""From a question to an ordered list of places to ask: model, policy, candidates, decision.

Planning reads state and awaits nothing. `Planner.plan` may be called again for the same request
(a policy that queues): only the moving half of the candidates differs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import msgspec

from gateway.admission import Admission
from gateway.candidates import Candidates, Frozen
from gateway.clock import Clock
from gateway.errors import RequestError
from gateway.fleet import Fleet, Target
from gateway.intake import Asked
from gateway.rules import Rules
from gateway.settings import Model, Settings, resolve_model
from ledger.identity import Identity
from ledger.prices import Price
from router.decide import decide
from router.estimates import OutputLengths, TokenRatio
from router.explain import packed_within
from router.policy import tighten
from router.types import Decision, Policy, Reason, Request, Residency, Verdict
from router.value import value

DECISION_LIMIT_BYTES = 800


@value(frozen=True, slots=True)
class Step:
    """One candidate to try: the verdict that put it there and the target behind it."""

    verdict: Verdict
    frozen: Frozen

    def within(self, room_pusd: int) -> "Step | None":
        """The same with an answer short enough for the room; `None` when none is."""
        frozen = self.frozen.within(room_pusd)
        if frozen is None:
            return None
        return Step(self.verdict._replace(candidate=frozen.candidate), frozen)


@value(frozen=True, slots=True)
class Plan:
    request_id: str
    asked: Asked
    identity: Identity
    model: str  # the logical model, aliases resolved
    request: Request
    policy: Policy
    policy_version: str
    queue_ms: float
    decision: Decision
    targets: tuple[Target, ...]  # all that the model has
    steps: tuple[Step, ...]
    comparators: tuple[Price, ...]
    learning_key: tuple[str, str]  # tenant and model: output lengths, bytes per token
    sticky_key: str | None
    salt: str | None  # isolates the tenant's prefix cache on own engines
    decision_blob: bytes

    def shortened(self, step: Step) -> "Plan":
        """The same with this step as it is asked for, so that its record says so."""
        known, changed = self.decision, step.verdict.candidate.name
        order, verdicts = (
            tuple([step.verdict if one.candidate.name == changed else one for one in group])
            for group in (known.order, known.verdicts)
        )
        decision = known._replace(order=order, verdicts=verdicts)
        blob = _packed(self.request, self.policy, decision)
        return replace(self, decision=decision, decision_blob=blob)

    @property
    def best_own(self) -> Verdict | None:
        """The own engine that came furthest: least load, or the first that was looked at."""
        own = [verdict for verdict in self.decision.verdicts if verdict.candidate.internal]
        return min(
            own,
            key=lambda verdict: (not verdict.feasible, verdict.load is None, verdict.load or 0.0),
            default=None,
        )

    @property
    def unaffordable(self) -> tuple[Target, ...]:
        """Those that only budgets keep away."""
        names = {
            verdict.candidate.name
            for verdict in self.decision.verdicts
            if verdict.reason is Reason.BUDGET
        }
        return tuple(target for target in self.targets if target.name in names)

    @property
    def spill_reason(self) -> str | None:
        """Why no own engine serves it, when the model has one."""
        best = self.best_own
        return None if best is None else best.reason.value


@dataclass(frozen=True, slots=True)
class Learned:
    """What requests turned out to need: bytes per token and output lengths, by model and team."""

    ratio: TokenRatio
    outputs: OutputLengths


class Planner:
    def __init__(
        self,
        settings: Settings,
        policy_version: str,
        fleet: Fleet,
        candidates: Candidates,
        admission: Admission,
        learned: Learned,
    ) -> None:
        self._settings = settings
        self._version = policy_version
        self._fleet = fleet
        self._candidates = candidates
        self._admission = admission
        self._learned = learned
        self._rules = Rules(settings)

    def plan(
        self,
        request_id: str,
        asked: Asked,
        identity: Identity,
        *,
        clock: Clock,
        sticky: Callable[[str], str | None],
    ) -> Plan:
        """Raises `RequestError` 404 for an unknown model, 403 for one the key may not use."""
        name, model = self._resolve(asked.model, identity)
        rule = self._rules.match(name, identity.team_id)
        sticky_key = None
        if model.sticky == "session" and asked.session is not None:
            sticky_key = session_key(name, identity, asked.session)
        target = None if sticky_key is None else sticky(sticky_key)
        request = self._request(asked, identity, name, model.residency, target)
        targets = self._fleet.targets(name, model)
        frozen = self._candidates.freeze(
            targets,
            request,
            model.compare_with,
            room=self._admission.rooms(identity, name),
            ceiling_pusd=rule.policy.max_cost_pusd,
            clock=clock,
        )
        comparators = self._candidates.comparators(model.compare_with, clock.wall_us())
        policy = rule.priced(frozen)
        decision = decide(request, policy, tuple(entry.candidate for entry in frozen))
        by_name = {entry.candidate.name: entry for entry in frozen}
        return Plan(
            request_id=request_id,
            asked=asked,
            identity=identity,
            model=name,
            request=request,
            policy=policy,
            policy_version=self._version,
            queue_ms=rule.queue_ms,
            decision=decision,
            targets=targets,
            steps=tuple(
                Step(verdict, by_name[verdict.candidate.name]) for verdict in decision.order
            ),
            comparators=comparators,
            learning_key=(name, identity.team_id),
            sticky_key=sticky_key,
            salt=cache_salt(identity),
            decision_blob=_packed(request, policy, decision),
        )

    def prompt_tokens(self, asked: Asked, identity: Identity) -> int:
        """How many tokens a prompt may have, without asking anybody; 404 and 403 as `plan`."""
        name, _ = self._resolve(asked.model, identity)
        return self._learned.ratio.estimate((name, identity.team_id), asked.prompt_bytes)[0]

    def _resolve(self, asked: str, identity: Identity) -> tuple[str, Model]:
        found = resolve_model(self._settings, asked)
        if found is None:
            raise RequestError(
                "no_model",
                f"The model `{asked}` does not exist. `GET /v1/models` lists those that do.",
                param="model",
            )
        name, model = found
        if not allowed(identity.models, asked, name):
            raise RequestError(
                "forbidden", f"This key may not use the model `{asked}`.", param="model"
            )
        return name, model

    def _request(
        self, asked: Asked, identity: Identity, name: str, residency: str, sticky: str | None
    ) -> Request:
        key = (name, identity.team_id)
        estimate, bound = self._learned.ratio.estimate(key, asked.prompt_bytes)
        return Request(
            kind=asked.kind,
            model=name,
            prompt_tokens=estimate,
            prompt_tokens_bound=bound,
            max_tokens=asked.max_tokens,
            output=self._learned.outputs.moments(key, estimate),
            n=asked.n * asked.prompts,  # every prompt of a list gets its own choices
            features=asked.features,
            residency=tighten(Residency(residency), Residency(identity.residency)),
            sticky_target=sticky,
            salted=identity.isolation != "none",
        )


def _packed(request: Request, policy: Policy, decision: Decision) -> bytes:
    asked = request, policy, decision
    return packed_within(DECISION_LIMIT_BYTES, msgspec.msgpack.encode, asked)


def session_key(model: str, identity: Identity, session: str) -> str:
    """A session belongs to a team and a model: nobody can ride on another team's stickiness."""
    return f"{identity.team_id}\x00{model}\x00{session}"


def cache_salt(identity: Identity) -> str | None:
    """The tenant's name in the engine's prefix cache; clients cannot send one themselves."""
    if identity.isolation == "none":
        return None
    owner = identity.org_id if identity.isolation == "org" else identity.team_id
    return sha256(f"{identity.isolation}\x00{identity.org_id}\x00{owner}".encode()).hexdigest()[:32]


def allowed(models: Sequence[str] | None, asked: str, resolved: str) -> bool:
    """Whether a key's allow-list (None: everything) covers the name asked for or its alias.

    `openai/*` covers every model of that provider.
    """
    if models is None or asked in models or resolved in models:
        return True
    provider, slash, _ = resolved.partition("/")
    return bool(slash) and f"{provider}/*" in models
