"""Published figures on a page: what it shows is what the product computes."""

from dashboard.page.claims import figures, rows
from ledger.database import migrate
from ledger.economics.claims import claims, compute

EVERY = claims()


def test_every_claim_stands_beside_what_follows(page, tmp_path, text_of) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    migrate(url)
    test = page("claims", url)
    table = test.dataframe[0].value.to_dict("records")
    assert [each_table["follows from its inputs"] for each_table in table] == [
        figures(item, compute(item)) for item in EVERY
    ]
    wrong = sum(item.is_stated and not item.is_confirmed for item in EVERY)
    assert f"{wrong} of {sum(item.is_stated for item in EVERY)} stated figures" in text_of(test)
    test.segmented_control(key="claims-only").set_value("do not follow").run()
    assert not test.exception
    assert len(test.dataframe[0].value) == sum(not item.is_confirmed for item in EVERY)


def test_figures_have_the_places_of_the_table() -> None:
    told = {row["claim"]: row["follows from its inputs"] for row in rows(EVERY)}
    assert told["2x H100 against GPT-4, break-even"] == "352,800,000"
    assert told["2x A100 80GB, cost of a million tokens"] == "15.0659"
    ranged = next(item for item in EVERY if ".." in item.recomputed)
    assert figures(ranged, compute(ranged)) == "1,044.0 to 5,025.6"


def test_articles_filter_and_stand_in_the_table(page, tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    migrate(url)
    test = page("claims", url)
    article = EVERY[-1].article
    test.selectbox(key="claims-article").set_value(article).run()
    table = test.dataframe[0].value.to_dict("records")
    assert {row["article"] for row in table} == {article}
    assert len(table) == sum(claim.article == article for claim in EVERY)


def test_anyones_figure_is_computed_and_judged(page, tmp_path, text_of) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    migrate(url)
    test = page("claims", url)
    test.text_input(key="own-formula").set_value("1 - to / from").run()
    test.text_input(key="own-claimed").set_value("0.5").run()
    test.text_input(key="own-to").set_value("139").run()
    assert "Fill in every input" in text_of(test)
    test.text_input(key="own-from").set_value("214").run()
    assert "0.3505" in text_of(test)
    assert "Does not follow: 30 % below the claim." in text_of(test)
    test.text_input(key="own-from").set_value("0").run()
    assert "Nothing follows: the formula divides by zero." in text_of(test)
