"""Whatever is asked for, and by whom: a key made for oneself may do a part of what its maker may.

Makers are random, and so is what they ask for: keys, keys of keys, keys in the place of others.
What a key may do is read where requests read it, and compared over every name that may be asked.
"""

import asyncio
import itertools
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from gateway.config.settings import parse
from gateway.control.admin import keys as team_keys
from gateway.control.admin import own_keys
from gateway.control.admin.verb import OperationContext, OperationRefused
from gateway.control.roles import KeyScope, expand_scopes
from gateway.request.model_list import is_usable
from ledger.budgets.scopes import request_scopes
from ledger.database import make_engine, migrate, sqlite_url
from ledger.identity import keychanges
from ledger.identity.keychanges import ChangeAuthor
from ledger.identity.keyring import Identity, KeyGeneration, KeyRing
from ledger.identity.keys import IdentityError, KeySpec
from ledger.identity.pepper import agreed_pepper
from ledger.orm.identity import MetaRow

NOW_US = 1_780_000_000_000_000
DAY_US = 86_400_000_000
CONFIGURATION = {
    "models": {
        "own": {"targets": ["pool:main"], "compare_with": ["openai/gpt-4o-mini"]},
        "wide": {"targets": ["alpha/m", "pool:main"], "compare_with": ["openai/gpt-4o-mini"]},
        "api": {"targets": ["alpha/m"]},
        "alpha/friend": {"same_as": "own"},  # called as if it were a provider's
        "nick": {"same_as": "api"},
        "alpha/*": "passthrough",
    },
    "pools": {
        "main": {
            "engine": {"kind": "simulated", "model": "qwen3-4b-H200",
                       "endpoints": ["http://127.0.0.1:1/v1"]},
            "gpu": {"type": "H200", "usd_per_hour": "3.50"},
        }
    },
    "providers": {"alpha": {"base_url": "http://127.0.0.1:2/v1", "simulated": True}},
    "self_service": {"keys": 10_000, "keys_per_day": 10_000, "days": 100},
}  # fmt: skip
ASKED = ("own", "wide", "api", "alpha/friend", "nick", "alpha/m", "alpha/else", "alpha/*", "no")
LISTED = st.sampled_from(ASKED[:-1])
MODELS = st.none() | st.lists(LISTED, max_size=3)
SCOPES = st.lists(st.sampled_from(list(KeyScope)), max_size=4)
COMMON = st.lists(st.sampled_from(["inference", "keys:own"]), max_size=2)
DAYS = st.none() | st.integers(1, 200)
MAKERS = st.fixed_dictionaries(
    {
        "scopes": SCOPES, "models": MODELS, "days": DAYS,
        "residency": st.sampled_from(["any", "internal_only"]),
        "tags": st.dictionaries(st.sampled_from(["app", "stage"]), st.sampled_from("ab")),
        "user": st.sampled_from([None, "ann", "bob"]),
    }
)  # fmt: skip
REQUESTS = st.fixed_dictionaries(
    {
        "of": st.integers(0, 5), "turn": st.booleans(), "scopes": COMMON | SCOPES, "models": MODELS,
        "internal": st.none() | st.booleans(), "days": DAYS,
    }
)  # fmt: skip


class World:
    """A ledger of one file, its configuration, and a ring that reads keys as workers do."""

    def __init__(self, folder: Any) -> None:
        self.engine = make_engine(sqlite_url(folder / "ledger.db"), keep_open=True)
        migrate(sqlite_url(folder / "ledger.db"))
        self.folder, self.teams = folder, itertools.count()
        self.settings = parse(
            yaml.safe_dump({**CONFIGURATION, "state_dir": str(folder)}), name="test"
        )
        self.generation = KeyGeneration(folder / "run")
        self.ring = KeyRing(self.engine, folder / "run", folder)

    def make(self, spec: dict[str, Any]) -> str:
        days, models = spec["days"], spec["models"]
        made = KeySpec(
            name="root", team=f"team-{next(self.teams)}", user=spec["user"],
            residency=spec["residency"], scopes=(*spec["scopes"], "inference", "keys:own"),
            tags=tuple(spec["tags"].items()),
            models=None if models is None else tuple(models),
            expires_us=None if days is None else NOW_US + days * DAY_US,
        )  # fmt: skip
        with self.engine.begin() as connection:
            pepper = agreed_pepper(connection, self.folder)
            author = ChangeAuthor("admin", None, NOW_US)
            return keychanges.make(connection, made, author, pepper=pepper).token

    def identity(self, token: str, now_us: int = NOW_US) -> Identity | None:
        with self.engine.connect() as connection:
            self.generation.publish(connection.execute(select(MetaRow.value)).scalars().first())
        return asyncio.run(self.ring.lookup(token, now_us))

    def place(self, identity: Identity) -> OperationContext:
        return OperationContext(
            self.settings, "test", NOW_US, lambda: self.engine, lambda: None, identity
        )

    def ask(self, maker: Identity, asked: dict[str, Any]) -> str | None:
        """The token of what was made; None where it was refused."""
        place = self.place(maker)
        with suppress(OperationRefused, IdentityError):
            if asked["turn"]:
                turned = team_keys.RotateKeyInput(maker.key_id, "1h", asked["days"])
                return own_keys.own_keys_rotate.work(place, turned)["token"]
            new = own_keys.CreateOwnKeyInput(
                "made", asked["scopes"] or None, asked["models"], asked["internal"], asked["days"]
            )
            return own_keys.own_keys_create.work(place, new)["token"]
        return None


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    found = World(tmp_path_factory.mktemp("own-keys"))
    yield found
    found.ring.close()
    found.generation.close()
    found.engine.dispose()


def wider(world: World, made: Identity, maker: Identity) -> list[str]:
    """All that the one may do and the other may not."""
    faults = sorted(set(made.scopes) - expand_scopes(maker.scopes))
    faults += [
        f"model {name}"
        for name in ASKED
        if is_usable(world.settings, made, name) and not is_usable(world.settings, maker, name)
    ]
    if maker.residency == "internal_only" != made.residency:
        faults.append("residency")
    if dict(made.tags) != dict(maker.tags):
        faults.append("tags")
    faults += [f"{what} differs" for what in ("user_id", "team_id", "org_id", "isolation")
               if getattr(made, what) != getattr(maker, what)]  # fmt: skip
    bound = set(request_scopes(maker, "own")) - set(request_scopes(made, "own"))
    return faults + [f"does not count on {scope}" for scope in sorted(bound)]


def end_of(world: World, identity: Identity) -> float:
    with world.engine.connect() as connection:
        end_us = keychanges.find_key(connection, identity.key_id).expires_us
    return float("inf") if end_us is None else end_us


@settings(
    max_examples=40, deadline=None, suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)  # fmt: skip
@given(root=MAKERS, requests=st.lists(REQUESTS, min_size=1, max_size=6))
def test_what_is_made_may_do_a_part_of_what_its_maker_may(world, root, requests) -> None:
    known = [world.identity(world.make(root))]
    first = known[0]
    for asked in requests:
        maker = known[asked["of"] % len(known)]
        if "keys:own" not in maker.scopes:
            continue
        token = world.ask(maker, asked)
        event("refused" if token is None else "turned" if asked["turn"] else "made")
        if token is None:
            continue
        made = world.identity(token)
        assert made is not None
        for above in (maker, first):
            assert not wider(world, made, above)
        if asked["turn"]:
            assert end_of(world, made) <= end_of(world, maker)
        else:
            assert end_of(world, made) <= min(end_of(world, maker), NOW_US + 100 * DAY_US)
            assert made.scopes.isdisjoint({"keys", "keys:all"})
        known.append(made)


@pytest.mark.parametrize(
    "change",
    [
        {"scopes": frozenset({"inference", "prices"})}, {"models": None}, {"residency": "any"},
        {"models": ("alpha/friend",)}, {"tags": ()}, {"user_id": "bob"}, {"counts_on": ()},
    ],
    ids=" ".join,
)  # fmt: skip
def test_the_comparison_finds_each_way_to_be_wider(world, change) -> None:
    """The control of the property: an alias that a list of names lets through among them."""
    fields = {
        "key_id": "k", "user_id": "ann", "team_id": "search", "org_id": "default",
        "scopes": frozenset({"inference"}), "models": ("alpha/*",), "residency": "any",
        "tags": (("app", "a"),), "isolation": "team",
    }  # fmt: skip
    maker = Identity(**fields)
    if "residency" in change:
        maker = Identity(**{**fields, "residency": "internal_only"})
    made = {**fields, "residency": maker.residency, "key_id": "m", "counts_on": ("k",)}
    assert not wider(world, Identity(**made), maker)
    assert wider(world, Identity(**{**made, **change}), maker)


def test_a_list_of_names_is_compared_by_what_they_stand_for(world) -> None:
    """`alpha/friend` is the house's own model: who may use `alpha/*` may not use that."""
    maker = SimpleNamespace(models=("alpha/*",))
    with pytest.raises(OperationRefused):
        team_keys.refuse_more_models(world.settings, maker, ("alpha/friend",))
    team_keys.refuse_more_models(world.settings, maker, ("alpha/m",))
