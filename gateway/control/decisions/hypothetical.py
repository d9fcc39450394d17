"""Hypothetical request against the running host: the same planning, nothing is sent.

While `serve` runs, its shared memory is read, so the answer is what a request would get now.
Otherwise every engine is `unknown`, and the answer says so.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Engine

from backends.base import Backend, Call, Exchange
from backends.errors import UpstreamUnreachable
from gateway.clock import Clock
from gateway.config.conditions import ConditionInput
from gateway.config.pool_seats import seat_count
from gateway.config.settings import (
    ModelSection,
    PoolSection,
    ProviderSection,
    Settings,
    resolve_model,
    version,
)
from gateway.fleet.candidates import CandidateBuilder
from gateway.fleet.estimate_table import seen_overruns
from gateway.fleet.fleet import Fleet, later_prices
from gateway.fleet.partly_priced import bar_partly_priced
from gateway.fleet.shared_load import SharedLoadTable
from gateway.policies.content_policy import apply_content
from gateway.policies.overrides import barred, standing_overrides
from gateway.policies.policy_match import PolicyChain, PolicyTerms
from gateway.policies.rules import RuleSet
from gateway.policies.sets import rules_of
from gateway.runtime import Runtime, RuntimePorts, resolve_runtime
from ledger.overrides import Override, overrides
from ledger.policies import policies_in_force
from ledger.prices.book import PriceBook
from ledger.prices.modellimits import model_limits
from router.decide import decide
from router.estimates import OutputLengths
from router.request_kinds import RequestKind
from router.stages import StageCause, causes_of, is_due
from router.types import Decision, InfeasibleAction, Residency, RoutingRequest, Verdict


@dataclass(frozen=True, slots=True)
class HypotheticalRequest:
    model: str
    team: str
    prompt_tokens: int
    max_tokens: int | None
    content: tuple[str, ...] = ()  # content kinds in it


def explain(
    settings: Settings, question: HypotheticalRequest, books: Engine | None, prices: PriceBook
) -> tuple[Decision, ...] | None:
    """Return the decisions of the model's stages that are due; the last one acts.

    Returns `None` for an unknown model. `books` is `None` before the first start.
    """
    found = resolve_model(settings, question.model)
    if found is None:
        return None
    name, model = found
    said = _read_stated_request(settings, books, clock := Clock())
    with _looked_at(settings) as (runtime, board):
        stages = Fleet(settings, runtime, make_null_backend).stages(name, model)
        entries = RuleSet(said.settings).entries(name, question.team)
        candidates = CandidateBuilder(
            board, prices, stale_s=settings.telemetry.stale_s, limits=model_limits(),
            overruns=seen_overruns(settings.state),
        )  # fmt: skip

        def decide_stage(number: int, *, is_final: bool) -> Decision:
            targets = stages[number]
            chain = PolicyChain(entries, model, targets, barred(said.overrides, name, targets))
            terms = chain.terms(
                partial(_condition_input, name, question), wall_us=clock.wall_us(), key=""
            )
            row = " ".join(f"{kind}=1" for kind in question.content)
            asked = _request(name, model, question, terms)
            request = apply_content(asked, row, terms.rule.policy.content, targets)
            priced_by = later_prices(model, stages, number)
            if priced_by and request.residency is Residency.ANY:
                request = replace(request, spills=True)
            frozen = candidates.build(
                targets,
                request,
                priced_by if request.spills else model.compare_with,
                rooms_pusd=[None] * len(targets),
                ceiling_pusd=terms.rule.policy.max_cost_pusd,
                clock=clock,
            )
            request = bar_partly_priced(request, frozen, terms.rule.policy.max_cost_pusd)
            offered = tuple(entry.candidate for entry in frozen)
            policy = terms.rule.priced(offered)
            if not is_final:
                policy = replace(policy, otherwise=InfeasibleAction.REJECT)
            decision = decide(request, policy, offered)
            contexts = {
                target.name: quote.limits.stated_context
                for target in targets
                if (quote := candidates.quote_of(target, clock.wall_us())) and quote.limits
            }
            return _with_contexts(decision, request, contexts)

        return _decide_stages(model, decide_stage)


def _decide_stages(
    model: ModelSection, decide_stage: Callable[..., Decision]
) -> tuple[Decision, ...]:
    """Decide stage by stage until one can serve, else apply `otherwise` at the first one."""
    made = [decide_stage(0, is_final=not model.then)]
    causes: set[StageCause] = set()
    for number, stage in enumerate(model.then, start=1):
        if made[-1].order:
            return tuple(made)
        causes |= causes_of(made[-1].verdicts)
        if is_due([StageCause(word) for word in stage.causes], causes):
            made.append(decide_stage(number, is_final=False))
    if model.then and not made[-1].order:
        made.append(decide_stage(0, is_final=True))
    return tuple(made)


def _with_contexts(
    decision: Decision, request: RoutingRequest, contexts: Mapping[str, int]
) -> Decision:
    """Return the decision with a note at each API whose stated context is exceeded.

    The note changes no decision: the list may be older than the model, and a provider refuses such
    a request free of charge, which a stage `after: context` handles. `contexts` is tokens by
    target, 0 if not stated.
    """

    def told(verdict: Verdict) -> Verdict:
        stated, output = contexts.get(verdict.candidate.name, 0), request.max_tokens or 1
        if not verdict.feasible or not stated or request.prompt_tokens + output <= stated:
            return verdict
        words = (
            f"{request.prompt_tokens} prompt + {output} answer tokens exceed its stated context "
            f"of {stated}: it may refuse"
        )
        return verdict._replace(detail="; ".join(filter(None, (verdict.detail, words))))

    return decision._replace(
        order=tuple(map(told, decision.order)), verdicts=tuple(map(told, decision.verdicts))
    )


class _StatedRequest(NamedTuple):
    """The policies and overrides that are active now."""

    settings: Settings
    overrides: Sequence[Override] = ()


def _read_stated_request(settings: Settings, books: Engine | None, clock: Clock) -> _StatedRequest:
    if books is None:
        return _StatedRequest(settings)
    return _StatedRequest(
        rules_of(settings, policies_in_force(books)).settings,
        standing_overrides(overrides(books), clock.wall_us()),
    )


def _request(
    name: str, model: ModelSection, question: HypotheticalRequest, terms: PolicyTerms
) -> RoutingRequest:
    return RoutingRequest(
        kind=RequestKind.CHAT,
        model=name,
        prompt_tokens=question.prompt_tokens,
        prompt_tokens_bound=question.prompt_tokens,
        max_tokens=question.max_tokens,
        output=OutputLengths().moments((name, question.team), question.prompt_tokens),
        residency=Residency(model.residency),
        preferred=terms.preferred,
        barred=terms.barred,
        team=question.team,
    )


def _condition_input(model: str, question: HypotheticalRequest) -> ConditionInput:
    return ConditionInput(
        model=model,
        team=question.team,
        prompt_tokens=question.prompt_tokens,
        max_tokens=question.max_tokens or 0,
    )


@contextmanager
def _looked_at(settings: Settings) -> Iterator[tuple[Runtime, SharedLoadTable]]:
    """Yield the running host's shared memory, or an empty one if no such host runs."""
    path = settings.state.resolve() / "run" / "runtime.json"
    runtime = Runtime.load(path) if path.exists() else None
    with tempfile.TemporaryDirectory() as folder:
        if runtime is not None and runtime.policy_version == version(settings):
            board = SharedLoadTable(runtime.run_dir / "board", runtime.layout)
        else:
            runtime = unstarted_runtime(settings)
            board = SharedLoadTable(Path(folder) / "board", runtime.layout)
        try:
            yield runtime, board
        finally:
            board.close()


def unstarted_runtime(settings: Settings) -> Runtime:
    """Return the runtime that `serve` would resolve, without a port or a ledger."""
    engines = {
        f"pool:{name}/{index}": 0
        for name, pool in settings.pools.items()
        for index in range(seat_count(pool))
    }
    providers = {name: 0 for name, provider in settings.providers.items() if provider.start}
    state = str(settings.state.resolve())
    return resolve_runtime(
        settings.model_copy(update={"state_dir": state}),
        RuntimePorts(engines, providers),
        ledger_url="",
        policy_version=version(settings),
    )


class NullBackend:
    """Backend of a target that is never called; `Backend` for planning only."""

    secrets = ()

    async def open(self, call: Call) -> Exchange:
        raise UpstreamUnreachable(f"{call.path} of a supposed request is never sent")

    async def aclose(self) -> None:
        """Do nothing, because nothing is open."""


def make_null_backend(
    _name: str, _what: PoolSection | ProviderSection, _url: str | None
) -> Backend:
    """Return a backend that sends nothing, for a fleet used for planning only."""
    return NullBackend()
