"""Results of a what-if as charts: dollars, promises, spill, load, and changed targets.

The document is the gateway's (`POST /v1/organization/policies/simulate`); only sums over its
classes and differences of two figures are computed here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import formatting, theme
from dashboard.charts import policies
from ledger.money import PUSD_PER_USD

Document = Mapping[str, Any]
MOST_FLOWS = 8
LONG_S = 3 * 3_600.0
AXES = (
    ("KV cache in use, highest of each stretch", "kv_ratio", "KV cache in use", ".0%"),
    ("Requests waiting in the engines' queues", "waiting", "requests", "d"),
    ("Sequences running in the engines", "running", "sequences", "d"),
)


def draw_result(document: Document) -> None:
    results = document["results"]
    names = [result["policy"] for result in results]
    _cards(document)
    left, right = st.columns(2)
    with left:
        st.subheader("Cost", anchor=False)
        theme.chart(policies.dollars(dollars(results), names), about="whatif")
        _show_lacking(results)
    with right:
        st.subheader("Spilled to APIs, of what own engines could serve", anchor=False)
        chart = policies.shares(spill_rows(results), names, "share spilled", whole=False)
        theme.chart(chart, about="whatif")
    st.subheader("Promises kept, by class", anchor=False)
    chart = policies.shares(attainment_rows(results), names, "share of requests", whole=True)
    theme.chart(chart, about="whatif")
    if any(kept_value["promise"] is not None for kept_value in attainment_rows(results)):
        st.caption("The upright mark is what the policy promises.")
    _load(document, names)
    _differences(document)
    with st.expander("What it rests on"):
        st.markdown("\n".join(f"* {line}" for line in notes(document)))


def dollars(results: Sequence[Document]) -> list[dict[str, Any]]:
    kinds = ((policies.FIXED, "fixed_usd"), (policies.CHARGED, "api_usd"))
    return [
        {"set": result["policy"], "kind": kind, "usd": result["dollars"][name]}
        for result in results
        for kind, name in kinds
    ]


def attainment_rows(results: Sequence[Document]) -> list[dict[str, Any]]:
    """Return the kept share of each class; classes without requests are omitted."""
    return [
        {
            "row": each["class"],
            "kind": result["policy"],
            "share": each["attainment"],
            "promise": each["slo"]["attainment"] if _promises(each) else None,
            "more": f"{formatting.count(each['requests'])} requests",
        }
        for result in results
        for each in result["classes"]
        if each["attainment"] is not None
    ]


def spill_rows(results: Sequence[Document]) -> list[dict[str, Any]]:
    found = []
    for result in results:
        spill = result["spill"]
        usd = f"{_money(spill['spilled_value_usd'])} at API prices"
        count = (
            f"{formatting.count(spill['spilled'])} of {formatting.count(spill['requests'])} "
            "requests"
        )
        for row, name, more in (
            ("by requests", "share_by_count", count), ("by value", "share_by_value", usd),
        ):  # fmt: skip
            if spill[name] is not None:
                found.append(
                    {"row": row, "kind": result["policy"], "share": spill[name], "more": more}
                )
    return found


def attainment_of(result: Document) -> float | None:
    """Return the kept share of all requests; a refused request keeps no promise."""
    asked = sum(class_name["requests"] for class_name in result["classes"])
    good = sum(
        (class_name["attainment"] or 0.0) * class_name["requests"]
        for class_name in result["classes"]
    )
    return good / asked if asked else None


def loads(document: Document, pool: str) -> list[dict[str, Any]]:
    """Return samples of a pool for every set; `at` is in the unit of `time_title`."""
    unit_s = 3_600.0 if document["traffic"]["seconds"] > LONG_S else 60.0
    return [
        {**item, "kind": result["policy"], "at": item["at_s"] / unit_s}
        for result in document["results"]
        for item in result["load"]
        if item["pool"] == pool
    ]


def time_title(document: Document) -> str:
    unit = "hours" if document["traffic"]["seconds"] > LONG_S else "minutes"
    return f"{unit} from the first request"


def flow_rows(document: Document) -> list[dict[str, Any]]:
    return [
        {
            **flow,
            "name": f"{flow['from']}|to {flow['to']}",
            "shown": _change(flow["api_usd_change"]),
            "beside": f"{formatting.count(flow['requests'])}, {_change(flow['api_usd_change'])}",
        }
        for flow in document["disagreement"]["flows"][:MOST_FLOWS]
    ]


def notes(document: Document) -> list[str]:
    """Return notes on the sources and limits of the figures."""
    traffic = document["traffic"]
    came = f"{formatting.count(traffic['requests'])} requests of {traffic['source']}"
    length = formatting.length(round(traffic["seconds"] * 1e6))
    left_out = formatting.count(traffic["left_out"])
    lines = [
        f"{came}, over {length}, at {traffic['times']:g} times their pace.",
        f"{left_out} requests of that time got no answer and are left out.",
    ]
    lines += [f"Engines of {name}: {source}." for name, source in document["engines"].items()]
    lines += [
        f"{name}: first token {item['ttft_ms_p50']:.0f} ms, each further {item['tpot_ms_p50']:.1f} "
        f"ms at the median ({item['source']})."
        for name, item in document["apis"].items()
    ]
    unpriced = max(result["dollars"]["api_unpriced_requests"] for result in document["results"])
    if unpriced:
        lines.append(f"API dollars lack {formatting.count(unpriced)} requests without a price.")
    lines.append("Not played: budgets but teams' hard ones, rate limits, failures, sessions.")
    return lines


def _cards(document: Document) -> None:
    new, *rest = document["results"]
    old = rest[0] if rest else None
    for column, draw_one in zip(
        st.columns(4), (_total, _promise, _spill, _show_moved), strict=True
    ):
        with column:
            draw_one(document, new, old)


def _total(_: Document, new: Document, old: Document | None) -> None:
    usd = new["dollars"]["total_usd"]
    lines, tone = [], ""
    if old is not None:
        before = old["dollars"]["total_usd"]
        tone = "be-gain" if usd < before else "be-loss" if usd > before else ""
        lines = [f"**{_change(usd - before)}** against {_money(before)} in force"]
    if new["dollars"]["fixed_unknown_pools"]:
        lines.append("without own hardware whose rate nobody entered")
    theme.card("Cost in that time", theme.big(_money(usd), tone=tone, size="mid"),
              theme.small(*lines), about="whatif")  # fmt: skip


def _promise(_: Document, new: Document, old: Document | None) -> None:
    _show_comparison("Promises kept", attainment_of, new, old, better_is_more=True)


def _spill(_: Document, new: Document, old: Document | None) -> None:
    _show_comparison("Spilled to APIs", lambda entry: entry["spill"]["share_by_count"], new, old)


def _show_comparison(
    title: str,
    share: Callable[[Document], float | None],
    new: Document,
    old: Document | None,
    *,
    better_is_more: bool | None = None,
) -> None:
    now, before = share(new), None if old is None else share(old)
    tone, lines = "", []
    if now is not None and before is not None:
        lines = [f"in force: **{formatting.percent(before, digits=1)}**"]
        if better_is_more and round(now, 4) != round(before, 4):
            tone = "be-gain" if now > before else "be-loss"
    text = "no request" if now is None else formatting.percent(now, digits=1)
    theme.card(title, theme.big(text, tone=tone, size="mid"), theme.small(*lines), about="whatif")


def _show_moved(document: Document, _new: Document, old: Document | None) -> None:
    found = document.get("disagreement")
    if old is None or found is None:
        played = formatting.count(document["traffic"]["requests"])
        theme.card("Played", theme.big(played, size="mid"), theme.small("requests"), about="whatif")
        return
    text = formatting.percent(found["share"], digits=1)
    more = f"{formatting.count(found['moved'])} of {formatting.count(found['requests'])} requests"
    theme.card("Decided otherwise", theme.big(text, size="mid"), theme.small(more), about="whatif")


def _show_lacking(results: Sequence[Document]) -> None:
    lacks = sorted(
        {pool for result in results for pool in result["dollars"]["fixed_unknown_pools"]}
    )
    if lacks:
        st.caption(
            f"Without own hardware of {', '.join(lacks)}: enter your GPU rate on "
            "[Rates and teams](rates)."
        )


def _load(document: Document, names: Sequence[str]) -> None:
    pools = sorted({item["pool"] for result in document["results"] for item in result["load"]})
    if not pools:
        st.caption("No own engine is among the targets of this traffic: there is no load to show.")
        return
    pool = pools[0]
    if len(pools) > 1:
        pool = st.selectbox("Own pool", pools, key="whatif-pool")
    records = loads(document, pool)
    for title, field, unit, form in AXES:
        st.subheader(f"{title}, {pool}" if len(pools) > 1 else title, anchor=False)
        titles = time_title(document), unit
        chart = policies.over_time_chart(records, names, field, titles, form)
        theme.chart(chart, about="whatif")


def _differences(document: Document) -> None:
    found = document.get("disagreement")
    if found is None:
        return
    st.subheader("Where they disagree", anchor=False)
    if not found["moved"]:
        st.info("Both sent every request to the same place.", icon=":material/check_circle:")
        return
    st.caption("Requests that would have gone elsewhere, and by how much APIs would charge more.")
    theme.chart(policies.flows_chart(flow_rows(document)), about="whatif")
    with st.expander("Single requests"):
        theme.table(examples(document), about="whatif")


def examples(document: Document) -> list[dict[str, Any]]:
    return [
        {
            "from": flow["from"],
            "to": flow["to"],
            "after, s": example["at_s"],
            "model": example["model"],
            "team": example["team"],
            "prompt tokens": example["prompt_tokens"],
            "answer tokens": example["output_tokens"],
            "why before": formatting.reason(example["reason"][0]),
            "why now": formatting.reason(example["reason"][1]),
            "first token before, ms": example["ttft_ms"][0],
            "first token now, ms": example["ttft_ms"][1],
        }
        for flow in document["disagreement"]["flows"]
        for example in flow["examples"]
    ]


def _promises(each: Document) -> bool:
    return each["slo"]["ttft_ms"] is not None or each["slo"]["tpot_ms"] is not None


def _money(usd: float) -> formatting.Money:
    return formatting.money(round(usd * PUSD_PER_USD))


def _change(usd: float) -> str:
    """Return an amount with its sign."""
    text = _money(abs(usd))
    return f"-{text}" if usd < 0 else f"+{text}" if usd > 0 else text
