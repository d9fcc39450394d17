"""`breakeven config`: an import is a file that our own check accepts, and lines for the rest."""

import json

import pytest
import yaml
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from gateway.cli.app import app
from gateway.config.document import read_document
from gateway.config.examination import examine

SECRET = "sk-do-not-repeat-this"
GIVEN = f"""
model_list:
  - model_name: chat
    litellm_params: {{model: openai/gpt-4o, api_key: {SECRET}, rpm: 5}}
  - model_name: chat
    litellm_params:
      {{model: azure/eu, api_base: "https://eu.example.com", api_key: os.environ/AZ, rpm: 9}}
    model_info: {{base_model: azure/gpt-4o}}
  - model_name: chat
    litellm_params: {{model: claude-haiku-4-5, api_key: os.environ/ANTHROPIC_API_KEY}}
  - model_name: llama
    litellm_params: {{model: hosted_vllm/llama, api_base: "http://10.0.0.5:8000/v1"}}
  - model_name: rank
    litellm_params: {{model: cohere/rerank-v3.5, api_key: os.environ/COHERE}}
    model_info: {{mode: rerank}}
  - model_name: cheap
    litellm_params: {{model: deepinfra/x, api_key: os.environ/DI, input_cost_per_token: 2e-8}}
router_settings: {{fallbacks: [{{llama: [cheap]}}]}}
general_settings: {{master_key: {SECRET}}}
"""
GPU = ("--gpu", "H100", "--usd-per-hour", "2.5")


@pytest.fixture
def given(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(GIVEN)
    return path


def invoke(*words: object):
    return CliRunner().invoke(app, ["config", "import", *(str(word) for word in words)])


def test_the_result_is_a_configuration(given, tmp_path) -> None:
    out, prices = tmp_path / "breakeven.yaml", tmp_path / "prices.csv"
    answer = invoke(given, *GPU, "--out", out, "--prices", prices, "--accept", "models")
    assert (answer.exit_code, answer.stdout) == (0, "")
    examined = examine(out, at_us=1_795_000_000_000_000)
    assert examined.settings is not None, examined.lines
    assert sorted(examined.settings.models) == ["chat", "cheap", "llama", "rank"]
    assert examined.settings.models["chat"].targets == (
        "openai/gpt-4o", "azure-eu.example.com/eu", "anthropic/claude-haiku-4-5",
    )  # fmt: skip
    assert prices.read_text().splitlines()[1] == "deepinfra/x,0.00000002"
    assert (
        "warning: model_list[0].litellm_params.rpm: used as a share of the requests"
        in answer.stderr
    )
    assert "(and 1 more)" in answer.stderr
    assert SECRET not in out.read_text() + answer.stderr


def test_to_stdout_and_as_data(given) -> None:
    losses = ("--accept", "prices", "--accept", "models")
    answer = invoke(given, *GPU, *losses)
    assert list(yaml.safe_load(answer.stdout)["pools"]) == ["llama"]
    document = json.loads(invoke(given, *GPU, *losses, "--json").stdout)
    assert document["config"] == yaml.safe_load(answer.stdout)
    (told,) = [note for note in document["notes"] if "--prices FILE" in note["text"]]
    assert (told["rank"], told["lost"], told["place"]) == ("warning", "prices", "model_list")
    assert invoke(given, *GPU, *losses, "--strict").exit_code == 1


def test_a_loss_writes_nothing_until_it_is_accepted_by_its_name(given, tmp_path) -> None:
    out = tmp_path / "breakeven.yaml"
    answer = invoke(given, *GPU, "--out", out)
    assert (answer.exit_code, out.exists(), answer.stdout) == (1, False, "")
    ranks = [line.split(": ")[1] for line in answer.stderr.splitlines()[:-1]]
    assert ranks == sorted(ranks, key=["error", "warning", "note"].index)
    assert "--accept prices" in answer.stderr
    other = invoke(given, *GPU, "--out", out, "--accept", "prices", "--accept", "checks")
    assert (other.exit_code, out.exists()) == (1, False)
    every = ("--accept", "prices", "--accept", "models")
    assert (invoke(given, *GPU, "--out", out, *every).exit_code, out.exists()) == (0, True)
    assert invoke(given, *GPU, "--accept", "nonsense").exit_code == 2


def test_engines_need_their_gpu(given) -> None:
    answer = invoke(given)
    assert answer.exit_code == 1
    assert "engines of your own (llama): name their GPU, for example --gpu H200" in answer.stderr


def test_nothing_is_overwritten(given, tmp_path) -> None:
    out = tmp_path / "breakeven.yaml"
    out.write_text("mine")
    losses = ("--accept", "prices", "--accept", "models")
    answer = invoke(given, *GPU, "--out", out, *losses)
    assert (answer.exit_code, out.read_text()) == (1, "mine")
    assert "exists" in answer.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("models: {}", "name the `config.yaml` of a LiteLLM proxy"),
        ("include: [models.yaml]", "copy all of them into one file"),
        ("model_list: []", "no entry of `model_list` could be carried over"),
        ("model_list: [", "config.yaml:1: not YAML"),
        ("- a", "must be a mapping"),
    ],
)
def test_another_file_is_told_so(tmp_path, text, words) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    answer = invoke(path)
    assert answer.exit_code == 1
    assert words in answer.stderr


def test_a_missing_file_is_told_so(tmp_path) -> None:
    assert "No such file" in invoke(tmp_path / "none.yaml").stderr


@pytest.fixture
def schema() -> Draft202012Validator:
    given = json.loads(CliRunner().invoke(app, ["config", "schema"]).stdout)
    Draft202012Validator.check_schema(given)
    return Draft202012Validator(given)


def test_the_schema_takes_the_example(pytestconfig, schema) -> None:
    text = (pytestconfig.rootpath / "breakeven.example.yaml").read_text(encoding="utf-8")
    schema.validate(json.loads(json.dumps(read_document(text).value, default=str)))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("wat: 1", "$"),
        ("server: {port: 99999}", "$.server.port"),
        ("models: {a: passage}", "$.models.a"),
        ("policies: [{name: a, otherwise: wait}]", "$.policies[0].otherwise"),
    ],
)
def test_the_schema_names_what_is_wrong(schema, text, place) -> None:
    (fault,) = schema.iter_errors(yaml.safe_load(text))
    assert fault.json_path == place


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "because of 1 error: accept the losses with --accept models, or change"),
        (
            ("--accept", "models", "--strict"),
            "because of 3 warnings: leave out --strict, or change",
        ),
    ],
)
def test_the_last_line_says_what_stopped_an_import_and_what_to_do(given, tmp_path, words, said):
    out = tmp_path / "ours.yaml"
    answer = invoke(given, *GPU, "--prices", tmp_path / "prices.csv", "--out", out, *words)
    assert answer.exit_code == 1
    last = answer.stderr.splitlines()[-1]
    assert last.startswith("breakeven: nothing was written, ")
    assert said in last
    assert not out.exists()


def test_an_engine_that_no_api_is_like_needs_a_price_to_compare_with(tmp_path) -> None:
    """It was a warning, and `check` refused the file that was written."""
    path, out = tmp_path / "config.yaml", tmp_path / "breakeven.yaml"
    path.write_text(
        "model_list: [{model_name: own, litellm_params: "
        "{model: hosted_vllm/nobody-sells-this, api_base: 'http://10.0.0.5:8000/v1'}}]"
    )
    answer = invoke(path, *GPU, "--out", out)
    assert (answer.exit_code, out.exists()) == (1, False)
    assert "--compare-with openai/gpt-4o-mini" in answer.stderr
    answer = invoke(path, *GPU, "--out", out, "--compare-with", "openai/gpt-4o-mini")
    assert (answer.exit_code, "warning" in answer.stderr) == (0, False)
    assert examine(out, at_us=1_795_000_000_000_000).settings is not None


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("http://0.0.0.0:8080", "pools.x.engine.endpoints[0]"),
        ("https://a.example.com/v1?api-version=1", "model_list[0].litellm_params.api_base"),
        ("<your-address>", "model_list[0].litellm_params.api_base"),
    ],
)
def test_what_check_would_refuse_is_a_loss_by_name(tmp_path, address, place) -> None:
    path, out = tmp_path / "config.yaml", tmp_path / "breakeven.yaml"
    path.write_text(
        "model_list: [{model_name: a, litellm_params: {model: openai/x, "
        f"api_base: '{address}'}}}}, "
        "{model_name: b, litellm_params: {model: openai/gpt-4o}}]"
    )
    answer = invoke(path, *GPU, "--compare-with", "openai/gpt-4o-mini", "--out", out)
    assert (answer.exit_code, out.exists()) == (1, False)
    assert f"error: {place}: " in answer.stderr


def test_who_can_carry_nothing_over_says_why(tmp_path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("model_list: [{model_name: a, litellm_params: {model: github_copilot/x}}]")
    answer = invoke(path)
    assert answer.exit_code == 1
    assert "use `github`" in answer.stderr
    assert "no entry of `model_list` could be carried over" in answer.stderr


def test_no_part_of_the_file_points_to_another(tmp_path) -> None:
    """An alias with fallbacks of its own had its targets as `*id001`, which nobody writes."""
    path, out = tmp_path / "litellm.yaml", tmp_path / "breakeven.yaml"
    path.write_text(
        "model_list:\n"
        "- {model_name: a, litellm_params: {model: openai/gpt-4o, api_key: os.environ/K}}\n"
        "- {model_name: b, litellm_params: {model: openai/gpt-4o-mini, api_key: os.environ/K}}\n"
        "router_settings: {model_group_alias: {c: a}, fallbacks: [{a: [b]}]}\n"
    )
    assert invoke(path, "--out", out).exit_code == 0
    text = out.read_text()
    assert yaml.safe_load(text)["models"]["c"]["targets"] == ["openai/gpt-4o"]
    assert "&id" not in text
    assert "*id" not in text
