"""A provider's rate limit."""

from backends.simulator.quota import Quota


def test_requests_and_tokens_run_out_and_come_back():
    quota = Quota(2, 1000)
    assert quota.spend(400, 0.0)
    assert not quota.spend(700, 0.0)
    assert quota.spend(600, 0.0)
    assert not quota.spend(0, 0.0)
    assert quota.wait_s(0.0) == 30
    assert quota.spend(100, 31.0)


def test_headers_say_what_is_left():
    quota = Quota(10, 1000)
    quota.spend(250, 5.0)
    assert dict(quota.headers(5.0)) == {
        b"x-ratelimit-limit-requests": b"10",
        b"x-ratelimit-remaining-requests": b"9",
        b"x-ratelimit-reset-requests": b"6000ms",
        b"x-ratelimit-limit-tokens": b"1000",
        b"x-ratelimit-remaining-tokens": b"750",
        b"x-ratelimit-reset-tokens": b"15000ms",
    }


def test_time_never_fills_it_beyond_its_limit():
    quota = Quota(10, 1000)
    quota.spend(1, 0.0)
    assert dict(quota.headers(1e6))[b"x-ratelimit-remaining-tokens"] == b"1000"
