"""Of all headers those that state a cost are kept."""

from backends.cost_headers import cost_headers


def test_only_a_stated_cost_is_kept() -> None:
    headers = {"x-litellm-response-cost": "0.01", "set-cookie": "a", "x-litellm-key-spend": "7"}
    assert cost_headers(headers) == {"x-litellm-response-cost": "0.01"}
    assert cost_headers({"set-cookie": "a"}) == {}
