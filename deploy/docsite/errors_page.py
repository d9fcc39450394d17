"""The page `reference/errors.md`: every error of the gateway, for developers of clients."""

from typing import Final

from deploy.docsite.markdown import code, head, table
from gateway.errors import TABLE, ErrorFault

# For each kind: when the error occurs, and what a client should do.
ADVICE: Final = {
    "bad_request": "A member is missing, malformed or out of bounds. The message names it; "
    "`param` has its path. Change the request.",
    "bad_framing": "The bytes are not a valid HTTP/1.1 request. Check the client or the proxy.",
    "duplicate_key": "A JSON object has a key twice. Send it once.",
    "unsupported": "No target of the model has this parameter. Leave it out or name another model.",
    "socket_limit": "This WebSocket has reached its limit of time or messages. Open another one.",
    "context": "The prompt and the longest answer do not fit any target. Shorten one of them.",
    "content": "A policy keeps content of the request inside, and no target there can serve it. "
    "Name a model with own engines, or leave out what the message names.",
    "content_refused": "A policy refuses content of the request. The message names its kinds. "
    "Leave it out.",
    "content_filter": "The provider refused the content. Change the prompt.",
    "no_key": "The request has no key. Send `Authorization: Bearer KEY`.",
    "bad_key": "The key is unknown, revoked or expired. Use another one.",
    "forbidden": "The key lacks the scope or the model. Ask whoever made the key.",
    "residency": "The key or model is `internal_only` and no own engine can serve the request.",
    "isolation": "The team's cache isolation excludes every target that could serve the request.",
    "no_model": "No model of this name, or this key may not see it. `GET /v1/models` lists them.",
    "no_file": "No file with this id for this key's team.",
    "no_batch": "No batch with this id for this key's team.",
    "no_request": "No request with this id in the ledger.",
    "not_found": "No such object for this key.",
    "no_previous_response": "`previous_response_id` names no stored response of this team. "
    "Send the whole conversation.",
    "no_such_key": "No API key with this id that the caller may see.",
    "no_what_if": "No simulation job with this id.",
    "no_route": "The gateway has no such path. [HTTP API](http.md) lists all.",
    "not_served": "A known API path that is not served. The message says what to use instead.",
    "method": "The path exists, the method does not. `allow` lists the methods.",
    "slow_client": "The request's head or body came too slowly (`server.timeouts.receive_s`).",
    "duplicate_request": "The `Idempotency-Key` belongs to a request that runs or has ended. The "
    "message has its id.",
    "file_in_use": "A batch that has not ended reads the file. Cancel the batch first.",
    "policies_moved": "Somebody changed the policies since they were read. Read them again.",
    "prices_moved": "Somebody changed the prices since they were read. Read them again.",
    "what_if_busy": "Another simulation runs on this host. Wait for it.",
    "too_large": "The body exceeds `server.body_limit_bytes`.",
    "media_type": "Send `application/json`, or `multipart/form-data` where the path takes files.",
    "reused_key": "The `Idempotency-Key` came before with another body. Use a new key.",
    "head_too_large": "The request's headers exceed the limit.",
    "budget": "A hard budget has too little left for the request's bound. The message names it and "
    "the time of its next window. Another try before that is refused as well.",
    "rate": "A limit of requests or tokens a minute is used up. Wait for `retry-after`.",
    "too_many_batches": "The team has too many open batches. Wait for one to end.",
    "no_capacity": "The policy rejects what no target can serve within its promise. Try again "
    "after `retry-after`.",
    "internal": "The gateway failed. Report `x-request-id`: the cause is in the logs.",
    "upstream": "The target failed. `x-breakeven-backend` names it. Try again.",
    "unavailable": "No target of the model serves at this moment, or the ledger is not ready. Try "
    "again after `retry-after`.",
    "overloaded": "This worker has its most requests in work. Try again after `retry-after`.",
    "not_idle": "A line of a batch waits for an idle engine. Clients do not see it.",
    "not_onward": "No provider's batch takes the line of a batch. Clients do not see it.",
    "made_room": "A line of a batch gave way to a live request and runs again later. Clients do "
    "not see it.",
    "timeout": "The target did not answer in time (`server.timeouts`). Try again.",
}
FAULTS: Final = {
    ErrorFault.REQUEST: "change the request; the same one is refused again",
    ErrorFault.KEY: "use another key, or have its rights changed",
    ErrorFault.LIMIT: "wait for `retry-after`, or have the limit or the budget raised",
    ErrorFault.CAPACITY: "try again after `retry-after`",
    ErrorFault.UPSTREAM: "try again, or name another model",
    ErrorFault.GATEWAY: "report `x-request-id`",
}

PASSED_ON: Final = (
    "An error that a provider answers keeps the provider's status and message where the request is "
    "at fault (4xx)."
)


def text() -> str:
    """Return the text of the page."""
    if bare := sorted(TABLE.keys() - ADVICE.keys()):
        raise KeyError(f"{bare[0]}: write a sentence for it into ADVICE of this file")
    rows = (
        (str(spec.status), code(spec.code or "null"), code(spec.type), code(spec.fault.value),
         ADVICE[kind])
        for kind, spec in sorted(TABLE.items(), key=lambda item: (item[1].status, item[0]))
    )  # fmt: skip
    return "\n\n".join([
        head(
            "Errors",
            "An error has OpenAI's body: `error` with `message`, `type`, `param` and `code`. "
            "Clients of Anthropic's API (paths below `/v1/messages`, or the header "
            "`anthropic-version`) get Anthropic's body with the same message. Messages are for "
            "people and may change; act on the status, the code and these headers:",
            "* `x-breakeven-fault`: where the cause lies.\n"
            "* `retry-after`: seconds after which another try may succeed.\n"
            "* `x-should-retry: false`: no other try will succeed. The SDKs of OpenAI and "
            "Anthropic obey it.\n"
            "* `x-breakeven-backend`: the target that failed.\n"
            "* `x-request-id`: the request, as logs and ledger name it.",
        ),
        "## What to do, by fault",
        table(("`x-breakeven-fault`", "the client"),
              ((code(fault.value), words) for fault, words in FAULTS.items())),
        "## Every error",
        table(("status", "code", "type", "fault", "when, and what to do"), rows),
        PASSED_ON,
    ]) + "\n"  # fmt: skip
