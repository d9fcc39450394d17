"""Money is integer pico-USD (10^-12 USD) from the price book to the last total.

A price in micro-USD per million tokens is the same number as pico-USD per token, so a cost is
`tokens x price` without rounding. Amounts leave this unit only to be shown to people.
Conversions are exact or refused. Functions that round say so: half-even, or up for bounds.
"""

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction

PUSD_PER_USD = 10**12
PPM = 1_000_000

# Wide enough for any price or total; trapping Inexact makes lost digits an error.
_EXACT = Context(prec=60, traps=[Inexact, InvalidOperation])
_ROUNDED = Context(prec=60, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation])


class MoneyError(ValueError):
    """An amount that cannot be represented exactly, or is not an amount at all."""


def usd_to_pusd(usd: Decimal | int) -> int:
    """Exact conversion; an amount finer than a pico-USD is refused, a float is never accepted."""
    pusd = _scaled(usd)
    whole = int(pusd)
    if whole != pusd:
        raise MoneyError(f"{usd} USD is not a whole number of pico-USD")
    return whole


def usd_to_pusd_rounded(usd: Decimal | int) -> int:
    """Half-even conversion for foreign figures that carry more digits than they mean."""
    return int(_scaled(usd).to_integral_value(rounding=ROUND_HALF_EVEN))


def pusd_to_usd(pusd: int) -> Decimal:
    """Exact, with no exponent tricks: `Decimal(str)` of the result is the result."""
    return _EXACT.scaleb(Decimal(pusd), -12)


def usd_per_million_to_pusd(usd: Decimal | int) -> int:
    """A price in USD per million tokens as pico-USD per token: micro-USD per million, exactly."""
    per_token = usd_to_pusd(usd)
    if per_token % 1_000_000:
        raise MoneyError(f"{usd} USD per million is finer than a pico-USD per token")
    return per_token // 1_000_000


def usd_exact(pusd: int) -> str:
    """`0.000000004200`: all twelve places, for files and programs; never an exponent."""
    whole, rest = divmod(abs(pusd), PUSD_PER_USD)
    return f"{'-' if pusd < 0 else ''}{whole}.{rest:012d}"


def format_usd(pusd: int, places: int | None = None) -> str:
    """`$1,234.50`; `places` rounds half-even, without it every significant digit is shown."""
    sign = "-" if pusd < 0 else ""
    usd = pusd_to_usd(abs(pusd))
    if places is None:
        whole, _, fraction = f"{usd:f}".partition(".")
        fraction = fraction.rstrip("0").ljust(2, "0")
        return f"{sign}${int(whole):,}.{fraction}"
    rounded = _ROUNDED.quantize(usd, Decimal(1).scaleb(-places))
    return f"{sign if rounded else ''}${rounded:,f}"


def usd_text(pusd: int | Fraction, *, sign: bool = False) -> str:
    """`$1,235`, `$12.35`, `$0.0123`, `$0.000000033`: as many digits as say how much it is.

    How people read a sum, never with an exponent; `sign` puts a plus before gains.
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
    """`numerator / denominator` to the nearest integer, ties to even; the one rounding rule."""
    if denominator <= 0:
        raise MoneyError("the denominator must be positive")
    quotient, rest = divmod(numerator, denominator)
    twice = 2 * rest
    if twice > denominator or (twice == denominator and quotient % 2):
        return quotient + 1
    return quotient


def ceil_div(numerator: int | Fraction, denominator: int | Fraction) -> int:
    """`numerator / denominator` rounded up to an integer, exactly, as bounds need it."""
    if denominator <= 0:
        raise MoneyError("the denominator must be positive")
    return -(-numerator // denominator)


def split_largest_remainder(total: int, weights: Sequence[int]) -> list[int]:
    """Shares of `total` in proportion to `weights`, whose sum is `total` to the unit.

    Each share differs from the exact proportion by less than one; a zero weight gets nothing;
    equal remainders go to the earlier place, so the result depends on the arguments alone.
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
