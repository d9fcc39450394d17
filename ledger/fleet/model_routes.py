"""The possible targets of a model beside own engines, as the configuration declares.

The verdict prices what would leave own engines at the model's own APIs. Without an entry nothing
is known: a model that nobody declared may not leave, unless its requests were seen at an API.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import msgspec
from sqlalchemy import Connection, Engine, delete, insert, select

from ledger.orm.fleet import ModelRouteRow


@dataclass(frozen=True, slots=True)
class RouteApi:
    """An API that may serve a model. `price` is its name in the price book.

    `quality_loss_ppm` is what an evaluation measured, `None` while nobody did. `is_same_weights`:
    the API serves the model's own weights.
    """

    target: str
    price: str
    quality_loss_ppm: int | None = None
    is_same_weights: bool = False


@dataclass(frozen=True, slots=True)
class ModelRoute:
    """`residency`: `any`, `internal_only`, or `depends` where a rule keeps some requests inside."""

    model: str
    residency: str
    apis: tuple[RouteApi, ...]


def record_routes(engine: Engine, routes: Iterable[ModelRoute], *, at_us: int) -> int:
    """Bring the ledger to these routes; return how many changed. Other models keep theirs."""
    changed = 0
    with engine.begin() as connection:
        known = read_routes(connection)
        for route in routes:
            if known.get(route.model) == route:
                continue
            changed += 1
            connection.execute(delete(ModelRouteRow).where(ModelRouteRow.model == route.model))
            connection.execute(
                insert(ModelRouteRow),
                [
                    {
                        "model": route.model,
                        "residency": route.residency,
                        "apis": [asdict(api) for api in route.apis],
                        "recorded_us": at_us,
                    }
                ],
            )
    return changed


def read_routes(connection: Connection) -> dict[str, ModelRoute]:
    """Return the routes by model; empty before a gateway of this version has started."""
    query = select(ModelRouteRow.model, ModelRouteRow.residency, ModelRouteRow.apis)
    return {
        model: ModelRoute(model, residency, tuple(msgspec.convert(api, RouteApi) for api in apis))
        for model, residency, apis in connection.execute(query)
    }
