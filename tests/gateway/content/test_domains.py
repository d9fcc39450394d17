"""Ends of domain names."""

from gateway.content.domains import TOP_DOMAINS


def test_ends_that_exist_are_there_and_methods_of_code_are_not() -> None:
    assert {"com", "org", "de", "io", "uk", "example"} <= TOP_DOMAINS
    assert TOP_DOMAINS.isdisjoint(("transpose", "shape", "append", "png"))
    assert all(name == name.lower() and name.isalpha() for name in TOP_DOMAINS)
