{{/* Names, and the database. */}}
{{- define "breakeven.base" -}}
- to: {{- toYaml .Values.networkPolicy.dns.to | nindent 4 }}
  ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
- to: {{- toYaml .Values.networkPolicy.database.to | nindent 4 }}
  ports: [{port: {{ .Values.networkPolicy.database.port }}, protocol: TCP}]
{{- end }}

{{- define "breakeven.outside" -}}
{{- with .Values.networkPolicy.outside -}}
- to: {{- toYaml .to | nindent 4 }}
  ports:
    {{- range .ports }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
{{- end }}
{{- end }}
