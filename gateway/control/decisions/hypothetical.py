"""A supposed request against the running host: the same planning, nothing sent.

With `serve` running its shared memory is read, so the answer is what a request would meet at
this moment; without it every engine is `unknown`, and the answer says so.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Engine

from backends.base import Backend, Call, Exchange
from backends.errors import Unreachable
from gateway.clock import Clock
from gateway.config.conditions import Asking
from gateway.config.settings import Model, Pool, Provider, Settings, resolve_model, version
from gateway.fleet.candidates import Candidates
from gateway.fleet.fleet import Fleet
from gateway.fleet.slots import Board
from gateway.policies.overrides import barred, standing
from gateway.policies.rules import Rules
from gateway.policies.rulings import Chain, Terms
from gateway.policies.sets import rules_of
from gateway.runtime import Ports, Runtime, resolve
from ledger.overrides import Override, overrides
from ledger.policies import policies_in_force
from ledger.prices.book import PriceBook
from ledger.prices.modellimits import model_limits
from router.decide import decide
from router.estimates import OutputLengths
from router.request_kinds import Kind
from router.types import Decision, Request, Residency


@dataclass(frozen=True, slots=True)
class Question:
    model: str
    team: str
    prompt_tokens: int
    max_tokens: int | None


def explain(
    settings: Settings, question: Question, books: Engine | None, prices: PriceBook
) -> Decision | None:
    """The decision, or `None` when there is no such model. `books`: `None` before a first start."""
    found = resolve_model(settings, question.model)
    if found is None:
        return None
    name, model = found
    said = _said(settings, books, clock := Clock())
    with _looked_at(settings) as (runtime, board):
        targets = Fleet(settings, runtime, nobody).targets(name, model)
        entries = Rules(said.settings).entries(name, question.team)
        chain = Chain(entries, model, targets, barred(said.overrides, name, targets))
        candidates = Candidates(
            board, prices, stale_s=settings.telemetry.stale_s, limits=model_limits()
        )
        terms = chain.terms(partial(_asking, name, question), wall_us=clock.wall_us(), key="")
        request = _request(name, model, question, terms)
        frozen = candidates.freeze(
            targets,
            request,
            model.compare_with,
            rooms_pusd=[None] * len(targets),
            ceiling_pusd=terms.rule.policy.max_cost_pusd,
            clock=clock,
        )
    policy = terms.rule.priced(frozen)
    return decide(request, policy, tuple(entry.candidate for entry in frozen))


class _Said(NamedTuple):
    """What policies and operators say at this moment."""

    settings: Settings
    overrides: Sequence[Override] = ()


def _said(settings: Settings, books: Engine | None, clock: Clock) -> _Said:
    if books is None:
        return _Said(settings)
    return _Said(
        rules_of(settings, policies_in_force(books)).settings,
        standing(overrides(books), clock.wall_us()),
    )


def _request(name: str, model: Model, question: Question, terms: Terms) -> Request:
    return Request(
        kind=Kind.CHAT,
        model=name,
        prompt_tokens=question.prompt_tokens,
        prompt_tokens_bound=question.prompt_tokens,
        max_tokens=question.max_tokens,
        output=OutputLengths().moments((name, question.team), question.prompt_tokens),
        residency=Residency(model.residency),
        preferred=terms.preferred,
        barred=terms.barred,
    )


def _asking(model: str, question: Question) -> Asking:
    return Asking(
        model=model,
        team=question.team,
        prompt_tokens=question.prompt_tokens,
        max_tokens=question.max_tokens or 0,
    )


@contextmanager
def _looked_at(settings: Settings) -> Iterator[tuple[Runtime, Board]]:
    """The running host's shared memory, or one with nothing in it when no such host runs."""
    path = settings.state.resolve() / "run" / "runtime.json"
    runtime = Runtime.load(path) if path.exists() else None
    with tempfile.TemporaryDirectory() as folder:
        if runtime is not None and runtime.policy_version == version(settings):
            board = Board(runtime.run_dir / "board", runtime.layout)
        else:
            runtime = unstarted(settings)
            board = Board(Path(folder) / "board", runtime.layout)
        try:
            yield runtime, board
        finally:
            board.close()


def unstarted(settings: Settings) -> Runtime:
    """What `serve` would resolve, without a port and without a ledger."""
    engines = {
        f"pool:{name}/{index}": 0
        for name, pool in settings.pools.items()
        for index in range(pool.engine.replicas)
    }
    providers = {name: 0 for name, provider in settings.providers.items() if provider.start}
    state = str(settings.state.resolve())
    return resolve(
        settings.model_copy(update={"state_dir": state}),
        Ports(engines, providers),
        ledger_url="",
        policy_version=version(settings),
    )


class Nobody:
    """A target that is looked at and never called."""

    secrets = ()

    async def open(self, call: Call) -> Exchange:
        raise Unreachable(f"{call.path} of a supposed request is never sent")

    async def aclose(self) -> None:
        """Nothing is open."""


def nobody(_name: str, _what: Pool | Provider, _url: str | None) -> Backend:
    """A wire client to nowhere, for a fleet that is only looked at."""
    return Nobody()
