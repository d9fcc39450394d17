{{- define "breakeven.name" -}}
{{- if eq .Release.Name .Chart.Name }}{{ .Chart.Name }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{/* Of one component: (list $ "gateway"). */}}
{{- define "breakeven.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "breakeven.labels" -}}
{{- $root := index . 0 -}}
{{ include "breakeven.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* (list $ image): a digest says exactly which one. */}}
{{- define "breakeven.image" -}}
{{- $image := index . 1 -}}
{{- if $image.digest }}{{ printf "%s@%s" $image.repository $image.digest }}
{{- else }}{{ printf "%s:%s" $image.repository ($image.tag | default (index . 0).Chart.AppVersion) }}{{ end -}}
{{- end }}

{{- define "breakeven.engineName" -}}
{{ printf "%s-engine-%s" (include "breakeven.name" (index . 0)) (index . 1) }}
{{- end }}

{{/* How many engines of a pool there may be: each has its place in the configuration from the start. */}}
{{- define "breakeven.engineCount" -}}
{{- if .autoscaling }}{{ .autoscaling.maxReplicas | int }}{{ else }}{{ .replicas | default 1 | int }}{{ end -}}
{{- end }}

{{/* Not empty where the gateway sizes an engine's pool by dollars: all of them, or (list $ way) one way alone. */}}
{{- define "breakeven.sized" -}}
{{- range $name, $engine := (index . 0).Values.engines }}
{{- if and $engine.scale (or (eq (index $ 1) "") (eq $engine.scale.through (index $ 1))) }}{{ $name }} {{ end }}
{{- end }}
{{- end }}

{{/* The variable in which the gateway has the key of a pool's engines. */}}
{{- define "breakeven.engineKey" -}}
ENGINE_KEY_{{ . | upper | replace "-" "_" | replace "." "_" }}
{{- end }}

{{/* Not empty where gateways ask the access file who may do what: for the dashboard, or for an issuer's tokens. */}}
{{- define "breakeven.people" -}}
{{- if or .Values.dashboard.enabled (.Values.config.oidc | default dict).issuer }}yes{{ end -}}
{{- end }}

{{- define "breakeven.accessPath" -}}
/etc/breakeven/access/{{ .Values.dashboard.access.key }}
{{- end }}

{{/* Refuses fewer at most than at least, which the cluster would only when it is there already. */}}
{{- define "breakeven.span" -}}
{{- $least := (index . 1).minReplicas -}}
{{- $most := (index . 1).maxReplicas -}}
{{- if gt (int $least) (int $most) -}}
{{- fail (printf "%s: minReplicas (%v) is more than maxReplicas (%v)" (index . 0) $least $most) -}}
{{- end -}}
{{- end -}}
