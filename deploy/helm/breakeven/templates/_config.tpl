{{/* breakeven.yaml: what the values say, and what only the chart knows. As JSON, which is YAML, and keeps whole numbers. */}}
{{- define "breakeven.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "state_dir" "/var/lib/breakeven" -}}
{{- $_ := set $config "server" (mergeOverwrite (dict) ($config.server | default dict) (dict "host" "0.0.0.0" "port" 8080)) -}}
{{- $_ := set $config "ledger" (mergeOverwrite (dict) ($config.ledger | default dict) (dict "url_env" "BREAKEVEN_LEDGER_URL")) -}}
{{- $_ := set $config "logs" (mergeOverwrite (dict "to" "stdout") ($config.logs | default dict)) -}}
{{- $_ := unset $config "dashboard" -}}
{{- if include "breakeven.sized" (list . "keda") | trim -}}
{{- $_ := set $config.server "keda_port" 9555 -}}
{{- end -}}
{{- if .Values.gateway.peers.enabled -}}
{{- $hosts := printf "%s-gateway-hosts.%s.svc:9444" (include "breakeven.name" .) .Release.Namespace -}}
{{- $_ := set $config "peers" (dict "listen" "0.0.0.0:9444" "hosts" (list $hosts) "secret_env" "BREAKEVEN_PEERS") -}}
{{- end -}}
{{- if include "breakeven.people" . -}}
{{- $_ := set $config "dashboard" (dict "access_file" (include "breakeven.accessPath" .)) -}}
{{- end -}}
{{- range $name, $engine := .Values.engines -}}
{{- $pool := get ($config.pools | default dict) $name -}}
{{- if not $pool -}}
{{- fail (printf "engines.%s: config.pools.%s is missing; say there which GPU it is and what it costs" $name $name) -}}
{{- end -}}
{{- $service := include "breakeven.engineName" (list $ $name) -}}
{{- $count := include "breakeven.engineCount" $engine | int -}}
{{- if $engine.scale -}}
{{- if $engine.autoscaling -}}
{{- fail (printf "engines.%s: autoscaling and scale both set its replicas; leave one of them out" $name) -}}
{{- end -}}
{{- if not ($pool.scale | default dict).max -}}
{{- fail (printf "engines.%s.scale: config.pools.%s.scale.max is missing; say there how many engines there may be" $name $name) -}}
{{- end -}}
{{- $count = int $pool.scale.max -}}
{{- $actuator := dict "kind" $engine.scale.through "workload" "StatefulSet" "name" $service "namespace" $.Release.Namespace -}}
{{- $_ := set $pool "scale" (mergeOverwrite (dict) $pool.scale (dict "actuator" $actuator)) -}}
{{- end -}}
{{- $endpoints := list -}}
{{- range $index := until $count -}}
{{- $endpoints = append $endpoints (printf "http://%s-%d.%s.%s.svc:8000/v1" $service $index $service $.Release.Namespace) -}}
{{- end -}}
{{- $ours := dict "kind" "vllm" "served_name" $name "endpoints" $endpoints -}}
{{- if $engine.apiKey -}}
{{- $_ := set $ours "api_key_env" (include "breakeven.engineKey" $name) -}}
{{- end -}}
{{- $_ := set $pool "engine" (mergeOverwrite (dict) ($pool.engine | default dict) $ours) -}}
{{- end -}}
{{- range $name, $pool := $config.pools -}}
{{- if not $pool.engine -}}
{{- fail (printf "config.pools.%s: engine is missing, and so is engines.%s; say where its engines are, or run them here" $name $name) -}}
{{- end -}}
{{- end -}}
{{ $config | toPrettyJson }}
{{- end }}
