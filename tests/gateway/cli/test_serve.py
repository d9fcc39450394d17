"""`breakeven serve`: what keeps it from starting is one line."""

import socket

from typer.testing import CliRunner

from gateway.cli.app import app

CONFIG = """
state_dir: {state}
models: {{chat: {{targets: [openai/gpt-4o-mini]}}}}
providers: {{openai: {{api_key_env: OPENAI_API_KEY}}}}
policies: [{{name: default}}]
server: {{port: {port}}}
"""


def test_a_taken_port_is_one_line(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    path = tmp_path / "taken.yaml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        path.write_text(CONFIG.format(state=tmp_path / "state", port=port))
        answer = CliRunner().invoke(app, ["serve", "--config", str(path)])
    assert answer.exit_code == 1
    assert len(answer.stderr.splitlines()) == 1
    assert "server.port: cannot listen" in answer.stderr
