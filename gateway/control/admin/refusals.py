"""Errors of operations: text for the command line, kind and member for HTTP.

The module is separate from the operations because it knows the errors of all of them.
"""

from gateway.control.admin.verb import OperationRefused
from gateway.control.override_changes import OverrideError
from gateway.control.policy_changes import PolicyChangeError, PolicyConflict
from gateway.errors import RequestError
from ledger.identity.keys import IdentityError
from ledger.invoices.books import InvoiceStateError
from ledger.invoices.files import InvoiceError
from ledger.prices.book import PriceError
from ledger.prices.stored import BookMovedError

SDK_WAIT_S = 60.0  # longest `retry-after` that OpenAI's and Anthropic's SDKs obey
KINDS: dict[type[Exception], str] = {
    PolicyConflict: "policies_moved",
    PolicyChangeError: "bad_request",
    OverrideError: "bad_request",
    IdentityError: "bad_request",
    PriceError: "bad_request",
    BookMovedError: "prices_moved",
    InvoiceError: "bad_request",
    InvoiceStateError: "bad_request",
}


def request_error_of(error: Exception) -> RequestError | None:
    """Return the client error for an operation's own error; `None` for any other error."""
    words = _sentence(str(error))
    if isinstance(error, OperationRefused):
        # SDKs wait at most a minute: a longer wait is the caller's own to plan.
        retry = False if (error.retry_after_s or 0.0) > SDK_WAIT_S else None
        return RequestError(
            error.kind, words, param=error.param, retry_after_s=error.retry_after_s, retry=retry
        )
    for known, kind in KINDS.items():
        if isinstance(error, known):
            return RequestError(kind, words)
    return None


def _sentence(text: str) -> str:
    """Return a text of the command line as a sentence; a leading name stays as it is."""
    word = text.partition(" ")[0]
    start = word.capitalize() if word.isalpha() and word.islower() else word
    return start + text.removeprefix(word).removesuffix(".") + "."


def is_refused(error: Exception) -> bool:
    return isinstance(error, (OperationRefused, *KINDS))
