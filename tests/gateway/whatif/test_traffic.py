"""Prices by the token, exact."""

from gateway.whatif.traffic import ApiPrice


def test_a_price_is_pico_usd_per_token() -> None:
    assert ApiPrice(150_000, 600_000).of(1000, 200) == 270_000_000
