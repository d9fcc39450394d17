"""Scopes of cached answers: model, policy and versions."""

from collections.abc import Callable
from hashlib import sha256

from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.kinds.inference_request import InferenceRequest
from gateway.policies.policy_match import PolicyTerms
from gateway.request.plan_facts import terms_of
from gateway.request.prompt_estimate import estimate_prompt
from gateway.request.routes import RouteCache, RouteContext
from ledger.identity.keys import Identity
from ledger.overrides import Override
from router.token_ratio import TokenRatio


def scopes_version(settings: Settings, policies: str, overrides: tuple[Override, ...]) -> str:
    """Return a name of all routing settings, equal in all workers of a host."""
    name = sha256(settings.model_dump_json().encode())
    name.update(f"{policies}\0{sorted(held.number for held in overrides)}".encode())
    return name.hexdigest()


class CacheScopes:
    """A finder of scopes. `prices_version` returns a name of the prices at a time in us."""

    def __init__(
        self,
        version: str,
        prices_version: Callable[[int], str],
        routes: RouteCache,
        ratio: TokenRatio,
        *,
        picture_tokens: int,
    ) -> None:
        self._version = version
        self._prices_version = prices_version
        self._routes = routes
        self._ratio = ratio
        self._picture_tokens = picture_tokens

    def version_at(self, at_us: int) -> str:
        """Return a version that changes with policies, overrides, models and prices."""
        return f"{self._version}/{self._prices_version(at_us)}"

    def scope_of(
        self, request_id: str, asked: InferenceRequest, identity: Identity, *, clock: Clock
    ) -> tuple[RouteContext, PolicyTerms]:
        """Return the first stage of the model, and the policy terms of this request.

        Raises `RequestError` 404 for an unknown model, 403 for one the key may not use.
        """
        route = self._routes.find(asked.model, identity, clock)
        terms = route.chain.constant
        if terms is not None:
            return route, terms
        tokens, _ = estimate_prompt(asked, self._ratio, route.learning_key, self._picture_tokens)
        return route, terms_of(route, asked, tokens, request_id, clock)
