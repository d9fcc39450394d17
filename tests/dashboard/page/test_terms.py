"""Every term is on the page, under the anchor that links lead to."""

from dashboard.terms import TERMS


def test_every_term_has_its_anchor_sentence_and_formula(page, month) -> None:
    test = page("terms", month.url)
    assert {subheader.proto.anchor for subheader in test.subheader} == set(TERMS)
    shown = {text.value for text in test.markdown}
    assert {term.means for term in TERMS.values()} <= shown
    formulas = {element.value for element in test.code}
    assert formulas == {term.formula for term in TERMS.values() if term.formula}
