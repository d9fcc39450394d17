"""Tokens say whose life they are."""

from gateway.scaling.actuator import ListedInstance, make_token


def test_a_token_names_pool_place_and_life():
    assert make_token("chat", 2, "k3") == "chat.2.k3"
    assert ListedInstance("i-1").token is None
