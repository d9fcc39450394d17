"""A start ends where a process of the host would end again and again."""

import pytest
import typer

from gateway.cli.config import load_or_fail
from gateway.cli.start_config import start_or_fail


def test_a_start_ends_at_an_error_and_only_tells_of_a_warning(tmp_path, capsys):
    path = tmp_path / "the-file.yaml"
    path.write_text("models: {a: {targets: [openai/our-own]}}\nproviders: {openai: {}}\n")
    assert start_or_fail(path).models
    assert "the-file.yaml:1: warning: models.a.targets[0]" in capsys.readouterr().err
    path.write_text("")
    assert load_or_fail(path).models == {}  # a key can be revoked with whatever configuration
    with pytest.raises(typer.Exit) as caught:
        start_or_fail(path)
    assert caught.value.exit_code == 1
    assert "cannot be used: 1 error" in capsys.readouterr().err


def test_a_start_ends_where_a_key_is_not_set(tmp_path, capsys, monkeypatch):
    """Workers ended with it and were started again for ever, and nobody said why."""
    path = tmp_path / "the-file.yaml"
    path.write_text(
        "models: {a: {targets: [openai/gpt-4o-mini]}}\n"
        "providers: {openai: {api_key_env: KEY_OF_THIS_TEST}}\n"
    )
    monkeypatch.delenv("KEY_OF_THIS_TEST", raising=False)
    with pytest.raises(typer.Exit) as caught:
        start_or_fail(path)
    assert caught.value.exit_code == 1
    said = "providers.openai.api_key_env: `KEY_OF_THIS_TEST` is not set in the environment"
    assert said in capsys.readouterr().err
    assert load_or_fail(path).models  # commands that ask nobody need no key
    monkeypatch.setenv("KEY_OF_THIS_TEST", "x")
    assert start_or_fail(path).models


def test_a_start_ends_where_the_key_that_pays_for_samples_is_not_set(tmp_path, capsys, monkeypatch):
    """The process that asks would have ended with it, again and again."""
    path = tmp_path / "the-file.yaml"
    path.write_text(
        "models:\n"
        "  own: {targets: ['pool:p'], compare_with: [openai/gpt-4o-mini]}\n"
        "  base: {targets: ['pool:q'], compare_with: [openai/gpt-4o-mini]}\n"
        "pools:\n"
        "  p:\n"
        "    engine: {endpoints: ['http://127.0.0.1:1/v1']}\n"
        "    gpu: {type: CPU}\n"
        "    sampling: {teams: [a], model: own, baseline: base, key_env: KEY_OF_THIS_TEST}\n"
        "  q: {engine: {endpoints: ['http://127.0.0.1:2/v1']}, gpu: {type: CPU}}\n"
    )
    monkeypatch.delenv("KEY_OF_THIS_TEST", raising=False)
    with pytest.raises(typer.Exit):
        start_or_fail(path)
    said = "pools.p.sampling.key_env: `KEY_OF_THIS_TEST` is not set in the environment"
    assert said in capsys.readouterr().err
    monkeypatch.setenv("KEY_OF_THIS_TEST", "x")
    assert start_or_fail(path).models


@pytest.mark.parametrize(
    ("section", "value", "words"),
    [
        (
            "opentelemetry: {endpoint: 'http://c:1', headers_env: KEY_OF_THIS_TEST}",
            "",
            "is not set",
        ),
        (
            "opentelemetry: {endpoint: 'http://c:1', headers_env: KEY_OF_THIS_TEST}",
            "x",
            "must hold",
        ),
        ("alerts: {webhook_env: KEY_OF_THIS_TEST}", "chat.example", "must hold one address"),
        ("alerts: {webhook_env: KEY_OF_THIS_TEST}", "", "is not set"),
        ("ledger: {url_env: KEY_OF_THIS_TEST}", "\n", "is not set"),
        ("dashboard: {enabled: true, reader_url_env: KEY_OF_THIS_TEST}", "", "is not set"),
    ],
)
def test_a_start_ends_where_a_process_would_end_again_and_again(
    tmp_path, capsys, monkeypatch, section, value, words
):
    path = tmp_path / "the-file.yaml"
    path.write_text(
        "models: {a: {targets: [openai/gpt-4o-mini]}}\n"
        "providers: {openai: {simulated: true, start: true}}\n" + section + "\n"
    )
    monkeypatch.setenv("KEY_OF_THIS_TEST", value)
    with pytest.raises(typer.Exit):
        start_or_fail(path)
    said = capsys.readouterr().err
    assert f"_env: `KEY_OF_THIS_TEST` {words}" in said
    assert value in ("", "x", "\n") or value not in said


def test_a_start_ends_where_the_secret_of_kept_answers_is_quickly_guessed(
    tmp_path, capsys, monkeypatch
):
    path = tmp_path / "the-file.yaml"
    path.write_text(
        "models: {a: {targets: [openai/gpt-4o-mini]}}\n"
        "providers: {openai: {simulated: true, start: true}}\n"
        "server: {idempotency: {replay: {enabled: true, key_env: KEY_OF_THIS_TEST}}}\n"
    )
    for secret, said in [("", "is not set"), ("x" * 31, "must hold at least 32 characters")]:
        monkeypatch.setenv("KEY_OF_THIS_TEST", secret)
        with pytest.raises(typer.Exit):
            start_or_fail(path)
        words = f"server.idempotency.replay.key_env: `KEY_OF_THIS_TEST` {said}"
        assert words in capsys.readouterr().err
    monkeypatch.setenv("KEY_OF_THIS_TEST", "x" * 32)
    assert start_or_fail(path).models
    path.write_text(path.read_text().replace("enabled: true", "enabled: false"))
    monkeypatch.delenv("KEY_OF_THIS_TEST")
    assert start_or_fail(path).models
