"""Declares a configuration to a ledger: prices, contracts, budgets, GPU market, model routes.

`serve` does so at each start. Commands do so in a copy of a ledger that no start has declared to.
"""

from sqlalchemy import Engine

from gateway.config.declarations import budgets, contracts, routes
from gateway.config.settings import Settings, version
from gateway.control.pricing.configured import store_prices
from gateway.host.gpu_catalog import hardware
from ledger.declared import declare
from ledger.fleet.market import record_market
from ledger.fleet.model_routes import record_routes
from ledger.prices.start_prices import StartPrices


def declare_configuration(engine: Engine, settings: Settings, text: str, at_us: int) -> StartPrices:
    """Bring the ledger to what the configuration says; return what became of its prices.

    `text` is the file's content, which the ledger keeps. A second call with an equal configuration
    changes nothing. Raises: `ConfigError` when a file of `prices` cannot be read.
    """
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
