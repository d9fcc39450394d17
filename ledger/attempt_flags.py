"""Flags of attempts that a person should review, each with a description."""

from typing import Final

UNPRICED: Final = "unpriced"
FLAGS: Final = {
    "disputed": "the target reported usage that cannot be",
    "late": "settled after it was given up for lost",
    "lost": "its worker died: booked at its bound until its outcome is known",
    "over_bound": "the target claims more than was held: booked at the hold, the rest disputed",
    "partly_read": "the target's usage has counts that nobody here knows",
    "partly_priced": "may have been charged what its price does not say",
    "unknown_tier": "a service tier without a price: booked at standard rates",
    UNPRICED: "no price known: in no sum",
    "unseen": "given up before its usage was known: booked at its bound",
}
