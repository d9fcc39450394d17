"""The table of single requests: what decides stands where a phone shows it."""


def test_what_a_request_cost_stands_before_what_explains_it(page, month) -> None:
    columns = list(page("spend", month.url).dataframe[4].value.columns)
    assert columns[1:5] == ["team", "cost", "model", "went to"], "a phone shows the first ones"
    assert columns[-1] == "request", "the widest, and the least read"
    assert "claimed" not in columns, "nobody claims anything: the others have its room"
