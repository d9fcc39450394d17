from gateway.config.schema import Settings
from gateway.whatif.replay_fleet import ReplayFleet, engine_models
from gateway.whatif.whole_replicas import as_whole_replicas, note_on_roles
from ledger.prices.book import PriceBook

ROLES = {"prefill": 1, "decode": {"endpoints": ["http://10.0.0.2/v1"]}}


def settings(roles) -> Settings:
    engine = {"kind": "simulated", "model": "rtx4090-llama-3.1-8b", "replicas": 1}
    pool = {"engine": engine, "gpu": {"type": "CPU"}, "roles": roles}
    return Settings.model_validate({"pools": {"chat": pool}})


def test_engines_in_roles_are_played_as_whole_replicas() -> None:
    house = settings(ROLES)
    played = as_whole_replicas(house).pools["chat"]
    assert (played.engine.replicas, played.roles) == (3, None)
    plain = settings(None)
    assert as_whole_replicas(plain) is plain
    fleet = ReplayFleet(house, PriceBook(()), {}, {}, 0)
    assert [engine.role for engine in fleet.runtime.engines] == ["whole"] * 3


def test_what_is_not_played_is_said() -> None:
    assert note_on_roles(settings(None).pools["chat"]) == ""
    (source,) = engine_models(settings(ROLES), ["chat"], {}, ()).values()
    assert "roles are not played: 1 for prefill and 1 for decode are 3 whole" in source.source
