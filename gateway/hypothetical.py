"""A supposed request against the running host: the same planning, nothing sent.

With `serve` running its shared memory is read, so the answer is what a request would meet at
this moment; without it every engine is `unknown`, and the answer says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from backends.base import Backend, Call, Exchange
from backends.errors import Unreachable
from gateway.candidates import Candidates
from gateway.clock import Clock
from gateway.conditions import Asking
from gateway.fleet import Fleet
from gateway.policysets import rules_of
from gateway.prepare import ledger_url
from gateway.prices import price_aliases
from gateway.rules import Rules
from gateway.rulings import Chain
from gateway.runtime import Ports, Runtime, resolve
from gateway.settings import Pool, Provider, Settings, resolve_model, version
from gateway.slots import Board
from ledger.book import load_price_book
from ledger.database import make_engine, migrate
from ledger.modellimits import model_limits
from ledger.policies import policies_in_force
from router.decide import decide
from router.estimates import OutputLengths
from router.types import Decision, Kind, Request, Residency


@dataclass(frozen=True, slots=True)
class Question:
    model: str
    team: str
    prompt_tokens: int
    max_tokens: int | None


def explain(settings: Settings, question: Question, environ: Mapping[str, str]) -> Decision | None:
    """The decision, or `None` when there is no such model."""
    found = resolve_model(settings, question.model)
    if found is None:
        return None
    name, model = found
    url = ledger_url(settings, environ)
    migrate(url)
    runtime = _runtime(settings, url)
    ledger = make_engine(url)
    prices = load_price_book(ledger, price_aliases(settings))
    in_force = rules_of(settings, policies_in_force(ledger)).settings
    board = Board(runtime.run_dir / "board", runtime.layout)
    fleet = Fleet(settings, runtime, nobody)
    targets = fleet.targets(name, model)
    chain = Chain(Rules(in_force).entries(name, question.team), model, targets)
    clock = Clock()
    terms = chain.terms(partial(_asking, name, question), wall_us=clock.wall_us(), key="")
    request = Request(
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
    rule = terms.rule
    candidates = Candidates(
        board, prices, stale_s=settings.telemetry.stale_s, limits=model_limits()
    )
    frozen = candidates.freeze(
        targets,
        request,
        model.compare_with,
        rooms_pusd=[None] * len(targets),
        ceiling_pusd=rule.policy.max_cost_pusd,
        clock=clock,
    )
    policy = rule.priced(frozen)
    decision = decide(request, policy, tuple(entry.candidate for entry in frozen))
    board.close()
    return decision


def _asking(model: str, question: Question) -> Asking:
    return Asking(
        model=model,
        team=question.team,
        prompt_tokens=question.prompt_tokens,
        max_tokens=question.max_tokens or 0,
    )


def _runtime(settings: Settings, url: str) -> Runtime:
    """What the running host resolved, or the same with no ports when none runs."""
    path = settings.state.resolve() / "run" / "runtime.json"
    if path.exists():
        runtime = Runtime.load(path)
        if runtime.policy_version == version(settings):
            return runtime
    path.parent.mkdir(parents=True, exist_ok=True)
    return unstarted(settings, url)


def unstarted(settings: Settings, url: str) -> Runtime:
    """What `serve` would resolve, without a port."""
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
        ledger_url=url,
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
