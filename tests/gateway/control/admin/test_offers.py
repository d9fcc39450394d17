"""Prices of GPUs and reserved capacity: entered by name, listed, refused by field, dropped."""

import pytest

FOR = "/v1/organization"
OFFER = {"target": "alpha/m", "tokens_per_minute": 2_500, "usd_per_hour": "0.0100",
         "day": "2026-11-02", "source": "quote 8", "least_units": 15, "step": 5}  # fmt: skip


@pytest.fixture(scope="module")
def finance(stack):
    return stack.key("offers", scopes=("contracts:apply",))


GPU = "H100"


def price(gpu: str, **changes: object) -> dict:
    row = {"gpu": gpu, "usd_per_hour": "1.5000", "day": "2026-11-02", "source": "quote 7"}
    return {"prices": [{**row, **changes}]}


def test_an_offer_is_entered_listed_and_dropped(stack, finance) -> None:
    assert stack.post(FOR + "/reserved", OFFER, finance.token).status_code == 200
    (found,) = stack.get(FOR + "/reserved", finance.token).json()["data"]
    assert (found["name"], found["by"]) == ("alpha/m", f"key:{finance.key_id}")
    assert found["says"]["usd_per_hour"] == "0.01"
    gone = {"target": "alpha/m"}
    assert stack.post(FOR + "/reserved/drop", gone, finance.token).status_code == 200
    assert stack.get(FOR + "/reserved", finance.token).json()["data"] == []
    assert stack.post(FOR + "/reserved/drop", gone, finance.token).status_code == 400


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"target": "nobody/m"}, "target"),
        ({"usd_per_hour": "0"}, "usd_per_hour"),
        ({"usd_per_hour": "NaN"}, "usd_per_hour"),
        ({"day": "2999-01-01"}, "day"),
    ],
)
def test_an_offer_that_cannot_be_is_refused_by_field(stack, finance, changes, param) -> None:
    answer = stack.post(FOR + "/reserved", {**OFFER, **changes}, finance.token)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_prices_are_entered_all_or_none(stack, finance) -> None:
    done = stack.post(FOR + "/gpu-prices", price(GPU), finance.token)
    assert done.status_code == 200
    (found,) = stack.get(FOR + "/gpu-prices", finance.token).json()["data"]
    assert (found["name"], found["says"]["usd_per_hour"]) == (f"{GPU}/hour", "1.5")
    both = {"prices": price(GPU, kind="spot")["prices"] + price("no such GPU")["prices"]}
    answer = stack.post(FOR + "/gpu-prices", both, finance.token)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "prices[1].gpu")
    assert len(stack.get(FOR + "/gpu-prices", finance.token).json()["data"]) == 1


def test_who_may_not_is_refused(stack) -> None:
    other = stack.key("reader", scopes=("contracts",))
    assert stack.post(FOR + "/reserved", OFFER, other.token).status_code == 403
