"""Number of engines that the ledger orders for each pool scaled by KEDA."""

from collections.abc import Mapping

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from gateway.scaling.keda_scaler import OrdersUnknown
from ledger.database import reading
from ledger.fleet.ordered_engines import ordered_engines


class LedgerOrders:
    """Ordered engines by pool; `acts` says for each such pool whether its plans act."""

    def __init__(self, ledger: Engine, acts: Mapping[str, bool]) -> None:
        self._ledger, self._acts = ledger, acts

    def __call__(self, pool: str) -> int:
        """Return the number. Raises `OrdersUnknown` if KEDA should change nothing."""
        if pool not in self._acts:
            raise OrdersUnknown(f"`{pool}` is not a pool with `scale.actuator.kind: keda`")
        if not self._acts[pool]:
            raise OrdersUnknown(f"pool `{pool}` only advises (`scale.mode`)")
        try:
            with reading(self._ledger) as connection:
                count = ordered_engines(connection, pool)
        except DBAPIError as error:
            raise OrdersUnknown("the ledger cannot be reached") from error
        if count is None:
            raise OrdersUnknown(f"pool `{pool}` has no plan yet")
        return count
