"""KEDA as a fleet's hands: it sets a workload's replicas to the number that the books order.

An order changes nothing here. The intent that was written before it is what `KedaScaler` tells,
so the two never both act. What there is, is read from the workload's scale.
"""

from gateway.scaling.kubernetes_actuator import KubernetesActuator


class KedaActuator(KubernetesActuator):
    """Implements `FleetActuator`; needs the right to `get` the workload's scale alone."""

    def start(self, token: str, place: int) -> None:
        """Do nothing: the books order this engine from its intent on."""

    def stop(self, token: str, place: int) -> None:
        """Do nothing: the books order this engine until its stop was told."""
