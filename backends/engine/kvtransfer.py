"""Settings by which vLLM hands KV to another engine: NixlConnector's flag and environment.

Every engine in a role is started as `kv_both`: which of the two it is for a request, the request
says (`kv_transfer_params`), and each can serve alone where the other side is gone. The layout of
the cache is the connector's own choice; engines of unlike layouts refuse each other (handshake).
What cannot be fetched fails the request at once (`fail`), so that whoever sent it knows, and sends
it again. KV that nobody fetched is freed after `lease_s`.

UCX does not read another process's GPU memory directly where it sees no NVLink (one GPU, PCIe, most
virtual machines): it emulates reads over TCP, 0.5 GB/s on one H200 (`engine probe --only
kv_transfer`). Engines are told to read directly all the same, unless the host's environment says
otherwise.
"""

import json
from collections.abc import Mapping, Sequence

from backends.address_policy import LOCALHOST, parse_address

FLAG = "--kv-transfer-config"
CONNECTOR = "NixlConnector"
HOST_VARIABLE, PORT_VARIABLE = "VLLM_NIXL_SIDE_CHANNEL_HOST", "VLLM_NIXL_SIDE_CHANNEL_PORT"
_TOO_LITTLE = "Free memory on device"  # vLLM's words
# One transfer of KV until it is measured: defaults of a pool's `roles`. Two H200 with vLLM 0.32
# moved 8.3 GB/s in 16,384 pieces and 280 in one (2026-11-29); the time beside it is assumed.
GB_PER_S, SETUP_S = 10.0, 0.02
DIRECT_READS = ("UCX_CUDA_IPC_ENABLE_GET_ZCOPY", "on")


def transfer_flags(lease_s: int) -> tuple[str, ...]:
    """Return the flag of an engine in a role."""
    said = {
        "kv_connector": CONNECTOR,
        "kv_role": "kv_both",
        "kv_load_failure_policy": "fail",
        "kv_connector_extra_config": {"kv_lease_duration": lease_s},
    }
    return FLAG, json.dumps(said)


def transfer_environ(address: str, told: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return what an engine at HOST:PORT gets beside its parent's environment, `told`.

    Raises `ValueError` for an address that is not private.
    """
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if not is_private_host(host):
        raise ValueError(f"{host} is not a private address: whoever reaches it can read KV")
    direct = () if DIRECT_READS[0] in told else (DIRECT_READS,)
    return (HOST_VARIABLE, host), (PORT_VARIABLE, str(int(port))), *direct


def explain_memory(reason: str, readers: Sequence[str]) -> str:
    """Return why an engine that hands KV on cannot start, with the cure where readers hold it up.

    `readers`: engines that fetch KV from it. Memory that they have mapped is not freed when the
    engine is killed, and its successor finds too little. Seen with NIXL 1.5.1 on an H200, with and
    without UCX's cache of mappings.
    """
    if not readers or _TOO_LITTLE not in reason:
        return reason
    words = "engines that read KV from it may still hold the memory of the one before"
    return f"{reason} ({words}: `breakeven engine restart {' '.join(readers)}`)"


def is_private_host(host: str) -> bool:
    """Whether a host is this machine or a private address in digits: KV moves unencrypted."""
    if host == LOCALHOST:
        return True
    address = parse_address(host)
    if address is None or address.is_unspecified or address.is_link_local:
        return False
    return address.is_private


def names_transfer(flags: Sequence[str]) -> bool:
    """Return whether a person's own flags say how KV is handed on."""
    return any(word.partition("=")[0].replace("_", "-") == FLAG for word in flags)
