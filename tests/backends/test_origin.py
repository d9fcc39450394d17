"""A base URL is an origin and a path, and nothing else."""

import pytest

from backends.origin import Origin, address_key


@pytest.mark.parametrize(
    ("url", "origin", "path", "authority"),
    [
        ("http://a:8000/v1/", Origin("http", "a", 8000), "/v1", "a:8000"),
        ("https://api.x.ai/v1", Origin("https", "api.x.ai", 443), "/v1", "api.x.ai"),
        ("http://[::1]:81", Origin("http", "::1", 81), "", "[::1]:81"),
    ],
)
def test_base_urls(url, origin, path, authority):
    assert Origin.parse(url) == (origin, path)
    assert origin.authority == authority


@pytest.mark.parametrize(
    "url",
    ["ftp://a/", "http://", "http://u:p@a/", "http://a/?q=1", "http://a/#f", "http://a/ b\r\nx:1"],
)
def test_base_urls_that_are_refused(url):
    with pytest.raises(ValueError):
        Origin.parse(url)


@pytest.mark.parametrize(
    ("url", "same"),
    [
        ("https://api.x.ai/v1/", True), ("HTTPS://API.X.AI:443/v1", True),
        ("https://api.x.ai/v1", True), ("https://api.x.ai", False), ("http://api.x.ai/v1", False),
        ("https://api.x.ai:8443/v1", False), ("https://eu.api.x.ai/v1", False), ("", False),
    ],
)  # fmt: skip
def test_an_address_is_one_however_it_is_written(url: str, same: bool) -> None:
    assert (address_key(url) == address_key("https://api.x.ai/v1")) is same
    assert address_key(url) == address_key(url)
