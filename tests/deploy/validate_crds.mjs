// What KEDA, the Prometheus operator and the Gateway API would say of objects: JSON lines in, a fault or null a line out.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const GROUPS = {
  "keda.sh/v1alpha1": "@kubernetes-models/keda/keda.sh/v1alpha1",
  "monitoring.coreos.com/v1": "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1",
  "gateway.networking.k8s.io/v1": "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1",
};

for await (const line of createInterface({ input: process.stdin })) {
  const { apiVersion, kind, ...rest } = JSON.parse(line);
  let fault = null;
  try {
    const path = `${process.argv[2]}/node_modules/${GROUPS[apiVersion]}/${kind}.js`;
    const models = await import(pathToFileURL(path));
    new models[kind](rest).validate();
  } catch (error) {
    fault = String(error.message);
  }
  console.log(JSON.stringify(fault));
}
