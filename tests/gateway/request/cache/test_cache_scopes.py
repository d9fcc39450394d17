"""Everything that a worker routes by has a part in the version."""

from gateway.config.settings import parse
from gateway.request.cache.cache_scopes import CacheScopes, scopes_version
from ledger.overrides import Override

PLAIN = """
models: {chat: {targets: [openai/x]}}
providers: {openai: {api_key_env: KEY}}
"""


def test_models_policies_and_overrides_make_another_version() -> None:
    settings = parse(PLAIN, name="t")
    other = parse(PLAIN.replace("openai/x", "openai/y"), name="t")
    held = Override(3, "target:x", "off", None, 0, "test")
    versions = {
        scopes_version(settings, "1", ()),
        scopes_version(settings, "2", ()),
        scopes_version(settings, "1", (held,)),
        scopes_version(other, "1", ()),
    }
    assert len(versions) == 4
    assert scopes_version(parse(PLAIN, name="t"), "1", ()) in versions


def test_the_prices_of_an_instant_are_in_it() -> None:
    scopes = CacheScopes("v", lambda at_us: f"prices {at_us}", None, None, picture_tokens=0)  # type: ignore[arg-type]  # neither is asked
    assert scopes.version_at(1) != scopes.version_at(2)
