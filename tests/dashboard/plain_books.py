"""Figures of the pages by plain SQL over raw rows: nothing of the product is imported here.

Money is exact: integers of 10^-12 dollars, fractions where something is divided. Sums that a
database keeps (`rollup_*`) are never read.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import psycopg

USD, HOUR_US, DAY_US, MILLION = 10**12, 3_600 * 10**6, 86_400 * 10**6, 10**6
MONTH_HOURS, WEEK_HOURS = 720, 168
ANSWERED = "status IN ('finished', 'client_gone')"
GOOD = f"backend = 'own' AND {ANSWERED} AND (slo_met IS NULL OR slo_met)"


class PlainBooks:
    """A ledger's rows of the days up to an instant; days begin at a full hour."""

    def __init__(self, url: str, now_us: int, days: int = 30) -> None:
        self.now_us = now_us
        start_us = now_us - days * DAY_US
        self.start_us = start_us - start_us % HOUR_US
        self._file = url.startswith("sqlite")
        self._connection: Any = (
            sqlite3.connect(f"file:{url.removeprefix('sqlite:///')}?mode=ro", uri=True)
            if self._file
            else psycopg.connect(url.replace("+psycopg", ""))
        )

    def close(self) -> None:
        self._connection.close()

    def rows(self, sql: str, *given: Any) -> list[tuple[Any, ...]]:
        """Rows of a statement with `?` in the place of what is given."""
        cursor = self._connection.cursor()
        cursor.execute(sql if self._file else sql.replace("?", "%s"), given)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found

    def of_attempts(self, what: str, where: str = "1 = 1") -> int:
        """An aggregate over the attempts of the span; nothing is 0."""
        ((found,),) = self.rows(
            f"SELECT {what} FROM attempts WHERE opened_us >= ? AND opened_us < ? AND {where}",
            self.start_us,
            self.now_us,
        )
        return int(found or 0)

    def count(self, where: str = "1 = 1") -> int:
        return self.of_attempts("count(*)", where)

    def tokens(self, where: str = "1 = 1") -> int:
        """Input, cached and written ones among them, and output."""
        return self.input(where) + self.output(where)

    def output(self, where: str = "1 = 1") -> int:
        return self.of_attempts("sum(output_tokens)", where)

    def input(self, where: str = "1 = 1") -> int:
        parts = "input_tokens + cached_tokens + cache_write_tokens + cache_write_1h_tokens"
        return self.of_attempts(f"sum({parts})", where)

    def paid(self, where: str = "1 = 1") -> int:
        return self.of_attempts("sum(cost_pusd)", f"({where})")

    @property
    def api_pusd(self) -> int:
        return self.paid("backend = 'api'")

    def compared(self, which: str, where: str) -> int:
        """What a comparator would have charged for these answers; `which`: of `compared`."""
        ((pusd,),) = self.rows(
            f"SELECT sum(cost_pusd) FROM compared WHERE {which} AND attempt_id IN (SELECT "
            f"attempt_id FROM attempts WHERE opened_us >= ? AND opened_us < ? AND {where})",
            self.start_us,
            self.now_us,
        )
        return int(pusd or 0)

    def avoided(self, position: int, more: str = "1 = 1") -> int:
        return self.compared(f"position = {position}", f"{GOOD} AND {more}")

    def comparator(self, position: int) -> str:
        ((name,),) = self.rows(
            "SELECT DISTINCT comparator FROM compared WHERE position = ?", position
        )
        return str(name)

    # ------------------------------------------------------------ own GPUs

    @property
    def contract(self) -> dict[str, Any]:
        """The latest words on the only pool."""
        columns = ("replicas", "gpus_per_replica", "pusd_per_hour", "ops_seconds_per_week",
                   "ops_pusd_per_hour")  # fmt: skip
        found = self.rows(f"SELECT {', '.join(columns)} FROM gpu_contracts ORDER BY id DESC")[0]
        return dict(zip(columns, found, strict=True))

    @property
    def gpus(self) -> int:
        return int(self.contract["replicas"] * self.contract["gpus_per_replica"])

    @property
    def open_from_us(self) -> int:
        ((last_us,),) = self.rows("SELECT max(hour_us) FROM gpu_hours")
        return int(last_us) + HOUR_US

    @property
    def open_us(self) -> int:
        return max(0, self.now_us - self.open_from_us)

    @property
    def hours(self) -> Fraction:
        ((span_us,),) = self.rows("SELECT sum(span_us) FROM gpu_hours")
        return Fraction(int(span_us) + self.open_us, HOUR_US)

    def hours_of(self, column: str) -> int:
        ((found,),) = self.rows(f"SELECT sum({column}) FROM gpu_hours")
        return int(found)

    @property
    def open_bill_pusd(self) -> int:
        return round(Fraction(self.contract["pusd_per_hour"] * self.gpus * self.open_us, HOUR_US))

    @property
    def open_used_pusd(self) -> int:
        return self.paid(f"backend = 'own' AND {self._ended_since_closed}")

    @property
    def _ended_since_closed(self) -> str:
        """Of the open hour; the demo's last requests may end after the instant it was made at."""
        return f"settled_us >= {self.open_from_us} AND settled_us < {self.now_us}"

    @property
    def used_pusd(self) -> int:
        return self.hours_of("used_pusd") + self.open_used_pusd

    @property
    def idle_pusd(self) -> int:
        return self.hours_of("idle_pusd") + self.open_bill_pusd - self.open_used_pusd

    @property
    def unavailable_pusd(self) -> int:
        return self.hours_of("unavailable_pusd")

    @property
    def gpu_pusd(self) -> int:
        return self.hours_of("bill_pusd") + self.open_bill_pusd

    @property
    def ops_pusd_per_week(self) -> Fraction:
        contract = self.contract
        return Fraction(contract["ops_seconds_per_week"] * contract["ops_pusd_per_hour"], 3_600)

    @property
    def ops_pusd(self) -> Fraction:
        return self.ops_pusd_per_week * self.hours / WEEK_HOURS

    @property
    def fixed_pusd(self) -> Fraction:
        return self.gpu_pusd + self.ops_pusd

    @property
    def spent_pusd(self) -> Fraction:
        return self.fixed_pusd + self.api_pusd

    def own_of_team(self, team: str) -> Fraction:
        """Closed hours, and since then the engine time at the rate: charges round each attempt."""
        ((closed,),) = self.rows(
            "SELECT sum(used_pusd) FROM gpu_hour_teams WHERE team_id = ?", team
        )
        ((busy_us,),) = self.rows(
            "SELECT sum(engine_us) FROM attempts WHERE backend = 'own' AND team_id = ?"
            f" AND {self._ended_since_closed}", team,
        )  # fmt: skip
        rate = int(self.contract["pusd_per_hour"]) * int(self.contract["gpus_per_replica"])
        return int(closed or 0) + Fraction(int(busy_us or 0) * rate, HOUR_US)

    # ------------------------------------------------------------ the verdict's amounts

    @property
    def pace(self) -> Fraction:
        return MONTH_HOURS / self.hours

    def month_gpu_pusd(self, gpus: int) -> int:
        return int(self.contract["pusd_per_hour"]) * gpus * MONTH_HOURS

    @property
    def month_ops_pusd(self) -> Fraction:
        return self.ops_pusd_per_week * MONTH_HOURS / WEEK_HOURS

    @property
    def routes(self) -> Mapping[str, tuple[str, list[dict[str, Any]]]]:
        """By model its residency and its APIs."""
        found = self.rows("SELECT model, residency, apis FROM model_routes")
        return {
            model: (residency, json.loads(apis) if isinstance(apis, str) else apis)
            for model, residency, apis in found
        }

    @property
    def bought_pusd(self) -> int:
        return self.paid("backend = 'api' AND spill_reason IS NOT NULL")

    @property
    def all_bought_pusd(self) -> Fraction:
        """A month without GPUs: all that may leave at its own API's prices, and what is bought."""
        total = self.bought_pusd
        for model, (residency, apis) in self.routes.items():
            if residency == "any":
                (api,) = apis
                own = f"backend = 'own' AND {ANSWERED} AND model = '{model}'"
                total += self.compared(f"comparator = '{api['price']}'", own)
        return total * self.pace

    # ------------------------------------------------------------ budgets, prices, days

    def budget(self, name: str) -> dict[str, int]:
        """Limit, spent, held in its present window (UTC), from the journal's own rows."""
        scope, _, period = name.partition("@")
        now = datetime.fromtimestamp(self.now_us / 1e6, UTC)
        start = now.replace(hour=0, minute=0, second=0, microsecond=0)
        start = start.replace(day=1) if period == "month" else start
        where = f"opened_us >= {int(start.timestamp()) * 10**6}"
        if scope != "global":
            kind, _, value = scope.partition(":")
            where += f" AND {kind}_id = '{value}'"
        ((limit,),) = self.rows("SELECT limit_pusd FROM budgets WHERE id = ?", name)
        ((spent,),) = self.rows(f"SELECT sum(cost_pusd) FROM attempts WHERE {where}")
        query = "SELECT sum(amount_pusd) FROM holds WHERE budget_id = ? AND state = 'held'"
        ((held,),) = self.rows(query, name)
        return {"limit": int(limit), "spent": int(spent or 0), "held": int(held or 0)}

    def price(self, name: str) -> dict[str, Decimal]:
        """Dollars for a million tokens, of the newest version."""
        query = "SELECT price FROM price_versions WHERE name = ? ORDER BY version DESC"
        stored = self.rows(query, name)[0][0]
        rates = (json.loads(stored) if isinstance(stored, str) else stored)["terms"]["rates"]
        return {kind: Decimal(rates[kind]) / 10**6 for kind in ("input", "cached", "output")}

    def names(self, column: str) -> Sequence[str]:
        return [row[0] for row in self.rows(f"SELECT DISTINCT {column} FROM attempts")]
