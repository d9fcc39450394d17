"""Planner of a line that own engines will not finish in time, for a provider's batch.

Rules, residency, features, prices and the key's rights apply as to any request. But only targets
count whose provider takes batches and whose price has batch rates. The one with the lowest bound is
chosen, and nothing is sent: the runner gets the plan and adds the line to a provider's batch.
"""

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import msgspec

from backends.openai import OpenAIBackend
from gateway.errors import RequestError
from gateway.fleet.attempt_bounds import api_bound_pusd, output_bound
from gateway.fleet.candidates import CandidateSnapshot
from gateway.fleet.prompt_bound import reachable_media
from gateway.kinds import BATCH_PATHS
from gateway.kinds.inference_request import InferenceRequest
from gateway.kinds.service_tiers import TIER_MEMBER
from gateway.request.attempt import Attempt
from gateway.request.client_response import ClientResponse
from gateway.request.dispatch import Dispatcher
from gateway.request.hangups import can_think
from gateway.request.ignored_names import listed_names
from gateway.request.metering import opened_record
from gateway.request.plan import AttemptPlan, RoutingPlan
from gateway.request.reported_usage import context_of
from gateway.request.request_parser import attempt_body
from gateway.request.stage_turns import StageTurn
from ledger.batches.outgoing import LineTerms
from ledger.identity.keys import Identity
from ledger.journals.records import AttemptOpened
from ledger.prices.book import BATCH, Price
from ledger.prices.rates import STANDARD
from router.reasons import Reason
from router.stages import StageCause
from router.types import Decision, InfeasibleAction, RoutingRequest, Verdict

PACKED = (b"content-type", b"application/msgpack")
_SERVED = frozenset(path.removeprefix("/v1") for path in BATCH_PATHS)

_NO_TIER: Final = frozenset((b"null", b'"auto"', b'"default"', b'"batch"'))


class ProviderLine(msgspec.Struct, frozen=True):
    """One line for a provider's batch; `opened` is its attempt record without holds."""

    provider: str
    upstream_model: str
    body: bytes
    opened: AttemptOpened
    scopes: tuple[str, ...]
    terms: LineTerms


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderLinePlanner(Dispatcher):
    """Dispatcher that answers with the plan; `providers` are those that take batches."""

    providers: Collection[str]

    @classmethod
    def like(cls, dispatcher: Dispatcher, **changes: Any) -> "ProviderLinePlanner":
        known = {field.name: getattr(dispatcher, field.name) for field in fields(Dispatcher)}
        return cls(**{**known, **changes})

    async def dispatch(
        self, asked: InferenceRequest, identity: Identity, reply: ClientResponse
    ) -> None:
        """Plan the line and answer with it.

        Raises `RequestError` (`not_onward`) if no provider's batch can take the line.
        """
        if asked.path not in _SERVED:
            raise _not_onward("its endpoint is none that providers' batches know here")
        if self.plans.value.inspects:
            terms, _ = self.plans.value.content_terms(reply.request_id, asked, identity, self.clock)
            if self.inspector is not None and self.inspector.guards_of(terms):
                raise _not_onward("a guardrail reads its answer")
            asked = await self.inspect(asked, identity, reply)
        make, id_ = self.plans.value.plan, reply.request_id
        plan = make(id_, asked, identity, clock=self.clock, sticky=lambda _: None)
        later = iter(plan.route.later)
        while not (found := self._offers(plan)):
            route = next((route for route in later if StageCause.ANY in route.after), None)
            if route is None:
                raise _not_onward(str(plan.decision.reason))
            turn = StageTurn(route, (*plan.earlier, plan.decision))
            plan = make(id_, asked, identity, clock=self.clock, sticky=lambda _: None, turn=turn)
        bound, step = min(found, key=lambda finding: finding[0])
        handed = self._provider_line(_decide_for(plan, step), step, bound)
        await reply.send_whole(200, [PACKED], msgspec.msgpack.encode(handed))

    def _offers(self, plan: RoutingPlan) -> list[tuple[int, AttemptPlan]]:
        """Return the plan's candidates whose provider takes batches, with their cost bounds."""
        return [
            (bound, step)
            for step in plan.steps
            if step.frozen.target.section in self.providers
            and (bound := _bound_pusd(plan.request, step.frozen)) is not None
        ]

    def _provider_line(self, plan: RoutingPlan, step: AttemptPlan, bound: int) -> ProviderLine:
        target, frozen = step.frozen.target, step.frozen
        attempt = Attempt(plan, plan.step(plan.decision.order[0]), 1, self.clock.now_s(), ())
        opened = opened_record(attempt, self.clock.wall_us())
        members = {
            name: member for name, member in plan.asked.members.items() if name != TIER_MEMBER
        }
        asked = msgspec.structs.replace(plan.asked, members=members, standard_tier=False)
        standard = replace(plan.request, service_tier=STANDARD)  # batches are a tier of their own
        body = attempt_body(msgspec.structs.replace(plan, asked=asked, request=standard), step)
        left_out: tuple[str, ...] = ()
        if isinstance(target.backend, OpenAIBackend):
            body, left_out = target.backend.words_of(asked.path, body)
        request = plan.request
        ignored = attempt.ignored_members + left_out
        if bytes(plan.asked.members.get(TIER_MEMBER, b"null")) not in _NO_TIER:
            ignored += (TIER_MEMBER,)
        told = request.max_tokens is not None or frozen.candidate.output_cap is not None
        return ProviderLine(
            provider=target.section or "",
            upstream_model=target.upstream_model,
            body=body,
            opened=msgspec.structs.replace(opened, bound_pusd=bound),
            scopes=step.scopes,
            terms=LineTerms(
                n=request.n,
                most=(_output(request, frozen) + frozen.allowance_tokens) * request.n,
                told=told,
                prompt_bound=frozen.prompt_bound(request),
                compared=tuple(item.price.version for item in plan.comparators),
                allowance=frozen.allowance_tokens,
                media=reachable_media(request),
                thinks=can_think(attempt, self.metering.target_output),
                context=context_of(attempt) or 0,
                ignored=listed_names(ignored).decode(),
            ),
        )


def has_batch_rates(price: Price) -> bool:
    return any(schedule.tier == BATCH for schedule in price.terms.schedules)


def _decide_for(plan: RoutingPlan, chosen: AttemptPlan) -> RoutingPlan:
    """Return the plan with only the chosen candidate; own engines are marked as too late."""
    verdicts = []
    order: tuple[Verdict, ...] = ()
    for verdict in plan.decision.verdicts:
        if verdict.candidate is chosen.frozen.candidate:
            handed = verdict._replace(reason=Reason.CHEAPEST, detail="as a batch of the provider's")
            order = (handed,)
            verdicts.append(handed)
        elif verdict.candidate.internal and verdict.feasible:
            late = "its batch would not be done in time"
            verdicts.append(verdict._replace(feasible=False, reason=Reason.BATCH, detail=late))
        else:
            verdicts.append(verdict)
    reason = Reason.CHEAPEST
    decision = Decision(
        plan.decision.policy, order, tuple(verdicts), reason, InfeasibleAction.REJECT
    )
    return plan.with_decision(decision)


def _bound_pusd(request: RoutingRequest, frozen: CandidateSnapshot) -> int | None:
    """Return the maximum cost of the line at batch rates; `None` without such rates."""
    price = frozen.price
    if price is None or not has_batch_rates(price):
        return None
    return api_bound_pusd(
        price,
        replace(request, prompt_tokens_bound=frozen.prompt_bound(request)),
        _output(request, frozen),
        allowance_tokens=frozen.allowance_tokens,
        tiers=(BATCH,),
    )


def _output(request: RoutingRequest, frozen: CandidateSnapshot) -> int:
    """Return the maximum output tokens of one choice."""
    if request.max_tokens is not None:
        return request.max_tokens
    if frozen.candidate.output_cap is not None:
        return frozen.candidate.output_cap
    return output_bound(request) if frozen.open_end is None else frozen.open_end.limit_tokens


def _not_onward(why: str) -> RequestError:
    return RequestError("not_onward", f"No provider's batch can take this line: {why}.")
