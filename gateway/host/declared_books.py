"""Declaration of a configuration to a ledger: prices, contracts, budgets, GPUs, routes.

`serve` declares at each start. Commands do so in a copy of a ledger without a declaration.
"""

from sqlalchemy import Engine

from gateway.config.billing_accounts import sender_of_bills
from gateway.config.declarations import budgets, contracts, routes
from gateway.config.settings import Settings, version
from gateway.control.pricing.configured import store_prices
from gateway.errors import ConfigError
from gateway.host.gpu_catalog import hardware
from ledger.budgets.entered import budget_of, entered_budgets
from ledger.declared import declare
from ledger.fleet.market import record_market
from ledger.fleet.model_routes import record_routes
from ledger.prices.start_prices import StartPrices


def declare_configuration(engine: Engine, settings: Settings, text: str, at_us: int) -> StartPrices:
    """Update the ledger to the configuration, and return the result for its prices.

    `text` is the file's content, which the ledger keeps. A second call with an equal configuration
    changes nothing. Raises `ConfigError` if a file of `prices` cannot be read, or if an entered
    budget would count nothing.
    """
    _refuse_lost_budgets(engine, settings, at_us)
    prices = store_prices(settings, engine, at_us)
    declare(
        engine,
        contracts=contracts(settings),
        budgets=budgets(settings),
        config=(version(settings), text),
        at_us=at_us,
        timezone=settings.timezone,
    )
    record_market(engine, hardware(), at_us=at_us)
    record_routes(engine, routes(settings), at_us=at_us)
    return prices


def _refuse_lost_budgets(engine: Engine, settings: Settings, at_us: int) -> None:
    """Refuse entered budgets on providers that another one is billed for: they count nothing."""
    with engine.connect() as connection:
        entered = entered_budgets(connection, at_us)
    lines = []
    for name, entry in sorted(entered.items()):
        said, scope = budget_of(entry), name.rpartition("@")[0]
        kind, _, provider = scope.partition(":")
        other = sender_of_bills(settings, provider) if kind == "provider" else provider
        if said is not None and said.usd is not None and other != provider:
            lines.append(
                f"providers.{provider}.billed_with: the budget `{name}` was entered and would count"
                f" nothing: end it (`breakeven budgets end {scope} --period"
                f" {name.rpartition('@')[2]}`) and enter one on `provider:{other}`, or leave"
                " `billed_with` out"
            )
    if lines:
        raise ConfigError(lines)
