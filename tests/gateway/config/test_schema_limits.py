"""Sections that limit use: a budget has a limit of a period, a rate limit at least one rate."""

import pytest
from pydantic import ValidationError

from gateway.config.schema_limits import BudgetSection, RateLimitSection


def test_a_budget_is_by_the_month_unless_it_says_otherwise() -> None:
    assert BudgetSection(scope="team:search", usd="1.5").period == "month"
    with pytest.raises(ValidationError, match="period"):
        BudgetSection(scope="team:search", usd="1.5", period="year")


def test_a_rate_limit_is_of_requests_or_tokens() -> None:
    assert RateLimitSection(scope="key:*", requests_per_minute=600).requests_per_minute == 600
    with pytest.raises(ValidationError, match="requests_per_minute"):
        RateLimitSection(scope="key:*", requests_per_minute=0)
