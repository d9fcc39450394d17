"""Before any child starts: directories, schema, prices, contracts, budgets, ports."""

import socket
from pathlib import Path

import pytest
from sqlalchemy import text

from deploy.quietports import find_quiet_port
from gateway.config.settings import parse
from gateway.errors import ConfigError
from gateway.host.port_claims import PortClaims
from gateway.host.prepare import find_ports, moved_ports, prepare
from ledger.database import make_engine, sqlite_url
from ledger.identity.keys import KeySpec, create_key, load_pepper

TEXT = """
state_dir: {state}
models: {{m: {{targets: ["pool:a"], compare_with: ["openai/gpt-4o-mini"]}}}}
pools:
  a:
    engine: {{kind: simulated, model: rtx4090-llama-3.1-8b, replicas: 2, port: {port}}}
    gpu: {{type: H200, count: 2, usd_per_hour: 3.5, source: contract}}
    ops: {{hours_per_week: 2.5, usd_per_hour: 95}}
providers: {{standin: {{start: true, simulated: true}}}}
budgets: [{{scope: "team:a", usd: 1.5, period: day}}]
"""


def written(tmp_path: Path, port: int = 0) -> Path:
    path = tmp_path / "breakeven.yaml"
    path.write_text(TEXT.format(state=tmp_path / "state", port=port))
    return path


def counts(url: str) -> dict[str, int]:
    tables = ("price_versions", "gpu_contracts", "budgets", "config_versions")
    engine = make_engine(url)
    with engine.connect() as connection:
        found = {
            name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()
            for name in tables
        }
    engine.dispose()
    return found


def test_everything_is_there_and_a_second_start_changes_nothing(tmp_path: Path) -> None:
    path = written(tmp_path)
    settings = parse(path.read_text(), name="t")
    first = prepare(settings, path, {})
    before = counts(first.runtime.ledger_url)
    assert before["price_versions"] > 1000
    assert (before["gpu_contracts"], before["budgets"], before["config_versions"]) == (1, 1, 1)
    run = first.runtime.run_dir
    (run / "metrics" / "counter_0.db").write_text("of the last run")
    (run / "board").write_bytes(b"of the last run")
    (run / "generation").write_bytes(b"goes on")
    second = prepare(settings, path, {})
    assert counts(second.runtime.ledger_url) == before
    assert list((run / "metrics").iterdir()) == []
    assert not (run / "board").exists()
    assert (run / "generation").read_bytes() == b"goes on"
    assert (tmp_path / "state" / "pepper").stat().st_mode & 0o077 == 0
    assert (tmp_path / "state" / "journal").stat().st_mode & 0o077 == 0


RENAMED = """
state_dir: {state}
models: {{m: {{targets: ["pool:{name}"], compare_with: ["openai/gpt-4o-mini"]}}}}
pools:
  {name}:
    engine: {{kind: vllm, served_name: m, endpoints: ["http://127.0.0.1:9/v1"]}}
    gpu: {{type: H200, count: 1, usd_per_hour: 3.5, source: contract}}
"""


def test_a_renamed_pool_is_told_of_for_its_gpus_are_billed_on(tmp_path: Path) -> None:
    besides = []
    for name in ("old", "new"):
        path = tmp_path / "breakeven.yaml"
        path.write_text(RENAMED.format(state=tmp_path / "state", name=name))
        settings = parse(path.read_text(), name="t")
        besides.append(list(prepare(settings, path, {}).billed_besides))
    assert besides == [[], ["old"]]


def test_a_port_that_is_taken_is_given_to_nobody(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ports = find_ports(parse(written(tmp_path, port).read_text(), name="t"))
    numbers = [*ports.engines.values(), *ports.providers.values()]
    assert port not in numbers
    assert len(set(numbers)) == 3


def test_a_port_that_a_starting_host_has_chosen_is_given_to_no_other(tmp_path: Path) -> None:
    """Its engine binds the port minutes later: until then the port looks free."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings = parse(written(tmp_path, port).read_text(), name="t")
    with PortClaims() as first, PortClaims() as second:
        chosen = find_ports(settings, first)
        assert chosen.engines["pool:a/0"] == port
        other = find_ports(settings, second)
        (line, *_) = moved_ports(settings, other)
    numbers = [*chosen.engines.values(), *chosen.providers.values()]
    assert not set(numbers) & {*other.engines.values(), *other.providers.values()}
    assert line.endswith(
        f"{port}, by pools.a.engine.port, is taken by another host of this machine"
    )


def test_an_engine_that_moves_from_its_port_is_one_line(tmp_path: Path) -> None:
    port = find_quiet_port(2)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen(1)
        settings = parse(written(tmp_path, port).read_text(), name="t")
        found = find_ports(settings)
        (line,) = [line for line in moved_ports(settings, found) if f": {port}, by" in line]
    assert f"{port}, by pools." in line
    assert ".engine.port, is taken by process" in line
    assert moved_ports(settings, find_ports(settings)) == []


def test_a_host_without_the_others_pepper_does_not_start(tmp_path: Path) -> None:
    """It would answer 401 to every key that was made on another."""
    path, url = written(tmp_path), sqlite_url(tmp_path / "shared.db")
    text_ = f"{path.read_text()}ledger: {{url: '{url}'}}\n"
    path.write_text(text_)
    first = prepare(parse(text_, name="t"), path, {})
    engine = make_engine(url)
    with engine.begin() as connection:
        pepper = load_pepper(tmp_path / "state")
        create_key(connection, KeySpec("k"), pepper=pepper, now_us=1)
    engine.dispose()
    assert prepare(parse(text_, name="t"), path, {}).runtime.host == first.runtime.host
    other = parse(text_.replace(str(tmp_path / "state"), str(tmp_path / "other")), name="t")
    with pytest.raises(ConfigError, match=r"state_dir: .*pepper is missing.*copy the file"):
        prepare(other, path, {})
    (tmp_path / "other" / "pepper").write_bytes(pepper)
    assert prepare(other, path, {}).runtime.host.startswith(f"{first.runtime.host}~")
