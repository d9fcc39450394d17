{{/* What every pod is: it runs as nobody in particular. */}}
{{- define "breakeven.pod" -}}
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* No word with the cluster. A gateway that sizes engines has its say on their scales, and on nothing else. */}}
{{- define "breakeven.noToken" -}}
automountServiceAccountToken: false
{{- end }}

{{/* (list $ component values): where its pods run, and before whom. */}}
{{- define "breakeven.placement" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $spec := index . 2 -}}
{{- with $spec.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $spec.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $spec.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $spec.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  {{- $selector := dict "matchLabels" (include "breakeven.selector" (list $root $component) | fromYaml) }}
  - {{- (ternary . (merge (dict "labelSelector" $selector) .) (not (empty .labelSelector))) | toYaml | nindent 4 }}
  {{- end }}
{{- end }}
{{- range $name := list "priorityClassName" "runtimeClassName" "schedulerName" }}
{{- with get $spec $name }}
{{ $name }}: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* (list $ component values): the labels of its pods; those that select them cannot be changed. */}}
{{- define "breakeven.podLabels" -}}
{{- $own := include "breakeven.labels" (list (index . 0) (index . 1)) | fromYaml -}}
{{- merge $own ((index . 2).podLabels | default dict) | toYaml }}
{{- end }}

{{/* (list default values): the name of its service account. */}}
{{- define "breakeven.account" -}}
{{- $own := ternary (index . 0) "default" (not (empty (include "breakeven.makesAccount" (index . 1)))) -}}
{{- ((index . 1).serviceAccount | default dict).name | default $own -}}
{{- end }}

{{/* Whether the chart makes its service account: not empty if so. */}}
{{- define "breakeven.makesAccount" -}}
{{- if ne (toString (get (.serviceAccount | default dict) "create")) "false" }}yes{{ end -}}
{{- end }}

{{- define "breakeven.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* (list $ key): a key of the shared Secret. */}}
{{- define "breakeven.shared" -}}
valueFrom: {secretKeyRef: {name: {{ (index . 0).Values.secrets.existingSecret | quote }}, key: {{ index . 1 | quote }}}}
{{- end }}

{{- define "breakeven.probe" -}}
httpGet: {path: {{ index . 0 }}, port: {{ index . 1 }}}
timeoutSeconds: 5
{{- end }}
