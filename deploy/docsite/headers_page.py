"""The page `reference/headers.md`: headers of requests and of responses."""

from typing import Final, NamedTuple

from deploy.docsite.markdown import code, head, table


class HeaderEntry(NamedTuple):
    """A header; `example` is a value as it is sent."""

    name: str
    example: str
    meaning: str


REQUEST: Final = (
    HeaderEntry("authorization", "Bearer gw_...", "The key, or a person's token."),
    HeaderEntry("x-api-key", "gw_...", "The key, as Anthropic's clients send it."),
    HeaderEntry("api-key", "gw_...", "The key, as Azure's clients send it."),
    HeaderEntry("idempotency-key", "order-17", "The request is dispatched once for this key."),
    HeaderEntry("x-session-id", "chat-42", "The session, for models with `sticky: session`."),
    HeaderEntry("x-breakeven-session", "chat-42", "The session, where `x-session-id` is taken."),
    HeaderEntry(
        "x-breakeven-tags", "run=42", "Tags of this request, of those with a budget for each value."
    ),
    HeaderEntry("traceparent", "00-4bf9...-01", "W3C trace that the request's spans belong to."),
    HeaderEntry(
        "cache-control", "no-cache", "`no-cache`, `no-store` or `max-age`, for the response cache."
    ),
    HeaderEntry(
        "x-breakeven-cache",
        "any",
        "`any`: one answer is as good as another, so an earlier one may come. `off` or `no-store`: "
        "no earlier answer, and this one is not kept. `no-cache`: a new answer, which is kept. "
        "Other words get 400.",
    ),
    HeaderEntry("pragma", "no-cache", "As `cache-control: no-cache`, where that is missing."),
    HeaderEntry("anthropic-version", "2023-06-01", "Errors and lists in Anthropic's form."),
    HeaderEntry("anthropic-beta", "...", "Passed to providers that list it in `betas`."),
)
RESPONSE: Final = (
    HeaderEntry("x-request-id", "req_0123abcd", "The request, as logs and ledger name it."),
    HeaderEntry("request-id", "req_0123abcd", "The same, for Anthropic's clients."),
    HeaderEntry("x-breakeven-backend", "pool:tiny/0", "The target that served, or that failed."),
    HeaderEntry("x-breakeven-policy", "default", "The policy that matched."),
    HeaderEntry(
        "x-breakeven-decision", "own:cheapest ttft=80ms kv=0.12 z=0.40",
        "`own` or `api`, the [reason](reasons.md), the predicted time to the first token, of own "
        "engines the predicted share of the KV cache and the load (`z`), of APIs the probability "
        "that the promise is missed (`miss`); `stage=2` for a later stage.",
    ),
    HeaderEntry(
        "x-breakeven-cost-usd", "0.000012340000",
        "Exact cost in dollars, of answers in one piece. It is missing where no price is known, "
        "and on streams, whose cost is known after their head has left: "
        "[how to ask for it](../how-to/applications.md#what-a-request-cost).",
    ),
    HeaderEntry(
        "x-breakeven-tokens", "estimated",
        "On paths that count tokens: `counted` by the target that `x-breakeven-backend` names, or "
        "`estimated` by the gateway. On answers in one piece: `estimated` where the target did not "
        "report usage that can be meant, so that tokens and cost are the gateway's estimate.",
    ),
    HeaderEntry(
        "x-breakeven-ignored", "seed",
        "Members that the target has no form for, and tags without a budget.",
    ),
    HeaderEntry(
        "x-breakeven-content", "card=2,email=1",
        "Kinds of content that a policy's detectors found, with their counts.",
    ),
    HeaderEntry(
        "x-breakeven-cache", "hit",
        "While the cache is on: `hit` or `miss` where a request may be cached; `bypass` where its"
        " client asked for that.",
    ),
    HeaderEntry("age", "12", "Seconds since a cached answer was made."),
    HeaderEntry("x-breakeven-not-stored", "...", "Why an answer could not be stored."),
    HeaderEntry("x-breakeven-fault", "limit", "Where an error's cause lies ([errors](errors.md))."),
    HeaderEntry("retry-after", "3", "Seconds after which another try may succeed."),
    HeaderEntry("x-should-retry", "false", "Whether another try can succeed."),
    HeaderEntry("idempotent-replayed", "true", "The answer is the first one's, for nothing."),
    HeaderEntry("deprecation", "@1793491200", "Of a model that ends: when that was announced."),
    HeaderEntry("sunset", "Wed, 31 Mar 2027 00:00:00 GMT", "The time at which the model ends."),
    HeaderEntry(
        "link", '</v1/models/support-2027>; rel="successor-version"', "The model that follows it."
    ),
    HeaderEntry("x-ratelimit-limit-requests", "600", "The tightest limit of requests a minute."),
    HeaderEntry("x-ratelimit-remaining-requests", "599", "Requests that are left of it."),
    HeaderEntry("x-ratelimit-reset-requests", "1s", "Time until it is whole again."),
    HeaderEntry("x-ratelimit-limit-tokens", "100000", "The tightest limit of tokens a minute."),
    HeaderEntry("x-ratelimit-remaining-tokens", "98000", "Tokens that are left of it."),
    HeaderEntry("x-ratelimit-reset-tokens", "1s", "Time until it is whole again."),
)  # fmt: skip
SENT: Final = (
    HeaderEntry(
        "x-breakeven-signature", "t=...,v1=...",
        "On webhooks of alerts, events and reports: HMAC of the body under their `secret_env`.",
    ),
)  # fmt: skip


def text() -> str:
    """Return the text of the page."""
    parts = [head("Headers", "Names are compared without case.")]
    for title, entries in (
        ("Of requests", REQUEST),
        ("Of responses", RESPONSE),
        ("Of requests that the gateway sends", SENT),
    ):
        rows = ((code(item.name), code(item.example), item.meaning) for item in entries)
        parts += [f"## {title}", table(("header", "example", "meaning"), rows)]
    return "\n\n".join(parts) + "\n"
