"""A metric by day is divided into what these days cost; a day without a figure is named."""

from datetime import date
from fractions import Fraction

import pytest

from ledger.csvtable import CsvTableError
from ledger.reports.business_metric import (
    MetricDay,
    MetricFileError,
    MetricUnitCost,
    TagGroup,
    parse_metric,
    unit_costs,
)

D1, D2, D3 = (date(2026, 11, day) for day in (1, 2, 3))


def test_a_file_by_day_and_team() -> None:
    text = b"day;value;team\n2026-11-01;1200,5;\n"
    with pytest.raises(MetricFileError, match="is not a number"):
        parse_metric(text)
    found = parse_metric(b"day,value,team\n2026-11-01,1200.5,\n2026-11-01,7,search\n")
    assert [(item.day, str(item.value), item.group) for item in found] == [
        (D1, "1200.5", None), (D1, "7", "search"),
    ]  # fmt: skip
    (tagged,) = parse_metric(b"day,value,team,tag\n2026-11-01,7,,product=support\n")
    assert tagged == MetricDay(D1, 7, TagGroup("product=support"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"day\n2026-11-01\n", "the column `value` is missing"),
        (b"day,value\n", "the file has no day"),
        (b"day,value\n1 Nov,2\n", "m.csv: line 2, column `day`: `1 Nov` is not a day"),
        (b"day,value\n2026-11-01,-2\n", "column `value` must be a number from 0 on"),
        (b"day,value\n2026-11-01,nan\n", "a number from 0 on"),
        (b"day,value\n2026-11-01,1e-99999\n", "at most 9 decimals"),
        (b"day,value\n2026-11-01,0e-99999\n", "at most 9 decimals"),
        (b"day,value\n2026-11-01,0.1" + b"0" * 40 + b"1\n", "at most 9 decimals"),
        (b"day,value\n2026-11-01,1e16\n", "at most 1,000,000,000,000,000,"),
        (b"day,value\n2026-11-01,2\n2026-11-01,3\n", "stands there twice"),
        (b"day,value,tag\n2026-11-01,2,product\n", "`product` is not a tag: write NAME=VALUE"),
        (b"day,value,team,tag\n2026-11-01,2,a,b=c\n", "of a team or of a tag, not of both"),
    ],
)
def test_faults_name_line_and_column(text, said) -> None:
    with pytest.raises((MetricFileError, CsvTableError)) as caught:
        parse_metric(text, "m.csv")
    assert said in str(caught.value)


def test_only_days_of_which_both_are_known_are_divided() -> None:
    metric = [MetricDay(D1, 4), MetricDay(D2, 6), MetricDay(D3, 100), MetricDay(D1, 2, "search")]
    spent = {(D1, None): 30, (D2, None): 20, (D1, "search"): 5}
    house, team = unit_costs(metric, spent)
    assert house == MetricUnitCost(None, Fraction(10), 50, 2, (D3,))
    assert house.pusd_per_unit == 5
    assert (team.group, team.pusd_per_unit) == ("search", Fraction(5, 2))


def test_no_unit_has_no_cost_and_not_zero() -> None:
    (found,) = unit_costs([MetricDay(D1, 0)], {(D1, None): 30})
    assert found.pusd_per_unit is None
