"""Settings of KV cache transfer between vLLM engines: NixlConnector's flag and variables.

Every engine in a role starts as `kv_both`. Each request says which role the engine has for it
(`kv_transfer_params`), and each engine can serve alone if the other one is gone. The connector
chooses the cache layout; engines with different layouts refuse each other in the handshake. KV that
cannot be fetched fails the request at once (`fail`), so that the sender can retry. KV that nobody
fetches is freed after `lease_s`.

UCX does not read another process's GPU memory directly if it sees no NVLink (one GPU, PCIe, most
virtual machines): it emulates reads over TCP, at 0.5 GB/s on one H200 (`engine probe --only
kv_transfer`). Engines are told to read directly, unless the host's environment sets otherwise.
"""

import json
from collections.abc import Mapping, Sequence

from backends.address_policy import LOCALHOST, parse_address

FLAG = "--kv-transfer-config"
CONNECTOR = "NixlConnector"
HOST_VARIABLE, PORT_VARIABLE = "VLLM_NIXL_SIDE_CHANNEL_HOST", "VLLM_NIXL_SIDE_CHANNEL_PORT"
_TOO_LITTLE = "Free memory on device"  # vLLM's error text
# Defaults of a pool's `roles` for KV transfers that were not measured. Two H200 with vLLM 0.32
# moved 8.3 GB/s in 16,384 pieces and 280 in one (2026-11-29). The setup time is assumed.
GB_PER_S, SETUP_S = 10.0, 0.02
DIRECT_READS = ("UCX_CUDA_IPC_ENABLE_GET_ZCOPY", "on")


def transfer_flags(lease_s: int) -> tuple[str, ...]:
    """Return the flag and value that start an engine in a role. `lease_s` is in seconds."""
    said = {
        "kv_connector": CONNECTOR,
        "kv_role": "kv_both",
        "kv_load_failure_policy": "fail",
        "kv_connector_extra_config": {"kv_lease_duration": lease_s},
    }
    return FLAG, json.dumps(said)


def transfer_environ(address: str, told: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the additional environment variables of an engine that transfers KV at HOST:PORT.

    `told` is the environment that the engine inherits. Raises `ValueError` when the address is not
    private.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if not is_private_host(host):
        raise ValueError(f"{host} is not a private address: others could read the KV cache")
    direct = () if DIRECT_READS[0] in told else (DIRECT_READS,)
    return (HOST_VARIABLE, host), (PORT_VARIABLE, str(int(port))), *direct


def explain_memory(reason: str, readers: Sequence[str]) -> str:
    """Return why an engine that sends KV cannot start, with a remedy if readers cause it.

    `readers` are the engines that fetch KV from it. Memory that they have mapped is not freed when
    the engine is killed, so that its successor finds too little. Seen with NIXL 1.5.1 on an H200,
    with and without UCX's mapping cache.
    """
    if not readers or _TOO_LITTLE not in reason:
        return reason
    words = "engines that read KV from it may still hold the memory of the one before"
    return f"{reason} ({words}: `breakeven engine restart {' '.join(readers)}`)"


def is_private_host(host: str) -> bool:
    """Return whether a host is localhost or a private IP address. KV is sent unencrypted."""
    if host == LOCALHOST:
        return True
    address = parse_address(host)
    if address is None or address.is_unspecified or address.is_link_local:
        return False
    return address.is_private


def names_transfer(flags: Sequence[str]) -> bool:
    """Return whether the user's own flags configure the KV transfer."""
    return any(word.partition("=")[0].replace("_", "-") == FLAG for word in flags)
