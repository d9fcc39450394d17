"""Renders a chart with Helm itself: run by the interpreter of the part `helm`, not by pytest.

Standard input: `{"chart", "values", "name", "namespace", "upgrade"}`, values as the text of a
`-f` file. Standard output: `{"manifests": {template: text}}`, or `{"error": text}`.
"""

import json
import sys

from helm_python import Chart, HelmError, helm_sdk_version, lint, values_from_yaml


def main() -> None:
    asked = json.load(sys.stdin)
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
    json.dump({**found, "helm": helm_sdk_version()}, sys.stdout)


main()
