"""Hard budgets: refused once and by name, never exceeded, and no money stays held."""

import asyncio
import base64
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import msgspec
import pytest
from sqlalchemy import text

from backends.engine.silence import wav
from gateway.errors import RequestError
from gateway.fleet.output_cap import LEAST_TOKENS
from gateway.request.admission import BudgetAdmission, scopes
from ledger.budgets.client import BrokerUnavailable
from ledger.identity.keyring import Identity
from router.explain import unpack

# A request for 100 tokens in all is bounded by about 66 millionths of a dollar at this price.
MESSAGES = [{"role": "user", "content": "hello there"}]
TIGHT = [{"scope": "team:search", "usd": "0.002", "period": "day", "hard": True}]


@pytest.fixture(scope="module")
def tight(tmp_path_factory, running):
    with running(tmp_path_factory.mktemp("host"), budgets=TIGHT) as stack:
        yield stack


def ask(stack, _number: int = 0) -> httpx.Response:
    return stack.chat("api", max_tokens=100)


def spent(stack) -> int:
    return sum(row["cost_pusd"] or 0 for row in stack.rows())


def test_a_budget_is_used_up_and_never_exceeded_by_a_crowd(tight, patiently) -> None:
    with ThreadPoolExecutor(24) as crowd:
        answers = list(crowd.map(lambda number: ask(tight, number), range(60)))
    statuses = {answer.status_code for answer in answers}
    assert statuses == {200, 429}
    limit = 2 * 10**9
    patiently(lambda: all(row["settled_us"] for row in tight.rows()))
    assert spent(tight) <= limit
    bound = max(row["bound_pusd"] for row in tight.rows())
    for _ in range(20):  # alone, each asks in turn until there is truly no room for a bound
        if ask(tight).status_code == 429:
            break
    patiently(lambda: all(row["settled_us"] for row in tight.rows()))
    assert limit - 2 * bound < spent(tight) <= limit
    refused = ask(tight)
    assert (refused.status_code, refused.headers["x-should-retry"]) == (429, "false")
    error = refused.json()["error"]
    assert (error["type"], error["code"]) == ("insufficient_quota", "budget_exceeded")
    assert "team:search" in error["message"]
    assert "UTC" in error["message"]
    with tight.reader.connect() as connection:
        query = text("SELECT DISTINCT reason, http_status, scope FROM refusals")
        (noted,) = connection.execute(query).all()
    assert tuple(noted[:2]) == ("budget", 429)
    assert noted[2].startswith("team:search")
    desk = tight.app.hot._dispatcher.admission.desk
    assert [piece.held_pusd for piece in desk._slices.values() if piece.held_pusd] == []


def test_two_keys_of_one_tag_share_its_budget(run_stack, patiently) -> None:
    """The control is a third key, of the same team and without the tag."""
    limits = [{**TIGHT[0], "scope": "tag:app=web"}, {**TIGHT[0], "scope": "tag:stage", "usd": 1}]
    with run_stack(budgets=limits) as stack:
        tags = (("app", "web"), ("stage", "live"))
        tokens = [stack.key(name, tags=tags).token for name in ("first", "second")]

        def tagged(number: int) -> httpx.Response:
            return stack.chat("api", tokens[number % 2], max_tokens=100)

        with ThreadPoolExecutor(24) as crowd:
            answers = list(crowd.map(tagged, range(60)))
        refused = [answer for answer in answers if answer.status_code == 429]
        assert {answer.status_code for answer in answers} == {200, 429}
        assert "`tag:app=web@day`" in refused[0].json()["error"]["message"]
        # What the crowd gave back is used up; then either key finds no room.
        late = [tagged(number).status_code for number in range(20)]
        assert late[-2:] == [429, 429]
        plain = stack.key("plain", tags=(("app", "api"),)).token
        for token in (plain, stack.token):
            assert stack.chat("api", token, max_tokens=100).status_code == 200
        patiently(lambda: all(row["settled_us"] for row in stack.rows()))
        keys = {stack.key(name).key_id for name in ("first", "second")}
        costs = {key: sum(row["cost_pusd"] for row in stack.rows("key_id = :key", key=key))
                 for key in keys}  # fmt: skip
        assert all(costs.values())
        bound = max(row["bound_pusd"] for row in stack.rows())
        assert 2 * 10**9 - 2 * bound < sum(costs.values()) <= 2 * 10**9
        with stack.reader.connect() as connection:
            query = text("SELECT budget_id, spent_pusd FROM budget_windows")
            windows = {name: int(spent) for name, spent in connection.execute(query)}
        assert windows == dict.fromkeys(("tag:app=web@day", "tag:stage@day"), sum(costs.values()))


def test_a_soft_budget_lets_the_same_crowd_through(run_stack, patiently) -> None:
    """The control: what kept the crowd below the limit was the hold."""
    with run_stack(budgets=[{**TIGHT[0], "hard": False}]) as stack:
        with ThreadPoolExecutor(24) as crowd:
            answers = list(crowd.map(lambda number: ask(stack, number), range(60)))
        assert {answer.status_code for answer in answers} == {200}
        patiently(lambda: all(row["settled_us"] for row in stack.rows()))
        assert spent(stack) > 2 * 10**9


def test_what_a_target_may_read_is_held_for_wherever_it_stands(run_stack) -> None:
    """20,000 bytes are 3 thousandths of a dollar at most, and the budget has 2."""
    with run_stack(budgets=TIGHT) as stack:
        for name in ("functions", "documents", "response_format", "prediction", "x"):
            assert stack.chat("api", max_tokens=1, **{name: "y" * 20_000}).status_code == 429, name
        assert stack.chat("api", max_tokens=1, stop=["y" * 1000] * 20).status_code == 200


# Of one pixel, and in a format whose size is not read here.
SMALL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABAQAAAAA3bvkkAAAAAUlEQVR4duaE5gAAAABJRU5E"
    "rkJggg=="
)
UNREAD = "data:image/avif;base64,AAAAHGZ0eXBhdmlmAAAAAA=="


@pytest.mark.parametrize(
    ("model", "url", "detail", "shown", "status"),
    [
        ("gpt-4o-mini", SMALL, "low", 2, 200),  # 2,833 tokens each, of 8,000 that the budget has
        ("gpt-4o-mini", SMALL, "low", 3, 429),
        ("gpt-4o-mini", SMALL, "high", 1, 429),  # 8,500
        ("gpt-4o-mini", UNREAD, "low", 1, 429),  # the most of the model's rule, 48,169
        ("m", SMALL, "high", 1, 200),  # no rule of its own: 5,000 are stated
        ("m", UNREAD, "low", 1, 200),
        ("m", SMALL, "low", 2, 429),
    ],
)
def test_pictures_are_held_for_by_their_models_rule(
    run_stack, model, url, detail, shown, status
) -> None:
    """Targets are priced as `openai/gpt-4o-mini`, $0.25 a million; the budget has $0.002."""
    part = {"type": "image_url", "image_url": {"url": url, "detail": detail}}
    with run_stack(budgets=TIGHT) as stack:
        messages = [{"role": "user", "content": [part] * shown}]
        answer = stack.chat(f"alpha/{model}", messages=messages, max_tokens=1)
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize(("head", "status"), [(b"RIFF", 400), (b"none", 429)])
def test_sound_in_a_chat_is_held_at_its_length_where_it_can_be_decoded(
    run_stack, head, status
) -> None:
    """Two seconds are 85,000 bytes of text: as tokens more than the budget of the day.

    The simulated provider, once it is asked, refuses sound.
    """
    data = base64.b64encode(head + wav(2.0)[4:]).decode()
    part = {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    with run_stack(budgets=TIGHT) as stack:
        messages = [{"role": "user", "content": [part]}]
        answer = stack.chat("api", messages=messages, max_tokens=1)
        assert answer.status_code == status, answer.text
        assert ("unsupported content part" in answer.text) is (status == 400)


def test_another_team_is_not_refused(tight) -> None:
    other = tight.key("other", team="ads").token
    assert tight.chat("api", other, max_tokens=100).status_code == 200


def test_an_own_engine_serves_what_a_dear_api_may_not(run_stack) -> None:
    """The budget of the provider is spent; the request goes where it fits."""
    budgets = [{"scope": "provider:alpha", "usd": 0, "period": "day", "hard": True}]
    with run_stack(budgets=budgets) as stack:
        assert stack.chat("chat", max_tokens=5).headers["x-breakeven-backend"] == "pool:main/0"
        refused = stack.chat("api", max_tokens=5)
        assert refused.status_code == 429
        assert "provider:alpha" in refused.json()["error"]["message"]


@pytest.fixture
def sent(monkeypatch):
    """Records the bodies that a stack's APIs are sent, by provider."""

    def record(stack) -> dict[str, list[dict]]:
        bodies: dict[str, list[dict]] = {}
        for name, backend in stack.planner._routes._fleet._api_backends.items():

            async def open_(call, *, name=name, send=backend.open):
                bodies.setdefault(name, []).append(json.loads(call.body))
                return await send(call)

            monkeypatch.setattr(backend, "open", open_)
        return bodies

    return record


def budget(scope: str, usd: float | str, **changes) -> dict:
    return {"scope": scope, "usd": usd, "period": "day", "hard": True, **changes}


def test_an_open_end_is_capped_only_where_money_is_limited(run_stack, sent) -> None:
    """Ample money affords the model's own limit; `gpt-4o-mini` gives 16,384 tokens."""
    budgets = [budget("provider:alpha", 1), budget("provider:beta", 1, hard=False)]
    models = {name: {"targets": [f"{name}/m"]} for name in ("alpha", "beta")}
    with run_stack(budgets=budgets, models=models) as stack:
        bodies = sent(stack)
        capped, free = stack.chat("alpha", stop="e"), stack.chat("beta", stop="e")
        assert bodies["alpha"][0]["max_tokens"] == 16_384
        assert capped.headers["x-breakeven-decision"].endswith(" cap=16384")
        assert "max_tokens" not in bodies["beta"][0]
        assert "cap=" not in free.headers["x-breakeven-decision"]
        own = stack.chat("alpha", max_tokens=7)
        assert bodies["alpha"][1]["max_tokens"] == 7
        assert "cap=" not in own.headers["x-breakeven-decision"]


def test_a_small_budget_shortens_the_answer_and_refuses_below_the_least(
    run_stack, sent, patiently
) -> None:
    """Again and again the rest of the budget is what the next answer may cost, to the token."""
    with run_stack(budgets=[budget("provider:alpha", "0.001")]) as stack:
        bodies = sent(stack)
        limit, used = 10**9, 0
        for _ in range(20):
            room = limit - used
            answer = stack.chat("api")
            if answer.status_code == 429:
                break
            (row,) = stack.settled(answer)
            cap = bodies["alpha"][-1]["max_tokens"]
            assert answer.headers["x-breakeven-decision"].endswith(f" cap={cap}")
            assert recorded_caps(stack, row) == [cap]
            assert row["bound_pusd"] <= room <= row["bound_pusd"] + row["bound_pusd"] // cap
            assert row["output_tokens"] <= cap
            used += row["cost_pusd"]
            patiently(lambda used=used: _left(stack) == limit - used)
        assert answer.json()["error"]["code"] == "budget_exceeded"
        assert used <= limit
        assert limit - used < LEAST_TOKENS * (row["bound_pusd"] // cap)
        assert len(bodies["alpha"]) > 1


def recorded_caps(stack, row) -> list[int | None]:
    with stack.reader.connect() as books:
        query = text("SELECT decision FROM decisions WHERE attempt_id = :attempt_id")
        blob = books.execute(query, {"attempt_id": row["attempt_id"]}).scalar_one()
    candidates = unpack(msgspec.msgpack.decode(blob))["candidates"]
    return [candidate["output_cap_tokens"] for candidate in candidates]


def _left(stack) -> int:
    desk = stack.app.hot._dispatcher.admission.desk
    return desk.tightest(["provider:alpha"]).room_pusd


def test_what_others_hold_shortens_the_answer_too(run_stack, sent, patiently) -> None:
    """Another request holds half of the money, which is not spent yet and may never be."""
    models = {"api": {"targets": ["alpha/m"]}, "late": {"targets": ["late/m"]}}
    with run_stack(budgets=[budget("team:search", "0.0012")], models=models) as stack:
        bodies = sent(stack)
        waiting = stack.raw({"model": "late", "messages": MESSAGES, "max_tokens": 500})
        patiently(lambda: "late" in bodies)
        answer = stack.chat("api")
        assert answer.status_code == 200, answer.text
        (row,) = stack.settled(answer)
        (other,) = stack.rows("model = 'late'")
        cap, both = bodies["alpha"][0]["max_tokens"], row["bound_pusd"] + other["bound_pusd"]
        assert recorded_caps(stack, row) == [cap]
        assert recorded_caps(stack, other) == [None]  # it set its own limit
        assert both <= 12 * 10**8 <= both + row["bound_pusd"] // cap
        assert other["settled_us"] is None
        waiting.close()


def test_a_policys_cap_on_a_request_shortens_the_answer(run_stack, sent) -> None:
    policy = {"name": "thrifty", "max_usd_per_request": "0.001"}
    with run_stack(policies=[policy]) as stack:
        bodies = sent(stack)
        answer = stack.chat("api")
        (row,) = stack.settled(answer)
        assert LEAST_TOKENS < bodies["alpha"][0]["max_tokens"] < 1667
        assert row["bound_pusd"] <= 10**9


def test_with_the_desk_away_slices_go_on_and_beyond_them_it_is_503(run_stack, patiently) -> None:
    with run_stack(budgets=TIGHT) as stack:
        assert ask(stack).status_code == 200
        stack.call(stack.stop_writer())
        patiently(lambda: stack.get("/readyz").status_code == 503)
        assert stack.get("/readyz").json()["missing"] == ["ledger writer"]
        statuses = [ask(stack).status_code for _ in range(40)]
        assert statuses[-1] == 503
        assert set(statuses) <= {200, 503}
        answer = ask(stack)
        assert (answer.headers["retry-after"], answer.json()["error"]["code"]) == (
            "1",
            "unavailable",
        )
        stack.call(_start(stack))
        patiently(lambda: ask(stack).status_code == 200)


async def _start(stack) -> None:
    stack.start_writer()


def test_scopes_name_everything_a_budget_may_be_set_on(stack) -> None:
    planner = stack.planner
    own, api = planner._routes._fleet.targets("chat", stack.settings.models["chat"])
    identity = stack.call(stack.app.hot._keys.lookup(stack.token, 0))
    assert set(scopes(identity, "chat", own)) == {
        "global", "org:default", "team:search", f"key:{identity.key_id}", "model:chat",
    }  # fmt: skip
    ann = replace(identity, user_id="ann")
    assert set(scopes(ann, "chat", api)) - set(scopes(identity, "chat", own)) == {
        "user:ann", "provider:alpha",
    }  # fmt: skip
    tagged = replace(identity, tags=(("app", "web"), ("stage", "live")))
    assert set(scopes(tagged, "chat", own)) - set(scopes(identity, "chat", own)) == {
        "tag:app", "tag:app=web", "tag:stage", "tag:stage=live",
    }  # fmt: skip
    real = replace(api, simulated=False)
    assert "external" in scopes(identity, "chat", real)


def test_an_absent_desk_is_a_503_that_may_be_retried() -> None:
    class AwayLedger:
        async def hold(self, *_: object) -> None:
            raise BrokerUnavailable("gone")

    with pytest.raises(RequestError) as told:
        asyncio.run(BudgetAdmission(AwayLedger()).hold("a.1", ("global",), 1))
    assert (told.value.kind, told.value.retry_after_s) == ("unavailable", 1.0)


class Purse:
    """A desk with room by scope, that counts what it is asked."""

    def __init__(self, rooms: dict[str, int]) -> None:
        self.rooms, self.asked, self.news = rooms, [], 0

    def edition(self) -> int:
        return self.news

    def remaining_pusd(self, names) -> int | None:
        self.asked.append(tuple(names))
        return min((self.rooms[name] for name in names if name in self.rooms), default=None)


@pytest.mark.parametrize(
    "rooms",
    [
        {},
        {"team:search": 5},
        {"external": 5},
        {"team:search": 5, "external": 3, "provider:a": 9},
        {"key:k": 2, "provider:a": 1, "provider:b": 7},
    ],
)
def test_the_room_at_a_target_is_that_of_all_its_scopes(rooms: dict[str, int], targets) -> None:
    identity = Identity(
        key_id="k", user_id="u", team_id="search", org_id="o", scopes=frozenset(), models=None,
        residency="any", tags=(), isolation="team",
    )  # fmt: skip
    purse = Purse(rooms)
    room = BudgetAdmission(purse).rooms(identity, "m", targets)
    found = [*room.pusd(), *room.pusd()]
    assert len(purse.asked) == 4  # once at each kind of place
    assert found == 2 * [purse.remaining_pusd(scopes(identity, "m", target)) for target in targets]
    purse.rooms["global"] = 1
    assert [*room.pusd()] == found[: len(targets)], "nothing is new"
    purse.news += 1
    assert room.pusd() == (1,) * len(targets)


@pytest.fixture
def targets(stack) -> list:
    own, api = stack.planner._routes._fleet.targets("chat", None)
    assert (own.own, api.own) == (True, False)
    places = [("a", False), ("b", False), ("a", True)]
    apis = [replace(api, provider=name, simulated=simulated) for name, simulated in places]
    return [own, own, *apis, *apis]
