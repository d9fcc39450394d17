"""Meaning and formula of every figure, by the name that links use."""

from typing import NamedTuple

from ledger.attempt_flags import FLAGS


class Term(NamedTuple):
    """A term. `formula` is written for people; empty if there is none.

    `rows` is the URL of the rows behind such figures; empty if they are next to the figures.
    """

    title: str
    means: str
    formula: str = ""
    rows: str = "spend#requests"


TERMS: dict[str, Term] = {
    "options": Term(
        "Verdict and options",
        "From now on, what each number of own GPUs would cost a month: the GPUs at the rate in "
        "force, ops if they are entered, and what APIs would charge for what does not fit. Each "
        "model is priced at the API that it may go to. What may not leave stays and needs GPUs. "
        "Fewer GPUs send away first what avoids the fewest dollars per second of engine time; the "
        "other end of the interval takes the same share of everything that may leave.",
        "N x rate x hours of the month + ops + API cost of what N do not hold",
    ),
    "verdict": Term(
        "Saved or overspent vs API",
        "What an API would have charged for the requests that own engines answered inside their "
        "SLO, less everything that own hardware cost in the same time: idle and unavailable hours "
        "and people's hours count in full.",
        "avoided API cost - (GPU bill + ops hours x their rate)",
    ),
    "comparator": Term(
        "Comparators",
        "Two answers to what it would have cost elsewhere: a substitute model that one would buy "
        "and the same weights at the cheapest host. Each request is priced at that API's own "
        "rules: uncached and cached input, output, tiers, fees.",
        "sum over requests of (input x price + cached x price + output x price)",
    ),
    "breakeven": Term(
        "Break-even volume",
        "The tokens a month that own engines must serve for their fixed cost to equal what the API "
        "would charge. It counts only if the hardware can serve that many inside the SLO.",
        "V* = F / (a - v): fixed cost over avoided price per token less variable cost per token",
    ),
    "spend": Term(
        "Spend",
        "Own hardware by contract (used, idle, unavailable), its ops, what APIs charged, and what "
        "posted bills differed by, which is of no team. Hours that are closed are final; the "
        "running hour is provisional until it closes.",
        "used + idle + unavailable + ops + APIs + adjustments to bills",
    ),
    "cache": Term(
        "Avoided by the response cache",
        "What the answers were charged for when an API made them, once for each equal request that "
        "got one of them again. No spending and no saving of own GPUs counts it: nobody was asked. "
        "Of own engines' answers it is time that was spared, and no dollars.",
        "sum over hits of what the answer was charged",
        rows="",
    ),
    "month": Term(
        "End of the month",
        "What the calendar month will have cost: what is over counts as it was, days to come by "
        "their weekday and the trend of up to eight weeks. In nine of ten months the end lies "
        "inside the interval; days that are unlike all before are in neither.",
        "spent + sum over days to come of (level + trend) x weekday",
    ),
    "used": Term(
        "Used, idle, unavailable",
        "Each paid hour of a GPU is split by measured engine time: what teams used, what nobody "
        "used, and what was loading, crashed or drained. Idle is a line of its own and is nobody's "
        "share.",
        "used + idle + unavailable = the hour's bill, to the unit",
    ),
    "rate": Term(
        "GPU rate",
        "What one GPU costs an hour by contract, with its source and from when it counts. It is an "
        "input: public figures for the same GPU differ 2 to 4 times. Unknown is not $0. A month is "
        "720 hours where nothing else is said.",
        "F = GPUs x rate x hours + ops hours x their rate",
        rows="rates",
    ),
    "slo": Term(
        "SLO attainment",
        "Of the answers whose time to first token and time per token are known, the share that met "
        "both promises. Refused requests are counted apart.",
        "met / (met + missed)",
    ),
    "unit": Term(
        "Cost per 1M tokens",
        "Always with its token basis: input + output, or output only; the two are never compared. "
        "The allocation basis divides the whole bill by tokens served: APIs are compared with it. "
        "The usage basis counts busy time alone.",
        "whole bill / tokens served x 1,000,000",
    ),
    "own_keys": Term(
        "Your keys",
        "Keys that you made for yourself, within what the access file lets you make. A key that a "
        "key makes spends of its maker's budgets and ends with it. What they used is by the "
        "attempts' own costs: own engines at provisional shares.",
        rows="keys#yours",
    ),
    "budget": Term(
        "Budget",
        "A limit on spend in a window of its own calendar. Held is what requests under way may "
        "cost at most, claimed what providers may bill beyond what was booked, until it is "
        "reconciled; a hard budget refuses before the three exceed the limit. A default "
        "(`user:*`) gives everybody without one of their own the same limit.",
        "left = limit - spent - held - claimed",
        rows="budgets#every",
    ),
    "forecast": Term(
        "Forecast to the window's end",
        "What the window ends at if the rest goes as it went so far, by the clock. Before a "
        "twentieth of the window has passed there is none.",
        "spent x window / time passed",
    ),
    "price": Term(
        "Price",
        "What a provider charges per 1M tokens of a kind, from the price book: versioned, dated, "
        "with a source. Another price waits until somebody approves it.",
        rows="",
    ),
    "capacity": Term(
        "Capacity inside the SLO",
        "The tokens that own engines can carry with every promise kept: from measured step times, "
        "or from the minutes in which requests spilled for lack of room. Driver utilisation is not "
        "used: it tells nothing of it.",
        "C = tokens a minute inside the SLO x minutes x duty",
    ),
    "staircase": Term(
        "Cheapest number of GPUs",
        "GPUs come whole. At each volume the total is the fixed cost of N of them and the API cost "
        "of what overflows; the cheapest N is the one with the least total.",
        "min over N of F(N) + API cost of the overflow",
    ),
    "anomaly": Term(
        "Far above usual",
        "A whole hour or day of a team, key, model or backend whose spend is more than five scaled "
        "median absolute deviations above the median of its hours or days in the period, and at "
        "least twice that median. A hundredth of what all together usually spend is too little to "
        "count.",
        "spend > max(median + 5 x 1.4826 x MAD, 2 x median)",
    ),
    "npv": Term(
        "NPV and payback",
        "All costs of each way over the horizon, later ones discounted; payback is when a way has "
        "cost less than staying for the first time and for good.",
        "sum over months of cost / (1 + monthly rate)^month",
        rows="plan#months",
    ),
    "bill": Term(
        "Invoiced, booked, difference",
        "What a provider or cloud says it is owed for its days, beside what the ledger has of the "
        "same days. Posting a bill brings the books to it by adjustments, one a day.",
        "difference = invoiced - booked",
        rows="audit#bill",
    ),
    "verify": Term(
        "Ledger verify",
        "A list of checks over all books: entries balance, costs follow from tokens and prices, "
        "sums are their rows, nothing that was sealed or entered was edited.",
        rows="",
    ),
    "routing": Term(
        "Shares and spill",
        "Where requests went. A request for an own model that an API answered has spilled, with "
        "the reason that the router gave for it.",
        "spill share = spilled / (own + spilled)",
    ),
    "engine": Term(
        "An engine's state",
        "As telemetry sampled it last: sequences running and waiting, KV cache in use, prefix hits "
        "and tokens a second from the engine's own counters.",
        rows="engines#samples",
    ),
    "stream": Term(
        "Time to first and per further token",
        "Of answers that an engine streamed to their end: from the gateway's request to the first "
        "token, and the mean time of each token after it. Half of the streams of a point are at "
        "most at its p50, 95 of 100 at its p95.",
        "time per further token = (answer's end - first token) / (output tokens - 1)",
        rows="engines#streams",
    ),
    "policies": Term(
        "Policies in force",
        "The rules by which requests are routed, the first match wins: promises (SLO), candidates, "
        "caps, what happens when nothing fits.",
        rows="",
    ),
    "content": Term(
        "Content that was found",
        "Kinds of content that detectors found in requests, and what the policy did: masked, kept "
        "inside the network, refused, or only recorded. A request with two kinds stands in both "
        "rows; texts are kept nowhere.",
        rows="",
    ),
    "whatif": Term(
        "What-if",
        "The recorded traffic played again under another set of policies, in virtual time, against "
        "engines as measured: its dollars and kept promises beside those of the set in force.",
        rows="",
    ),
    "refused": Term(
        "Refused",
        "A request that no target was asked for: a budget or limit stood against it, or nothing "
        "fitted its policy. It has no tokens and no cost.",
        rows="",
    ),
    "tag": Term(
        "Tag",
        "A word that a key puts on what it asks for (`app=web`). A request with two tags counts "
        "under each, so tags do not add up to the spend.",
        rows="",
    ),
    "flag": Term(
        "Flags of attempts",
        "A mark of an attempt that a person should look at; it stands in every sum all the same. "
        + " ".join(f"`{flag}`: {means}." for flag, means in FLAGS.items()),
    ),
    "project": Term(
        "Whose projects are",
        "A project as a provider's bill names it, and the team here whose it is: bills are "
        "compared with the books by that team.",
        rows="",
    ),
    "currency": Term(
        "Other currencies",
        "What one dollar is, by whom and of which day. The books are in dollars; older than a week "
        "a rate says so beside every amount that it makes.",
        "amount = dollars x rate of its day",
        rows="",
    ),
    "change": Term(
        "Who changed what",
        "Each entry of the log of contracts, prices, policies, budgets and keys: from what to "
        "what, when and by whom. Entries are chained, so that an edit is found.",
        rows="",
    ),
    "claim": Term(
        "Claims",
        "What an article states, and what follows from the inputs that it gives by the formulas of "
        "these books, on the token basis that it is about.",
        rows="",
    ),
    "attempt": Term(
        "Attempt",
        "One upstream try of a request: its tokens by kind, its times, its price and cost.",
        "cost = sum over kinds of tokens x price",
        rows="",
    ),
    "scaling": Term(
        "A fleet that sizes itself",
        "The number of engines by what the next one earns beside its rent. Every minute is priced "
        "at each number of engines: the rent, and what APIs charge for what does not fit, the "
        "cheapest per second of engine time first. What ran, what was advised, a constant number "
        "and no engine at all are compared on the same traffic. A start has earned what its engine "
        "avoided, less its rent; a stop the other way round.",
        "dollars(n) = rent of n engines + API price of what n do not hold",
        rows="fleet#changes",
    ),
    "overflow": Term(
        "Overflow",
        "Requests beyond what own engines can carry inside the SLO, minute by minute over the real "
        "load, bought from an API.",
    ),
}
