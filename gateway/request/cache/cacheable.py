"""Rules of the response cache: which requests qualify, which answers are stored. Pure.

A request qualifies if its answer follows from its bytes: temperature 0, a seed, an embedding, or
`x-breakeven-cache: any`. Requests that read from outside (media URLs, searches, stored answers) or
act (tools) do not. An answer is stored only if an equal request would get it from the policy's
preferred target. So answers are not stored that the gateway's cap cut, that a fallback, later stage
or canary gave, or that were booked otherwise than reported.
"""

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from gateway.errors import RequestError
from gateway.http.body import Members
from gateway.http.connection import Header
from gateway.http.fields import CACHE_ASKED, CACHE_CONTROL, PRAGMA
from gateway.kinds import KINDS
from gateway.kinds.inference_request import InferenceRequest
from gateway.kinds.spec import EqualAnswers
from gateway.policies.policy_match import PolicyTerms
from gateway.request.attempt import Attempt
from gateway.request.cache.cache_use import AskedBytes, CacheDirectives
from gateway.request.routes import RouteContext
from ledger.journals.records import AttemptSettled
from router.policy import tighten
from router.reasons import Reason
from router.types import Feature, Residency

ANY = b"any"  # of `x-breakeven-cache`: any answer will do
# Of the same header: no reads and no stores; answers then have `bypass`.
OFF = frozenset((b"off", b"bypass", b"no-store"))
ANEW = b"no-cache"
WORDS = frozenset((ANY, ANEW, *OFF))
BODY_LIMIT_BYTES = 256 * 1024  # hashing a longer one would delay streams
_NEVER = frozenset(
    {
        Feature.TOOLS,
        Feature.STORE,
        Feature.IMAGES,
        Feature.MEDIA_URLS,
        Feature.HOSTED_TOOLS,
        Feature.FILES,
    }
)
_encode = msgspec.msgpack.encode
_STOPPED, _CUT = "stop", "length"


NOTHING_SAID = CacheDirectives()


def check_words(headers: Iterable[Header]) -> None:
    """Raise `RequestError` for an unknown directive in `x-breakeven-cache`.

    Without that, a typo (`of` for `off`) would have the answer stored unnoticed.
    """
    for name, value in headers:
        if name == CACHE_ASKED and not WORDS.issuperset(_words_of(value)):
            field = CACHE_ASKED.decode()
            words = f"The header `{field}` takes `any`, `off`, `no-cache` or `no-store`."
            raise RequestError("bad_request", words, param=field)


def directives_of(headers: Iterable[Header]) -> CacheDirectives:
    """Return the directives of `Cache-Control` (RFC 9111), Pragma and `x-breakeven-cache`.

    `no-cache`: the answer is generated and stored; `no-store`: generated and not stored. Pragma's
    `no-cache` counts only without `Cache-Control` (RFC 9111, section 5.4).
    """
    said, pragmas, is_controlled = NOTHING_SAID, list[bytes](), False
    for name, value in headers:
        words = _words_of(value)
        if name == PRAGMA:
            pragmas += words
        elif name == CACHE_CONTROL:
            is_controlled = True
            for word in words:
                said = _with_directive(said, word)
        else:
            said = said._replace(any_answer=ANY in words)
            if not OFF.isdisjoint(words):
                said = said._replace(reads=False, stores=False)
            elif ANEW in words:
                said = said._replace(reads=False)
    return said._replace(reads=False) if ANEW in pragmas and not is_controlled else said


def _words_of(value: bytes) -> list[bytes]:
    return [word.strip() for word in value.lower().split(b",") if word.strip()]


def _with_directive(said: CacheDirectives, part: bytes) -> CacheDirectives:
    word, _, argument = part.partition(b"=")
    word, argument = word.strip(), argument.strip(b' "')
    if word == b"no-store":
        return said._replace(reads=False, stores=False)
    if word == b"no-cache":
        return said._replace(reads=False)
    if word == b"max-age" and argument.isdigit():
        age_s, before_s = int(argument[:9]), said.max_age_s
        return said._replace(max_age_s=age_s if before_s is None else min(age_s, before_s))
    return said


def is_cacheable(asked: InferenceRequest, *, any_answer: bool) -> bool:
    """Return whether equal requests may share an answer."""
    equal = KINDS[asked.kind].equal_answers
    if equal is EqualAnswers.NEVER:
        return False
    if equal is EqualAnswers.IF_SAME:
        if asked.n * asked.prompts != 1:
            return False
        if not any_answer and not is_deterministic(asked.members):
            return False
    return not (
        asked.media_parts
        or asked.has_sound
        or asked.files
        or asked.form is not None
        or asked.searches_limit
        or not asked.features.isdisjoint(_NEVER)
    )


def is_deterministic(members: Members) -> bool:
    """Return whether the request asks for a repeatable answer: temperature 0, or a seed."""
    if "seed" in members and _is_number(bytes(members["seed"])):
        return True
    if "temperature" not in members:
        return False
    text = bytes(members["temperature"])
    return _is_number(text) and float(text) == 0.0


def _is_number(text: bytes) -> bool:
    try:
        number = msgspec.json.decode(text)
    except msgspec.ValidationError:  # JSON numbers are unbounded, msgspec's are not
        return False
    return isinstance(number, int | float) and not isinstance(number, bool)


def answer_name(
    asked: AskedBytes,
    route: RouteContext,
    terms: PolicyTerms,
    residency: Residency,
    version: str,
) -> bytes:
    """Return the digest under which an answer is stored.

    It covers the key's organisation, team and tags, the model, and the tightest residency of model,
    key, request and policy. It also covers the targets that the policy prefers and bars, and
    `version` (configuration, policies, overrides, prices). Entries that differ in any of them are
    not found.
    """
    who, preferred = route.identity, terms.preferred
    scope = (
        version,
        (who.org_id, who.team_id, who.isolation, sorted(who.tags)),
        tighten(tighten(residency, route.residency), terms.rule.policy.residency).value,
        route.model,
        terms.rule.policy.name,
        None if preferred is None else sorted(preferred.names),
        sorted(terms.barred) if terms.barred else None,
        asked.path,
        asked.told,
    )
    name = sha256(_encode(scope))  # its own encoding delimits it
    name.update(asked.text)
    return name.digest()


def is_canary(terms: PolicyTerms) -> bool:
    """Return whether the request is one of a canary's share."""
    return terms.preferred is not None and terms.preferred.reason is Reason.CANARY


def is_keepable(attempt: Attempt, record: AttemptSettled, asked: InferenceRequest) -> bool:
    """Return whether the answer of an attempt may be reused for equal requests."""
    plan = attempt.plan
    always = KINDS[asked.kind].equal_answers is EqualAnswers.ALWAYS
    ends_itself = always or record.finish_reason == _STOPPED
    if record.finish_reason == _CUT and asked.max_tokens is not None:  # as the client requested
        ends_itself = attempt.step.frozen.candidate.output_cap is None
    return (
        ends_itself
        and record.status == "finished"
        and record.http_status == 200
        and not (record.disputed or record.unseen)
        and attempt.number == 1
        and plan.route.stage == 1
        and not plan.changed
        and not plan.terms.undecided
        and not is_canary(plan.terms)
        and attempt.step.verdict.reason is not Reason.CANARY
        and plan.asked is asked
    )
