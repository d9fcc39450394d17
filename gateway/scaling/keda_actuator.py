"""Actuator for KEDA, which sets a workload's replicas to the ledger's ordered number.

Orders do nothing here: `KedaScaler` reports the intent that was stored before, so the two never
both act. Current engines are read from the workload's scale.
"""

from gateway.scaling.kubernetes_actuator import KubernetesActuator


class KedaActuator(KubernetesActuator):
    """Implementation of `FleetActuator`; needs only `get` on the workload's scale."""

    def start(self, token: str, place: int) -> None:
        """Do nothing: the ledger orders this engine from its intent on."""

    def stop(self, token: str, place: int) -> None:
        """Do nothing: the ledger orders this engine until its stop is stored."""
