"""Money as integer pico-USD (10^-12 USD), from the price book to the last total.

A price in micro-USD per million tokens is the same number as pico-USD per token, so a cost is
`tokens x price` without rounding. Amounts are converted to another unit only for display.
Conversions are exact or raise; functions that round say so: half-even, or up for upper bounds.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction

PUSD_PER_USD = 10**12
PPM = 1_000_000

# The precision holds any price or total; the Inexact trap raises if a digit is lost.
_EXACT = Context(prec=60, traps=[Inexact, InvalidOperation])
_ROUNDED = Context(prec=60, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation])


class MoneyError(ValueError):
    """A value that is not an amount, or an amount that cannot be represented exactly."""


def usd_to_pusd(usd: Decimal | int) -> int:
    """Convert exactly. Raises `MoneyError` for an amount finer than a pico-USD, or a float."""
    pusd = _scaled(usd)
    whole = int(pusd)
    if whole != pusd:
        raise MoneyError(f"{usd} USD is not a whole number of pico-USD")
    return whole


def usd_to_pusd_rounded(usd: Decimal | int) -> int:
    """Convert half-even, for external amounts with more digits than are significant."""
    return int(_scaled(usd).to_integral_value(rounding=ROUND_HALF_EVEN))


def pusd_to_usd(pusd: int) -> Decimal:
    """Convert exactly to dollars."""
    return _EXACT.scaleb(Decimal(pusd), -12)


def usd_per_million_to_pusd(usd: Decimal | int) -> int:
    """Convert a price in USD per million tokens to pico-USD per token, exactly.

    Raises `MoneyError` for a price finer than a pico-USD per token.
    """
    per_token = usd_to_pusd(usd)
    if per_token % 1_000_000:
        raise MoneyError(f"{usd} USD per million is finer than a pico-USD per token")
    return per_token // 1_000_000


def usd_exact(pusd: int) -> str:
    """Return dollars with twelve decimals (`0.000000004200`), for files and programs."""
    whole, rest = divmod(abs(pusd), PUSD_PER_USD)
    return f"{'-' if pusd < 0 else ''}{whole}.{rest:012d}"


def format_usd(pusd: int, places: int | None = None) -> str:
    """Return dollars as `$1,234.50`, rounded half-even to `places`, else with all digits."""
    sign = "-" if pusd < 0 else ""
    usd = pusd_to_usd(abs(pusd))
    if places is None:
        whole, _, fraction = f"{usd:f}".partition(".")
        fraction = fraction.rstrip("0").ljust(2, "0")
        return f"{sign}${int(whole):,}.{fraction}"
    rounded = _ROUNDED.quantize(usd, Decimal(1).scaleb(-places))
    return f"{sign if rounded else ''}${rounded:,f}"


def usd_text(pusd: int | Fraction, *, sign: bool = False) -> str:
    """Return dollars with their significant digits: `$1,235`, `$12.35`, `$0.000000033`.

    There is never an exponent; `sign` adds a plus before positive amounts.
    """
    whole = round(pusd)
    size = pusd_to_usd(whole).adjusted() if whole else 0
    if size >= 0:
        text = format_usd(whole, 0 if size >= 3 else 2)
    else:
        units, _, fraction = format_usd(whole, min(2 - size, 12)).partition(".")
        text = f"{units}.{fraction.rstrip('0').ljust(2, '0')}"
    return f"+{text}" if sign and whole > 0 else text


def divide_half_even(numerator: int, denominator: int) -> int:
    """Return `numerator / denominator` as the nearest integer, ties to even."""
    if denominator <= 0:
        raise MoneyError("the denominator must be positive")
    quotient, rest = divmod(numerator, denominator)
    twice = 2 * rest
    if twice > denominator or (twice == denominator and quotient % 2):
        return quotient + 1
    return quotient


def ceil_div(numerator: int | Fraction, denominator: int | Fraction) -> int:
    """Return `numerator / denominator` rounded up to an integer, exactly, for upper bounds."""
    if denominator <= 0:
        raise MoneyError("the denominator must be positive")
    return -(-numerator // denominator)


def split_largest_remainder(total: int, weights: Sequence[int]) -> list[int]:
    """Split `total` in proportion to `weights`, exactly, by the largest remainders.

    Each share differs from the exact proportion by less than one, and a zero weight gets nothing.
    Of equal remainders the first gets the unit, so the result depends on the arguments alone.
    Raises `MoneyError` for negative weights, or if all weights are 0 and `total` is not.
    """
    if any(weight < 0 for weight in weights):
        raise MoneyError("weights must not be negative")
    weight_sum = sum(weights)
    if weight_sum == 0:
        if total:
            raise MoneyError("nothing to split over: all weights are zero")
        return [0] * len(weights)
    if total < 0:
        return [-share for share in split_largest_remainder(-total, weights)]
    pairs = [divmod(total * weight, weight_sum) for weight in weights]
    shares = [share for share, _ in pairs]
    missing = total - sum(shares)
    by_rest = sorted(range(len(pairs)), key=lambda place: (-pairs[place][1], place))
    for place in by_rest[:missing]:
        shares[place] += 1
    return shares


def _scaled(usd: Decimal | int) -> Decimal:
    if isinstance(usd, bool) or not isinstance(usd, (Decimal, int)):
        raise MoneyError(f"{usd!r} is not an exact amount: use Decimal or int")
    amount = Decimal(usd)
    if not amount.is_finite():
        raise MoneyError(f"{usd} is not a number")
    try:
        return _EXACT.multiply(amount, Decimal(PUSD_PER_USD))
    except Inexact as error:
        raise MoneyError(f"{usd} USD has too many digits") from error
