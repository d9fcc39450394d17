"""Document of a what-if as table rows, for a terminal and for a page."""

from collections.abc import Sequence
from typing import Any


def tables(document: dict[str, Any]) -> list[tuple[str, Sequence[str], list[list[str]]]]:
    """Return (title, columns, rows); a column title with `>` in front is numeric."""
    results = document["results"]
    found: list[tuple[str, Sequence[str], list[list[str]]]] = [
        (
            "Dollars over the time of the traffic",
            ("policies", ">fixed", ">API", ">total", ">all at APIs", ">saved", ">spill",
             ">spill by value"),
            [_dollars(result) for result in results],
        ),
        (
            "Promises kept, by class",
            ("policies", "class", ">requests", ">promised", ">kept", ">own", ">API", ">refused",
             ">TTFT ms p50", ">p95", ">TPOT ms p50", ">p95"),
            [[result["policy"], *_class(each)] for result in results for each in result["classes"]],
        ),
        (
            "Where requests went",
            ("policies", "target", ">requests", ">prompt tokens", ">from caches",
             ">answer tokens", ">API USD"),
            [
                [result["policy"], each["target"], f"{each['requests']:,}", f"{each['input']:,}",
                 _cached(each), f"{each['output']:,}",
                 _usd(each["api_usd"])]
                for result in results for each in result["targets"]
            ],
        ),
        (
            "Own pools: KV in use, sequences running and waiting (highest of a stretch)",
            ("policies", "pool", ">KV mean", ">KV most", ">running most", ">waiting mean",
             ">waiting most"),
            [[result["policy"], *row] for result in results for row in _load(result["load"])],
        ),
    ]  # fmt: skip
    if _with_sessions(results):
        found.append(
            (
                "Sessions: what it costs to stay where they were",
                ("policies", ">requests", ">held to a worse target", ">API USD more"),
                [[result["policy"], *_held(result["sessions"])] for result in results],
            )
        )
    differs = document.get("disagreement")
    if differs is not None:
        old, new = results[1]["policy"], results[0]["policy"]
        found.append(
            (
                (
                    f"{differs['moved']:,} requests ({share(differs['share'])}) go elsewhere:"
                    f" {old} -> {new}"
                ),
                ("from", "to", ">requests", ">API USD change", ">prompt p50", ">answer p50"),
                [
                    [flow["from"], flow["to"], f"{flow['requests']:,}",
                     f"{flow['api_usd_change']:+.4f}", f"{flow['prompt_tokens_p50']:.0f}",
                     f"{flow['output_tokens_p50']:.0f}"]
                    for flow in differs["flows"]
                ],
            )
        )  # fmt: skip
    return found


def notes(document: dict[str, Any]) -> list[str]:
    """Return notes on the sources and limits of the figures."""
    traffic = document["traffic"]
    came = f"{traffic['requests']:,} requests in {traffic['seconds']:,.0f} s"
    lines = [
        (
            f"{came} from {traffic['source']} ({traffic['form']}), {traffic['times']:g} times the"
            f" traffic; {traffic['left_out']:,} without an answer are left out."
        )
    ]
    if "begins" in traffic:
        lines.append(f"Policies' hours go by its clock, which begins at {traffic['begins']}.")
    if traffic.get("cut"):
        lines.append("There were more in that time: only the earliest are played.")
    if hits := traffic.get("cache_hits"):
        lines.append(
            f"{hits:,} requests of that time were answered from the response cache: they are left "
            "out, and no cache is played."
        )
    lines += [f"Engines of {name}: {source}." for name, source in document["engines"].items()]
    lines += [
        f"{name}: TTFT {item['ttft_ms_p50']:.0f} ms, "
        f"TPOT {item['tpot_ms_p50']:.1f} ms at the median"
        f" ({item['source']})."
        for name, item in document["apis"].items()
    ]
    for result in document["results"]:
        dollars = result["dollars"]
        if dollars["fixed_unknown_pools"]:
            pools = ", ".join(dollars["fixed_unknown_pools"])
            lines.append(f"Fixed dollars lack {pools}: enter pools.NAME.gpu.usd_per_hour.")
            break
    unpriced = max(result["dollars"]["api_unpriced_requests"] for result in document["results"])
    if unpriced:
        lines.append(f"API dollars lack up to {unpriced:,} requests to models without a price.")
    lines += broken_promises(document)
    lines += _apart(document["results"])
    lines.append(_caches(traffic))
    without = "" if _with_sessions(document["results"]) else ", sessions"
    lines.append(
        f"Not played: budgets but teams' hard ones, rate limits, failures{without}, hang-ups,"
        " requests that nobody served. Engines begin empty and with nothing learned of their pace."
    )
    return lines


def _apart(results: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line with the number of prompts read by another engine, per set that has some."""
    found = [
        (result["policy"], sum(row.get("apart", 0) for row in result["targets"]))
        for result in results
    ]
    return [
        f"{name}: a prefill engine read the prompts of {count:,} requests for another one."
        for name, count in found
        if count
    ]


def _caches(traffic: dict[str, Any]) -> str:
    """Return a note on what is known of prefixes, and so of prompt caches."""
    told = traffic.get("beginnings")
    if told == "recorded":
        return (
            "Prompt caches of APIs: what was charged as cached, at the API that did; elsewhere a"
            " prompt is new."
        )
    if told == "told":
        return (
            "Prompt caches of APIs by their published rules, those of engines block by block, as"
            " beginnings and sessions are told; later prompts of a session are taken to go on from"
            " its earlier ones."
        )
    return "Prompt caches: not played, as the traffic tells of no beginnings or sessions."


def share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _with_sessions(results: Sequence[dict[str, Any]]) -> bool:
    """Return whether sessions were replayed; older remote gateways do not."""
    return any(result.get("sessions", {}).get("requests") for result in results)


def _held(entry: dict[str, Any]) -> list[str]:
    return [f"{entry['requests']:,}", f"{entry['held']:,}", f"{entry['api_usd_more']:+.4f}"]


def _dollars(entry: dict[str, Any]) -> list[str]:
    dollars, spill = entry["dollars"], entry["spill"]
    lacks = "+?" if dollars["fixed_unknown_pools"] else ""
    return [
        entry["policy"], _usd(dollars["fixed_usd"]) + lacks, _usd(dollars["api_usd"]),
        _usd(dollars["total_usd"]) + lacks, *_bill(dollars, lacks),
        share(spill["share_by_count"]), share(spill["share_by_value"]),
    ]  # fmt: skip


def _bill(dollars: dict[str, Any], lacks: str) -> tuple[str, str]:
    """Return the cost of all at APIs, and the saving; "-" from older gateways."""
    if "all_api_usd" not in dollars:
        return "-", "-"
    unpriced = "+?" if dollars["all_api_unpriced_requests"] else ""
    saved = dollars["saved_usd"]
    words = f"-{_usd(-saved)}" if saved < 0 else _usd(saved)
    return _usd(dollars["all_api_usd"]) + unpriced, words + ("?" if lacks or unpriced else "")


def breaks_promises(document: dict[str, Any]) -> bool:
    """Return whether any class misses its promise on own engines, or is refused entirely."""
    return any(
        each.get("breaks_promise") or each["refused"] == each["requests"] > 0
        for result in document["results"]
        for each in result["classes"]
    )


def broken_promises(document: dict[str, Any]) -> list[str]:
    """Return a line for each class whose own answers miss their promise, with known causes."""
    lines = []
    for result in document["results"]:
        for each in result["classes"]:
            if each.get("breaks_promise"):
                promised = share(each["slo"]["attainment"])
                why = "; ".join(each["engines_break"]) or "nothing in the configuration says why"
                lines.append(
                    f"{result['policy']}, {each['class']}: own answers keep"
                    f" {share(each['attainment_own'])} of {promised} promised: {why}."
                )
            elif each.get("engines_break"):
                lines += [
                    f"{result['policy']}, {each['class']}: {words}."
                    for words in each["engines_break"]
                ]
    return lines


def _class(entry: dict[str, Any]) -> list[str]:
    slo = entry["slo"]
    words = [
        f"{slo[name]:g} ms" if slo[name] is not None else "-" for name in ("ttft_ms", "tpot_ms")
    ]
    return [
        entry["class"],
        f"{entry['requests']:,}",
        f"{' / '.join(words)}, {share(slo['attainment'])}",
        share(entry["attainment"]),
        share(entry["attainment_own"]) + (" SHORT" if entry.get("breaks_promise") else ""),
        share(entry["attainment_api"]),
        _refused(entry),
        *(
            _number(entry[name])
            for name in ("ttft_ms_p50", "ttft_ms_p95", "tpot_ms_p50", "tpot_ms_p95")
        ),
    ]


def _refused(entry: dict[str, Any]) -> str:
    every = entry["refused"] == entry["requests"] > 0
    return f"{entry['refused']:,}" + (" ALL" if every else "")


def _load(samples: Sequence[dict[str, Any]]) -> list[list[str]]:
    rows = []
    for pool in dict.fromkeys(sample["pool"] for sample in samples):
        here = [sample for sample in samples if sample["pool"] == pool]
        kv, waiting = [entry["kv_ratio"] for entry in here], [entry["waiting"] for entry in here]
        rows.append(
            [
                pool, share(sum(kv) / len(kv)), share(max(kv)),
                str(max(entry["running"] for entry in here)), f"{sum(waiting) / len(waiting):.1f}",
                str(max(waiting)),
            ]
        )  # fmt: skip
    return rows


def _cached(target: dict[str, Any]) -> str:
    """Return the share of prompt tokens that the cache had."""
    cached, prompts = target.get("cached"), target["input"]
    return share(cached / prompts if cached is not None and prompts else None)


def _usd(value: float) -> str:
    return f"${value:,.2f}" if value >= 100 else f"${value:,.4f}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
