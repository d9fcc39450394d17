"""How far a month's forecast is off, and how often the month ends inside its interval.

The recorded rates (ServeGen, Alibaba production) are two weeks long for two models, so months are
drawn from their real days: by weekday, with a growth of -20 to +30 % a month and a noise of up to
8 % a day, after 0, 14 or 28 days of history. `days`: each day is one of the two of its weekday.
`weeks`: whole weeks are drawn, which differ by up to a fifth: steps that no forecast can see.
The constants were set on m-large alone; m-small is held out. `as recorded` has nothing drawn.

    make bench-forecast
    make bench-forecast ARGS="--months 1000"
"""

import argparse
import csv
import gzip
import json
import random
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from traces import FOLDER  # noqa: E402  (after the checkout's packages)

from ledger.economics.month_forecast import forecast_month  # noqa: E402  (as above)

SET_ON, HELD_OUT = "m-large", "m-small"
HISTORY, AT = (0, 14, 28), (10, 15, 20, 25)
WINDOWS = 144  # of ten minutes a day
PUSD = 10**9  # a request: only ratios count
Month = tuple[list[int], int, int, int]  # days, of which history, first weekday, length


def recorded_days(name: str, folder: Path = FOLDER) -> list[float]:
    """Requests of each of the fourteen days."""
    with gzip.open(folder / f"servegen_{name}_rate10min.csv.gz", "rt", encoding="utf-8") as file:
        rates = [float(row["requests_per_s"]) * 600 for row in csv.DictReader(file)]
    return [sum(rates[day : day + WINDOWS]) for day in range(0, len(rates), WINDOWS)]


def months(days: list[float], count: int, seed: int, *, whole_weeks: bool) -> Iterator[Month]:
    """Months with their history, as many for each length of it."""
    draw = random.Random(seed)
    for number in range(count):
        history, length = HISTORY[number % len(HISTORY)], draw.choice((28, 30, 31))
        growth, noise, first = draw.uniform(-0.2, 0.3), draw.uniform(0, 0.08), draw.randrange(7)
        costs, week = [], draw.randrange(2)
        for day in range(history + length):
            weekday = (first + day) % 7
            if not whole_weeks or weekday == 0:
                week = draw.randrange(2)
            level = days[weekday + 7 * week] * (1 + growth * day / 30)
            costs.append(round(level * draw.lognormvariate(0, noise) * PUSD))
        yield costs, history, first, length


def judge(drawn: list[Month], at: int) -> dict[str, float]:
    """Errors and coverage of forecasts made after `at` days of the month."""
    errors, inside, widths = [], 0, []
    for costs, history, first, length in drawn:
        found = forecast_month(
            costs[: history + at],
            last_weekday=(first + history + at - 1) % 7,
            days_over=at,
            days_left=length - at,
        )
        assert found is not None
        total = sum(costs[history:])
        errors.append(abs(found.expected_pusd / total - 1))
        inside += found.low_pusd <= total <= found.high_pusd
        widths.append((found.high_pusd - found.low_pusd) / total)
    return {
        "mean_error": statistics.mean(errors),
        "within_10": sum(error <= 0.1 for error in errors) / len(errors),
        "inside": inside / len(errors),
        "width": statistics.mean(widths),
    }


def as_recorded(days: list[float]) -> list[float]:
    """Errors of the two weeks as they were, after 10 to 13 days of them."""
    costs = [round(day * PUSD) for day in days]
    errors = []
    for at in range(10, 14):
        found = forecast_month(costs[:at], last_weekday=(at - 1) % 7, days_over=at,
                               days_left=14 - at)  # fmt: skip
        assert found is not None
        errors.append(found.expected_pusd / sum(costs) - 1)
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--months", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--traces", type=Path, default=FOLDER)
    given = parser.parse_args()
    told: dict[str, dict[str, float]] = {}
    print(f"{'traffic, drawn by, after day':34}  mean off  within 10 %  inside  interval")
    for name in (SET_ON, HELD_OUT):
        days = recorded_days(name, given.traces)
        for whole_weeks in (False, True):
            drawn = list(months(days, given.months, given.seed, whole_weeks=whole_weeks))
            for at in AT:
                key = f"{name}, {'weeks' if whole_weeks else 'days'}, {at}"
                told[key] = found = judge(drawn, at)
                print(f"{key:34}  {found['mean_error']:8.1%}  {found['within_10']:11.1%}"
                      f"  {found['inside']:6.1%}  {found['width']:8.1%}")  # fmt: skip
        off = ", ".join(f"{error:+.1%}" for error in as_recorded(days))
        print(f"{name} as recorded, after 10 to 13 of 14 days: {off}")
    held = [figures for key, figures in told.items() if key.startswith(f"{HELD_OUT}, days")]
    print(f"held out, from day 10 (days): off {_mean(held, 'mean_error'):.1%}, within 10 % "
          f"{_mean(held, 'within_10'):.1%}, inside the interval {_mean(held, 'inside'):.1%}"
          )  # fmt: skip
    out = ROOT / "build" / "bench-forecast.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(told, indent=1), encoding="utf-8")


def _mean(found: list[dict[str, float]], name: str) -> float:
    return statistics.mean(item[name] for item in found)


if __name__ == "__main__":
    main()
