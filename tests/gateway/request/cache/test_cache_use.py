"""Whoever changes an answer forbids that it is kept."""

from typing import Any

from gateway.request.cache.cache_use import AskedBytes, CacheDirectives, CacheUse

ASKED: Any = None


def test_it_may_be_kept_until_somebody_forbids_it() -> None:
    use = CacheUse(ASKED, AskedBytes("/", b"", ()), CacheDirectives())
    assert not use.forbidden
    use.forbid()
    assert use.forbidden
