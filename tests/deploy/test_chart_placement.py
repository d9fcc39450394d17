"""Where the chart's pods run and what is added to them: each value at each kind of pod."""

import kubernetes_validate
import pytest
import yaml

ADDED = {
    "podLabels": {"team": "ml", "app.kubernetes.io/component": "stolen"},
    "podAnnotations": {"example.com/owner": "ml"},
    "serviceAccount": {"annotations": {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/r"}},
    "nodeSelector": {"zone": "a"},
    "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
        {"maxSkew": 1, "topologyKey": "host", "whenUnsatisfiable": "ScheduleAnyway",
         "labelSelector": {"matchLabels": {"own": "yes"}}},
    ],
    "priorityClassName": "serving",
    "schedulerName": "other",
    "extraEnv": [
        {"name": "HTTPS_PROXY", "value": "http://proxy:3128"},
        {"name": "MY_TOKEN", "valueFrom": {"secretKeyRef": {"name": "mine", "key": "token"}}},
    ],
    "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ca", "readOnly": True}],
    "extraInitContainers": [{"name": "fetch", "image": "busybox"}],
}  # fmt: skip
BESIDE = {"extraContainers": [{"name": "collector", "image": "collector"}]}
ENGINE = {"model": {"claim": "models", "path": "m"}}
POOL = "config: {pools: {m: {gpu: {type: H200}}}, models: {m: {targets: ['pool:m']}}}\n"
PLACES = {
    "gateway": "breakeven-gateway",
    "dashboard": "breakeven-dashboard",
    "migrations": "breakeven-migrations",
    "engines": "breakeven-engine-m",
}


def values(place: str, added: dict) -> str:
    if place == "engines":
        return POOL + yaml.safe_dump({"engines": {"m": {**ENGINE, **added}}})
    return yaml.safe_dump({place: added})


def pod(chart, place: str) -> dict:
    (found,) = (template for name, template in chart.pods if name == PLACES[place])
    return found


@pytest.fixture(params=PLACES)
def place(request) -> str:
    return request.param


def test_each_value_reaches_its_pods(render, place) -> None:
    chart = render(values(place, ADDED | (BESIDE if place != "migrations" else {})))
    template = pod(chart, place)
    spec = template["spec"]
    for name in ("nodeSelector", "affinity", "tolerations", "priorityClassName", "schedulerName"):
        assert spec[name] == ADDED[name], name
    assert template["metadata"]["annotations"].items() >= ADDED["podAnnotations"].items()
    assert template["metadata"]["labels"]["team"] == "ml"
    first, second = spec["topologySpreadConstraints"]
    assert first["labelSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert second["labelSelector"] == {"matchLabels": {"own": "yes"}}
    container, *beside = spec["containers"]
    assert [neighbour["name"] for neighbour in beside] == (
        ["collector"] if place != "migrations" else []
    )
    assert [initContainer["name"] for initContainer in spec["initContainers"]] == ["fetch"]
    assert all(item in container["env"] for item in ADDED["extraEnv"])
    assert ADDED["extraVolumeMounts"][0] in container["volumeMounts"]
    assert ADDED["extraVolumes"][0] in spec["volumes"]
    account = chart.one("ServiceAccount", PLACES[place])
    annotations = ADDED["serviceAccount"]["annotations"]
    assert account["metadata"]["annotations"].items() >= annotations.items()
    assert spec["serviceAccountName"] == PLACES[place]
    for object_ in chart.objects:
        if object_["kind"] in ("StatefulSet", "Deployment", "Job", "ServiceAccount"):
            assert kubernetes_validate.validate(object_, "1.33", strict=True)


def test_labels_that_select_a_pod_stay_its_own(render, place) -> None:
    chart = render(values(place, ADDED))
    labels = pod(chart, place)["metadata"]["labels"]
    assert labels["app.kubernetes.io/component"] != "stolen"


def test_an_account_of_ones_own_is_used_and_not_made(render, place) -> None:
    chart = render(values(place, {"serviceAccount": {"create": False, "name": "mine"}}))
    assert pod(chart, place)["spec"]["serviceAccountName"] == "mine"
    assert not chart.of("ServiceAccount", "mine")
    assert not chart.of("ServiceAccount", PLACES[place])
    unnamed = render(values(place, {"serviceAccount": {"create": False}}))
    assert pod(unnamed, place)["spec"]["serviceAccountName"] == "default"
    named = render(values(place, {"serviceAccount": {"name": "mine"}}))
    assert named.of("ServiceAccount", "mine")


def test_without_them_nothing_is_added_but_the_spread_of_hosts(render, place) -> None:
    spec = pod(render(values(place, {})), place)["spec"]
    unset = {"nodeSelector", "affinity", "tolerations", "priorityClassName", "schedulerName",
             "runtimeClassName", "initContainers"}  # fmt: skip
    assert spec.keys() & unset == set()
    (spread,) = spec.get("topologySpreadConstraints", [None])
    assert (spread is not None) is (place == "gateway")
    if spread is not None:
        labels = {"app.kubernetes.io/name": "breakeven", "app.kubernetes.io/instance": "breakeven",
                  "app.kubernetes.io/component": "gateway"}  # fmt: skip
        assert spread == {
            "maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": labels},
        }  # fmt: skip


def test_engines_may_have_a_runtime_class(render) -> None:
    chart = render(values("engines", {"runtimeClassName": "nvidia"}))
    assert pod(chart, "engines")["spec"]["runtimeClassName"] == "nvidia"


@pytest.mark.parametrize(
    "wrong",
    [
        {"extraEnv": [{"name": "MY_TOKEN", "value": "sk-1"}]},  # readable by who sees the pod
        {"extraEnv": [{"name": "A"}]},
        {"extraEnv": [{"name": "A", "value": "1", "valueFrom": {}}]},
        {"extraVolumes": [{"configMap": {"name": "ca"}}]},
        {"extraVolumeMounts": [{"name": "ca", "mountPath": "relative"}]},
        {"affinity": {"nodeAfinity": {}}},
        {"topologySpreadConstraints": [{"topologyKey": "zone"}]},
        {"serviceAccount": {"anotations": {}}},
        {"priorityClassname": "serving"},
        {"podLabels": {"a": 1}},
    ],
    ids=str,
)
def test_what_is_wrong_is_refused(render, refused, place, wrong) -> None:
    with pytest.raises(refused):
        render(values(place, wrong))
