"""Two sets of policies meet the same traffic."""

from gateway.whatif.whatif_run import run_whatif


def test_a_set_does_not_disagree_with_itself(house, under, poisson) -> None:
    """The negative control: nothing but the policies differs between two sets."""
    sets = [("a", under("tight")), ("b", under("tight"))]
    document = run_whatif(house, sets, poisson(25.0, 300), 1, lambda *_: None)
    assert document["disagreement"]["moved"] == 0
    first, second = document["results"]
    assert {**first, "policy": ""} == {**second, "policy": ""}


def test_the_document_says_whose_word_it_takes(busy) -> None:
    assert busy["engines"] == {"chat": "profile h100-llama-3.1-8b-fp8"}
    assert busy["apis"]["openai/mini"]["source"].startswith("assumed")
    assert busy["traffic"]["requests"] == 1200
