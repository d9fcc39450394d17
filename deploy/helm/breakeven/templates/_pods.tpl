{{/* What every pod is: it runs as nobody in particular and has no word with the cluster. */}}
{{- define "breakeven.pod" -}}
automountServiceAccountToken: false
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
