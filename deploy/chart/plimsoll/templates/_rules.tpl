{{/* files/alerts.yaml with what metrics.rules.alerts changes in it. */}}
{{- define "plimsoll.rules" -}}
{{- $changes := .Values.metrics.rules.alerts | default dict -}}
{{- $runbooks := .Values.metrics.rules.runbooks -}}
{{- $groups := list -}}
{{- $names := list -}}
{{- range $group := (.Files.Get "files/alerts.yaml" | fromYaml).groups -}}
{{- $rules := list -}}
{{- range $rule := $group.rules -}}
{{- $names = append $names $rule.alert -}}
{{- $change := get $changes $rule.alert | default dict -}}
{{- with $change.severity }}{{ $_ := set $rule.labels "severity" . }}{{ end -}}
{{- with $change.for }}{{ $_ := set $rule "for" . }}{{ end -}}
{{- if hasKey $change "threshold" -}}
{{- if not (regexMatch "[<>]=? [0-9.]+$" $rule.expr) -}}
{{- fail (printf "metrics.rules.alerts.%s.threshold: this alert compares with no threshold" $rule.alert) -}}
{{- end -}}
{{- $_ := set $rule "expr" (regexReplaceAll "[0-9.]+$" $rule.expr (printf "%v" $change.threshold)) -}}
{{- end -}}
{{- with $runbooks -}}
{{- $_ := set $rule.annotations "runbook_url" (printf "%s#%s" . (lower $rule.alert)) -}}
{{- end -}}
{{- if ne (get $change "enabled" | toString) "false" -}}
{{- $rules = append $rules $rule -}}
{{- end -}}
{{- end -}}
{{- $groups = append $groups (dict "name" $group.name "rules" $rules) -}}
{{- end -}}
{{- range $name := keys $changes | sortAlpha -}}
{{- if not (has $name $names) -}}
{{- fail (printf "metrics.rules.alerts.%s: there is no such alert; there are %s" $name (join ", " ($names | sortAlpha))) -}}
{{- end -}}
{{- end -}}
{{- dict "groups" $groups | toYaml -}}
{{- end }}
