"""A base URL is an origin and a path, and nothing else."""

import pytest

from backends.origin import Origin


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
