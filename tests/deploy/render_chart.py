"""Renders a chart with Helm itself: run by the interpreter of the part `helm`, not by pytest.

A line of standard input: `{"chart", "values", "name", "namespace", "upgrade"}`, values as the text
of a `-f` file. A line of standard output: `{"manifests": {template: text}}`, or `{"error": text}`.
"""

import json
import sys

from helm_python import Chart, HelmError, helm_sdk_version, lint, values_from_yaml


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(render(json.loads(line))), flush=True)


def render(asked: dict) -> dict:
    try:
        values = values_from_yaml(asked["values"])
        with Chart.load(asked["chart"]) as chart:
            manifests = chart.render(
                values, name=asked["name"], namespace=asked["namespace"],
                is_install=not asked["upgrade"], is_upgrade=asked["upgrade"],
            )  # fmt: skip
        found = {"manifests": manifests, "lint": lint(asked["chart"], values, strict=True)}
    except HelmError as error:
        found = {"error": str(error)}
    return {**found, "helm": helm_sdk_version()}


main()
