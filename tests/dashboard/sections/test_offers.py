"""Prices of GPUs and reserved capacity are entered on Rates and move Plan and the verdict."""

from dashboard import viewer_identity
from dashboard.data import reads, verdicts
from dashboard.data.reads import DashboardView
from dashboard.sections import offers
from dashboard.viewer import Viewer
from ledger.fleet.market import GpuOffer
from ledger.identity.people import DashboardRole
from ledger.identity.vouchers import GATEWAY, KEY_FILE, KEY_FILE_VARIABLE
from ledger.manual_entries import RESERVED, ManualEntry

FAY = "fay@example.com"
BARE = GpuOffer("L40S", "NVIDIA", 48, 1, None, None, None, None, (), "sheet")


def test_a_gpu_without_a_price_says_enter_and_never_zero() -> None:
    (row,) = offers.gpu_rows([BARE], [], 1)
    assert (row["USD an hour"], row["spot"], row["of"]) == ("enter", "enter", "")


def test_an_offer_is_a_row_with_its_terms() -> None:
    says = {"usd_per_hour": "0.01", "tokens_per_minute": 2_500, "least_units": 1, "step": 1,
            "term": "month", "source": "quote 8", "day": "2026-11-02"}  # fmt: skip
    (row,) = offers.reserved_rows([ManualEntry(1, RESERVED + "a/b", says, 1, 1, FAY)])
    assert (row["target"], row["USD an hour of a unit"], row["entered by"]) == ("a/b", 0.01, FAY)


def labelled(widgets, label: str):
    return next(widget for widget in widgets if widget.label == label)


def test_both_are_entered_by_clicking(books, serving, page, text_of, monkeypatch) -> None:
    served = serving(books(days=1, peak=1.0).url)
    monkeypatch.setenv(GATEWAY, served.address)
    monkeypatch.setenv(KEY_FILE_VARIABLE, str(served.state / KEY_FILE))
    monkeypatch.setattr(viewer_identity, "AT_THIS_MACHINE", Viewer(FAY, DashboardRole.FINANCE))
    test = page("rates", served.url)
    labelled(test.button, "Enter the price").click().run()
    assert "needs a price above 0 and a source" in test.error[0].value
    gpu = test.selectbox(key="gpu-price-gpu").value
    labelled(test.number_input, "USD an hour of one").set_value(0.123)
    labelled(test.text_input, "Who states the price").set_value("quote 7")
    labelled(test.button, "Enter the price").click().run()
    assert not test.exception
    assert f"The price of {gpu} is entered, by {FAY}." in [done.value for done in test.success]
    view = DashboardView(served.url, "30 d", None, reads.rounded_now_us(0),
                         who=lambda: viewer_identity.AT_THIS_MACHINE)  # fmt: skip
    listed = next(offer for offer in reads.market(view) if offer.name == gpu)
    assert listed.low_pusd_per_hour == 123_000_000_000
    assert listed.price_source.startswith("quote 7")
    labelled(test.text_input, "Target").set_value("openai/gpt-4o-mini")
    labelled(test.number_input, "USD an hour of a unit").set_value(0.01)
    labelled(test.number_input, "Tokens a minute of a unit").set_value(2_500)
    labelled(test.text_input, "Who offers it").set_value("quote 8")
    labelled(test.button, "Enter the offer").click().run()
    assert not test.exception
    said = [message.value for message in (*test.success, *test.error)]
    assert any("is offered, by" in words for words in said), said
    (offer,) = verdicts.fleet(view).sheet.reserved
    assert offer.target == "openai/gpt-4o-mini"
