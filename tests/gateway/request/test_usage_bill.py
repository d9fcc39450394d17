"""No bill is above its hold, whatever was used; what is beyond it is claimed."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from gateway.request.booked_usage import BookedUsage
from gateway.request.usage_bill import BillTerms, bill_usage
from gateway.request.usage_checks import UsageBounds, fitting_tokens
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceTerms, TierRates, bound_pusd, rates_from, tier_cost_pusd
from ledger.prices.rates import ANY_MEDIA, KINDS, ReachableMedia

BOUNDS = UsageBounds(choices=1, output=100, told=True, prompt=50)
count = st.integers(0, 500)
RATES = st.fixed_dictionaries(
    {"input": st.integers(0, 9), "output": st.integers(0, 9)},
    optional={kind: st.integers(0, 99) for kind in KINDS if kind not in ("input", "output")},
).map(rates_from)


@dataclass(frozen=True)
class HeldAttempt:
    bounds: UsageBounds
    media: ReachableMedia = ANY_MEDIA

    def fit(self, tokens):
        return fitting_tokens(tokens, self.bounds, 2)

    def is_beyond_units(self, _tokens):
        return False

    def plausible(self, told):
        return told


@st.composite
def used_tokens(draw) -> TokenCounts:
    reasoning, audio, image = draw(count), draw(count), draw(count)
    return TokenCounts(
        input=draw(count), cached=draw(count), cache_write=draw(count), cache_write_1h=draw(count),
        output=reasoning + audio + image + draw(count), reasoning=reasoning, audio_output=audio,
        image_output=image, audio_input=draw(count), searches=draw(st.integers(0, 9)),
    )  # fmt: skip


@given(
    rates=RATES, priority=RATES, tokens=used_tokens(), claim=st.none() | used_tokens(),
    tier=st.sampled_from((None, "standard", "priority", "scale")),
    asked=st.sampled_from(("", "priority")), stated=st.sampled_from((None, 1e-9, 2.0)),
    share=st.sampled_from((1, 2, 1000)),
    disputed=st.booleans(), unseen=st.booleans(),
)  # fmt: skip
def test_a_bill_is_within_its_hold_and_the_price_of_its_own_tokens(
    rates, priority, tokens, claim, tier, asked, stated, share, disputed, unseen
) -> None:
    """Also where less was held than its terms say: a hold is a hold."""
    terms = PriceTerms(
        rates, (TierRates("priority", 0, priority),), search_pusd=3, searches_limit=2
    )
    price = Price(1, "p/m", "t", 0, terms)
    held = bound_pusd(price, prompt_tokens=50, output_tokens=100) // share
    if unseen:
        tokens, claim = TokenCounts(input=50, output=100), None
    used = BookedUsage(tokens, "reported", disputed, claim, unseen=unseen)
    usage = {"cost": stated}
    bill = bill_usage(used, BillTerms(price, tier, asked, held, usage), HeldAttempt(BOUNDS))
    assert bill.cost_pusd == tier_cost_pusd(bill.tokens, price, bill.tier)[0]
    assert bill.is_listed is (bill.tier != "scale")
    if held:
        assert bill.cost_pusd <= held
    if bill.claimed_pusd is not None:
        assert bill.cost_pusd < bill.claimed_pusd
        assert 0 <= bill.plausible_pusd <= bill.claimed_pusd - bill.cost_pusd
    elif claim is None and not unseen:
        assert stated != 2.0
        assert bill.cost_pusd == tier_cost_pusd(tokens, price, bill.tier)[0], "nothing vanishes"
    if unseen and tier is None and held and share == 1:
        assert bill.cost_pusd == held
    assert (bill.cut is None) or not disputed


def test_what_was_believed_and_not_held_for_is_told() -> None:
    price = Price(1, "p/m", "t", 0, PriceTerms(rates_from({"input": 1, "output": 2})))
    tokens = TokenCounts(input=50, output=900, reasoning=850)
    used = BookedUsage(tokens, "reported", disputed=False)
    bill = bill_usage(used, BillTerms(price, None, "", 250), HeldAttempt(BOUNDS))
    assert (bill.cut, bill.cost_pusd, bill.claimed_pusd) == (tokens, 250, 1850)
    assert (bill.tokens.output, bill.tokens.reasoning, bill.basis) == (100, 100, "bound")


def test_a_stated_cost_above_the_computed_one_is_claimed() -> None:
    """What of it was held for is plausible; below, and within its rounding, it says nothing."""
    price = Price(1, "p/m", "t", 0, PriceTerms(rates_from({"input": 10**6, "output": 10**6})))
    used = BookedUsage(TokenCounts(input=10, output=20), "reported", disputed=False)
    for usage, claimed, plausible in (
        ({"cost": 1.0}, 10**12, 10**9 - 30 * 10**6),
        ({"cost_in_usd_ticks": 4 * 10**5}, 40 * 10**6, 10 * 10**6),
        ({"cost": 0.00003}, None, None),
        ({"cost": 0.000001}, None, None),
        ({"cost": "none"}, None, None),
        (None, None, None),
    ):
        bill = bill_usage(used, BillTerms(price, None, "", 10**9, usage), HeldAttempt(BOUNDS))
        assert (bill.cost_pusd, bill.disputed) == (30 * 10**6, False)
        assert (bill.claimed_pusd, bill.plausible_pusd) == (claimed, plausible)
    free = bill_usage(used, BillTerms(price, None, "", 0, {"cost": 1.0}), HeldAttempt(BOUNDS))
    assert (free.claimed_pusd, free.plausible_pusd) == (10**12, 0)


def test_more_searches_than_the_price_states_are_claimed_though_the_hold_has_room() -> None:
    rates = rates_from({"input": 1, "output": 1})
    price = Price(1, "p/m", "t", 0, PriceTerms(rates, search_pusd=3, searches_limit=2))
    for searches, cost, claimed in ((2, 16, None), (9, 16, 37)):
        used = BookedUsage(TokenCounts(input=5, output=5, searches=searches), "reported", False)
        bill = bill_usage(used, BillTerms(price, None, "", 1_000), HeldAttempt(BOUNDS))
        assert (bill.cost_pusd, bill.claimed_pusd) == (cost, claimed)


@dataclass(frozen=True)
class OtherHold(HeldAttempt):
    """A hold that knew other bounds: nothing fits it."""

    def fit(self, tokens):
        return (tokens,)


@given(output=st.integers(1, 5000), held=st.integers(1, 20_000))
def test_of_what_fits_no_other_way_as_much_is_booked_as_was_held_for(output, held) -> None:
    price = Price(1, "x/m", "test", 0, PriceTerms(rates_from({"input": 0, "output": 7})))
    used = BookedUsage(TokenCounts(output=output), "reported", False)
    bill = bill_usage(used, BillTerms(price, None, "", held), OtherHold(BOUNDS))
    assert held - 7 < bill.cost_pusd <= held or bill.cost_pusd == 7 * output
