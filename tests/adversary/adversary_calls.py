"""What an adversary does: calls of a client, and what the upstream makes and claims of them."""

from dataclasses import dataclass

from ledger.journals.records import TokenCounts
from ledger.prices.book import PriceTerms
from ledger.prices.modellimits import ModelLimits

NOTHING = TokenCounts()


@dataclass(frozen=True, slots=True)
class AdversaryCall:
    """One request with the upstream's answer.

    `made` is what an honest provider made and bills; `None`: nobody knows, but `least` was made.
    What is claimed is false where `is_lie`, and may be disputed where `is_odd`: it is honest and
    contradicts what was asked for. `is_beyond`: a medium has more tokens than are stated,
    so that an honest bill may be above the hold, and the target's next media are held for more.
    `is_beside`: thoughts are billed beside the limit,
    which the target's next requests are held for. The client leaves before the piece `leave_at`,
    and what is read without it is cut off before the piece `cut_at`. The upstream is silent for too
    long before the piece `silent_at`. The client wants the standard tier alone where
    `standard_only`, as Messages say it; `asks` is the tier that the upstream must be asked for.
    """

    path: str
    body: bytes
    pieces: tuple[bytes, ...]
    made: TokenCounts | None
    content_type: str = "application/json"
    media_type: str = "application/json"
    status: int = 200
    leave_at: int | None = None
    cut_at: int | None = None
    silent_at: int | None = None
    least: TokenCounts = NOTHING
    tier: str = "standard"
    standard_only: bool = False
    asks: str | None = None
    is_lie: bool = False
    is_odd: bool = False
    is_beyond: bool = False
    is_beside: bool = False


@dataclass(frozen=True, slots=True)
class AdversarySchedule:
    """Calls in turn, all of one team with a hard budget, at one price.

    `limits`: what is stated of the model's context and longest answer, None where nothing is.
    """

    terms: PriceTerms
    limit_pusd: int
    calls: tuple[AdversaryCall, ...]
    limits: ModelLimits | None = None
