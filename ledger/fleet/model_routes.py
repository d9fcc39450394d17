"""The APIs that may serve a model besides own engines, as declared in the configuration.

The verdict prices traffic that would leave own engines at these APIs. A model without an entry may
not leave, unless its requests were observed at an API.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import msgspec
from sqlalchemy import Connection, Engine, delete, insert, select

from ledger.orm.fleet import ModelRouteRow


@dataclass(frozen=True, slots=True)
class RouteApi:
    """An API that may serve a model. `price` is its name in the price book.

    `quality_loss_ppm` is the result of an evaluation, `None` without one. `is_same_weights`: the
    API serves the model's own weights.
    """

    target: str
    price: str
    quality_loss_ppm: int | None = None
    is_same_weights: bool = False


@dataclass(frozen=True, slots=True)
class ModelRoute:
    """The APIs of a model, and whether its requests may leave.

    `residency` is `any`, `internal_only`, or `depends` if a rule keeps some requests inside.
    """

    model: str
    residency: str
    apis: tuple[RouteApi, ...]


def record_routes(engine: Engine, routes: Iterable[ModelRoute], *, at_us: int) -> int:
    """Store these routes. Return how many changed. Routes of other models are kept."""
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
