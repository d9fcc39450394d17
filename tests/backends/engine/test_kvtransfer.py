import json

import pytest

from backends.engine.kvtransfer import (
    FLAG,
    explain_memory,
    is_private_host,
    names_transfer,
    transfer_environ,
    transfer_flags,
)


def test_the_flag_names_the_connector_and_what_becomes_of_failures() -> None:
    flag, said = transfer_flags(45)
    told = json.loads(said)
    assert (flag, told["kv_connector"], told["kv_role"]) == (FLAG, "NixlConnector", "kv_both")
    assert told["kv_load_failure_policy"] == "fail"
    assert told["kv_connector_extra_config"] == {"kv_lease_duration": 45}


@pytest.mark.parametrize(
    ("host", "private"),
    [("127.0.0.1", True), ("localhost", True), ("10.1.2.3", True), ("192.168.0.9", True),
     ("fd00::1", True), ("::1", True), ("8.8.8.8", False), ("0.0.0.0", False),
     ("169.254.169.254", False), ("gpu-1.internal", False), ("", False), ("2001:4860::1", False)],
)  # fmt: skip
def test_side_channels_stand_on_private_addresses_alone(host, private) -> None:
    assert is_private_host(host) is private


def test_an_engine_is_told_where_it_offers_its_kv() -> None:
    assert dict(transfer_environ("10.0.0.5:5616", {})) == {
        "VLLM_NIXL_SIDE_CHANNEL_HOST": "10.0.0.5", "VLLM_NIXL_SIDE_CHANNEL_PORT": "5616",
        "UCX_CUDA_IPC_ENABLE_GET_ZCOPY": "on",
    }  # fmt: skip
    assert dict(transfer_environ("[fd00::1]:5600", {}))["VLLM_NIXL_SIDE_CHANNEL_HOST"] == "fd00::1"
    with pytest.raises(ValueError, match="not a private address"):
        transfer_environ("8.8.8.8:5600", {})


def test_what_the_host_says_of_direct_reads_stays() -> None:
    said = {"UCX_CUDA_IPC_ENABLE_GET_ZCOPY": "auto"}
    assert not said.keys() & dict(transfer_environ("10.0.0.5:5616", said)).keys()


def test_a_persons_own_flag_is_seen() -> None:
    assert names_transfer(["--kv-transfer-config", "{}"])
    assert names_transfer(["--kv_transfer_config={}"])
    assert not names_transfer(["--kv-events-config", "{}"])


def test_who_holds_the_memory_of_an_ended_engine_is_named() -> None:
    said = "exited with 1: ValueError: Free memory on device cuda:0 (36.37/139.8 GiB) on startup"
    told = explain_memory(said, ["pool:a/1"])
    assert told.startswith(said)
    assert "`breakeven engine restart pool:a/1`" in told
    assert explain_memory(said, []) == said
    assert explain_memory("exited with 1", ["pool:a/1"]) == "exited with 1"
