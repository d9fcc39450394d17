"""The ledger's form: small, plain, and enough to say what was decided and on what."""

from dataclasses import replace

import msgspec
import pytest

from router.decide import decide
from router.packed import NUMBERS, PACK_CANDIDATES, pack, pack_bounded, stage_of, unpack
from router.reasons import Reason
from router.stages import StageNote
from router.types import Feature, InfeasibleAction, OutputMoments, Preference, Slo, TargetHealth


def encoded(request, policy, fleet):
    return msgspec.msgpack.encode(pack(request, policy, decide(request, policy, fleet)))


def fleet_of(own, api, count):
    """Big numbers and long names: twice the tokens that the largest engines hold today."""
    large = {"kv_capacity_tokens": 4_000_000, "kv_used_tokens": 1_912_345.0, "running": 180,
             "context_tokens": 1_912_345.0, "queued_prefill_tokens": 123_456.0,
             "kv_promised_tokens": 212_345.0, "prefix_hit_tokens": 512, "age_s": 0.7}  # fmt: skip
    return [
        own(large, name=f"pool:llama-3.3-70b-fp8/{place}", bid_price_pusd_per_s=4e9)
        if place % 2
        else api(name=f"openrouter/anthropic/claude-haiku-4-5-{place}", expected_pusd=7_123_456_789)
        for place in range(count)
    ]


@pytest.mark.parametrize("slo", [Slo(ttft_ms=500.0, tpot_ms=50.0), Slo()])
def test_eight_candidates_fit_in_800_bytes(ask, rule, own, api, slo):
    request = ask(prompt_tokens=7654, prompt_tokens_bound=65_432, max_tokens=16_384,
                  features=frozenset(Feature), salted=True)  # fmt: skip
    policy = rule(slo=slo, name="code-completion", penalty_pusd=2_000_000_000)
    wide = [replace(named, output_cap=131_072) for named in fleet_of(own, api, 8)]
    assert len(encoded(request, policy, wide)) <= 800
    names = [named.name for named in wide]
    shares = ask(preferred=Preference(frozenset(names[:2]), Reason.CANARY),
                 barred=dict.fromkeys(names[2:4], (Reason.CANARY, "")))  # fmt: skip
    request = replace(request, preferred=shares.preferred, barred=shares.barred)
    assert len(encoded(request, policy, wide)) <= 800


def test_more_candidates_are_counted_not_kept(ask, rule, own, api):
    fleet = fleet_of(own, api, 20)
    packed = unpack(msgspec.msgpack.decode(encoded(ask(), rule(), fleet)))
    assert len(packed["candidates"]) == PACK_CANDIDATES
    assert packed["omitted"] == 12


def test_whom_a_share_prefers_and_bars_comes_back(ask, rule, own, api):
    preference = Preference(frozenset({"pool:llama/1", "gone"}), Reason.CANARY)
    barred = {"x": (Reason.CANDIDATES, "not in the share"), "y": (Reason.CANARY, "")}
    fleet = [own(), own(name="pool:llama/1"), api(name="x"), api(name="y")]
    for asked, expected in (
        (
            ask(preferred=preference, barred=barred),
            {"preferred": [["pool:llama/1"], "canary"],
             "barred": {"x": "candidates", "y": "canary"}},
        ),
        (ask(preferred=preference), {"preferred": [["pool:llama/1"], "canary"]}),
        (ask(barred=barred), {"barred": {"x": "candidates", "y": "canary"}}),
        (ask(barred={}), {}),
    ):  # fmt: skip
        found = unpack(msgspec.msgpack.decode(encoded(asked, rule(), fleet)))["request"]
        kept = {name: found[name] for name in ("preferred", "barred") if name in found}
        assert msgspec.to_builtins(kept) == expected


def test_unpack_gives_back_what_was_decided(ask, rule, own, api):
    request = ask(features=frozenset({Feature.TOOLS, Feature.N}), salted=True)
    policy = rule(otherwise=InfeasibleAction.QUEUE)
    fleet = [own(), own({"kv_used_tokens": 99_000.0}, name="pool:llama/1"), api()]
    decision = decide(request, policy, fleet)
    found = unpack(msgspec.msgpack.decode(encoded(request, policy, fleet)))
    assert found["request"] == {
        "kind": "chat", "prompt_tokens": 500, "prompt_tokens_bound": 900, "max_tokens": 400,
        "n": 1, "features": ["tools", "n"], "residency": "any", "salted": True,
        "output_count": 100, "output_mean": 100, "output_mean_square": 15_000, "output_p95": 300,
    }  # fmt: skip
    assert found["policy"] == {
        "name": "p", "ttft_ms": 500.0, "tpot_ms": 50.0, "kv_headroom_floor": 0.1,
        "penalty_pusd": 1_000_000, "otherwise": "queue",
    }  # fmt: skip
    assert (found["reason"], found["tried"], found["omitted"]) == ("cheapest", 2, 0)
    for entry, verdict in zip(found["candidates"], decision.verdicts, strict=True):
        assert entry["name"] == verdict.candidate.name
        assert entry["reason"] == verdict.reason
        assert entry["feasible"] is verdict.feasible
        assert entry["load"] == (
            None if verdict.load is None else pytest.approx(verdict.load, rel=1e-6)
        )
        if verdict.candidate.engine is None:
            assert entry["engine"] is None
        else:
            assert entry["ttft_ms"] == pytest.approx(verdict.ttft_ms, rel=1e-6)
            assert entry["engine"]["kv_used_tokens"] == verdict.candidate.engine.kv_used_tokens


def test_what_is_not_finite_is_not_known(ask, rule, own):
    fleet = [own({"prefill_rate_tokens_per_s": 1e6, "age_s": float("inf")})]
    entry = unpack(msgspec.msgpack.decode(encoded(ask(), rule(), fleet)))["candidates"][0]
    assert (entry["tpot_ms"], entry["engine"]["age_s"]) == (None, None)


CROWDED = {
    "kv_used_tokens": 61_000.0, "kv_promised_tokens": 20_000.0, "prefix_hit_tokens": 200,
    "residents": tuple((1000.0 * n, 1000.0 * n + 500 * (n % 3), 3.0 * n) for n in range(1, 11)),
}  # fmt: skip


@pytest.mark.parametrize("floor", [0.1, 0.4])
def test_the_kv_figure_can_be_computed_again_from_the_record(ask, rule, own, floor):
    """Capacity and block size are the engine's, versioned elsewhere; all else is in the record."""
    request, policy = ask(), rule(kv_headroom_floor=floor, slo=Slo())
    fleet = [own(CROWDED)]
    (verdict,) = decide(request, policy, fleet).verdicts
    assert verdict.feasible is (floor == 0.1)
    found = unpack(msgspec.msgpack.decode(encoded(request, policy, fleet)))
    seen, asked = found["candidates"][0]["engine"], found["request"]
    output = OutputMoments(
        asked["output_count"], asked["output_mean"], asked["output_mean_square"],
        asked["output_p95"],
    )  # fmt: skip
    again = ask(prompt_tokens=asked["prompt_tokens"], max_tokens=asked["max_tokens"], output=output)
    names = ("kv_used_tokens", "kv_promised_tokens", "prefix_hit_tokens")
    state = {name: seen[name] for name in names}
    state["residents"] = tuple(
        (resident["held_tokens"], resident["final_tokens"], resident["slack_tokens"])
        for resident in seen["residents"]
    )
    (recomputed,) = decide(again, policy, [own(state)]).verdicts
    assert recomputed.kv_free_tokens == pytest.approx(verdict.kv_free_tokens, abs=1)
    assert seen["kv_free_tokens"] == pytest.approx(verdict.kv_free_tokens, abs=1)
    assert seen["kv_promise_tokens"] == verdict.kv_promise_tokens > 0
    blind = decide(again, policy, [own({**state, "residents": ()})]).verdicts[0]
    assert blind.kv_free_tokens < verdict.kv_free_tokens - 1000, "it is made of the residents"


def test_residents_that_do_not_fit_are_left_out_and_the_figure_stays(ask, rule, own, api):
    request, policy = ask(), rule()
    decision = decide(request, policy, [own(CROWDED, name=f"pool:llama/{n}") for n in range(6)])

    def kept(limit_bytes):
        return pack_bounded(limit_bytes, msgspec.msgpack.encode, (request, policy, decision))

    whole = kept(10_000)
    assert len(unpack(msgspec.msgpack.decode(whole))["candidates"][5]["engine"]["residents"]) == 10
    assert kept(len(whole)) == whole
    short = kept(len(whole) - 1)
    assert len(short) < len(whole)
    for entry in unpack(msgspec.msgpack.decode(short))["candidates"]:
        assert entry["engine"]["residents"] == []
        assert entry["engine"]["kv_free_tokens"] is not None
    assert kept(len(short) - 1) == b""


def test_what_was_not_forecast_keeps_what_was_seen(ask, rule, own, api):
    fleet = [own({"health": TargetHealth.DOWN}), replace(api(), api=None), api(name="openai/large")]
    found = unpack(msgspec.msgpack.decode(encoded(ask(), rule(slo=Slo()), fleet)))
    assert found["policy"]["ttft_ms"] is found["policy"]["tpot_ms"] is None
    entries = {entry["name"]: entry for entry in found["candidates"]}
    assert entries["openai/large"]["miss_probability"] == 0
    assert [entries["openai/small"][name] for name in NUMBERS] == [None] * len(NUMBERS)
    down = entries["pool:llama/0"]
    assert (down["reason"], down["feasible"], down["ttft_ms"]) == ("unhealthy", False, None)
    assert (down["engine"]["running"], down["engine"]["kv_free_tokens"]) == (4, None)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_no_number_is_too_odd_for_a_record(ask, rule, own, number):
    fleet = [own({**CROWDED, "context_tokens": number, "residents": ((number, 1.0, 0.0),)})]
    (entry,) = unpack(msgspec.msgpack.decode(encoded(ask(), rule(), fleet)))["candidates"]
    assert entry["engine"]["context_tokens"] is None
    assert entry["engine"]["running"] == 4


def test_the_cap_on_an_open_ended_answer_is_kept(ask, rule, own, api):
    request = ask(max_tokens=None)
    fleet = [own(), api(output_cap=3000), api(name="openai/large", output_cap=256)]
    found = unpack(msgspec.msgpack.decode(encoded(request, rule(), fleet)))
    caps = {entry["name"]: entry["output_cap_tokens"] for entry in found["candidates"]}
    assert caps == {"pool:llama/0": None, "openai/small": 3000, "openai/large": 256}


def test_another_version_is_refused(ask, rule, own):
    packed = pack(ask(), rule(), decide(ask(), rule(), [own()]))
    for version in (3, 99):
        with pytest.raises(ValueError, match=f"version {version}"):
            unpack((version, *packed[1:]))


# Packed on 2026-11-26, before reasons had a table: eight reasons and two features in each.
BEFORE = (
    (
        "98049ca4636861740a141e0103a3616e79c201079100dc00100000010102020303040405050606070793a170"
        "00a672656a656374c4180000004000008040000000410000c07f0000c07fcdcccc3d0000009894a56170692f"
        "3000c2c40094a56170692f3101c2c40094a56170692f3202c2c40094a56170692f3303c2c40094a56170692f"
        "3404c2c40094a56170692f3505c2c40094a56170692f3606c2c40094a56170692f3707c2c400"
    ),
    (
        "98049ca4636861740a141e010ca3616e79c2010f9100dc001000080109020a030b040c050d060e070f93a170"
        "00a672656a656374c4180000004000008040000000410000c07f0000c07fcdcccc3d0800009894a56170692f"
        "3008c2c40094a56170692f3109c2c40094a56170692f320ac2c40094a56170692f330bc2c40094a56170692f"
        "340cc2c40094a56170692f350dc2c40094a56170692f360ec2c40094a56170692f370fc2c400"
    ),
    (
        "98049ca4636861740a141e0130a3616e79c201179100dc00100010011102120313041405150616071793a170"
        "00a672656a656374c4180000004000008040000000410000c07f0000c07fcdcccc3d1000009894a56170692f"
        "3010c2c40094a56170692f3111c2c40094a56170692f3212c2c40094a56170692f3313c2c40094a56170692f"
        "3414c2c40094a56170692f3515c2c40094a56170692f3616c2c40094a56170692f3717c2c400"
    ),
    (
        "98049ca4636861740a141e01ccc0a3616e79c2011e91009e00180119021a031b041c051d061e93a17000a672"
        "656a656374c4180000004000008040000000410000c07f0000c07fcdcccc3d1800009794a56170692f3018c2"
        "c40094a56170692f3119c2c40094a56170692f321ac2c40094a56170692f331bc2c40094a56170692f341cc2"
        "c40094a56170692f351dc2c40094a56170692f361ec2c400"
    ),
)


def test_decisions_that_were_packed_before_are_read_as_they_were():
    words, features = [], []
    for text in BEFORE:
        told = unpack(msgspec.msgpack.decode(bytes.fromhex(text)))
        reasons = [each["reason"] for each in told["candidates"]]
        assert told["reason"] == reasons[0]
        assert list(told["request"]["barred"].values()) == reasons
        assert told["request"]["preferred"] == [["api/0"], reasons[-1]]
        words += reasons
        features += told["request"]["features"]
    assert words == [
        "cheapest", "sticky", "only", "best_effort", "costlier", "bid_price", "busier", "model",
        "feature", "unhealthy", "loading", "draining", "unknown_state", "context", "residency",
        "unpriced", "price_cap", "kv_headroom", "circuit_open", "rate_limit", "budget", "ttft",
        "tpot", "salt", "batch", "weight", "canary", "candidates", "quality", "static", "disabled",
    ]  # fmt: skip
    assert features == [
        "tools", "json_schema", "images", "logprobs", "n", "reasoning", "store", "media_urls",
    ]  # fmt: skip


def test_what_an_apis_cache_has_of_the_prompt_is_kept(ask, rule, api):
    warm = api(cached_tokens=12_000, cache_saves_pusd=13_500_000_000)
    (found,) = unpack(msgspec.msgpack.decode(encoded(ask(), rule(), [warm])))["candidates"]
    assert found["cached_tokens"] == 12_000
    assert found["cache_saves_pusd"] == pytest.approx(13_500_000_000, rel=1e-6)
    assert found["miss_probability"] is not None
    (plain,) = unpack(msgspec.msgpack.decode(encoded(ask(), rule(), [api()])))["candidates"]
    assert "cached_tokens" not in plain


@pytest.mark.parametrize("count", [0, 3, 40])
def test_a_stage_stands_behind_the_decision_and_the_rest_stays_as_it_was(
    ask, rule, own, api, count
):
    request, policy, fleet = ask(), rule(), fleet_of(own, api, 2)
    decision = decide(request, policy, fleet)
    earlier = tuple((f"pool:llama-3.3-70b-fp8/{n}", Reason.KV_HEADROOM) for n in range(count))
    note = StageNote(2, 3, "failure", earlier)
    plain, staged = pack(request, policy, decision), pack(request, policy, decision, stage=note)
    assert staged[: len(plain)] == plain
    assert (stage_of(plain), stage_of(staged)) == (
        None, note._replace(earlier=earlier[:PACK_CANDIDATES]),
    )  # fmt: skip
    found = unpack(staged)["stage"]
    assert (found["number"], found["count"], found["after"]) == (2, 3, "failure")
    assert "stage" not in unpack(plain)


@pytest.mark.parametrize("limit", [800, 330, 200])
def test_what_is_packed_again_from_what_was_kept_is_the_same(ask, rule, own, api, limit):
    request, policy = ask(), rule()
    asked = request, policy, decide(request, policy, fleet_of(own, api, 2))
    earlier = tuple((f"pool:llama-3.3-70b-fp8/{n}", Reason.TTFT) for n in range(8))
    note = StageNote(2, 2, "any", earlier)
    kept = pack_bounded(limit, msgspec.msgpack.encode, asked, note)
    if kept:
        again = stage_of(msgspec.msgpack.decode(kept))
        assert bool(again.earlier) is (limit == 800)
        assert pack_bounded(limit, msgspec.msgpack.encode, asked, again) == kept
