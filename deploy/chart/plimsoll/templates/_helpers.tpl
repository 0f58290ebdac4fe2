{{/* What a Deployment, its Services and its budget select by; never changes. */}}
{{- define "plimsoll.selector" -}}
app.kubernetes.io/name: plimsoll
app.kubernetes.io/component: hub
{{- end }}

{{/* Labels of one object; root, own. Those of the release come first, then its own, then the common ones: each name is there once. */}}
{{- define "plimsoll.labelsWith" -}}
{{- $labels := include "plimsoll.selector" .root | fromYaml -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $labels "app.kubernetes.io/instance" .root.Release.Name -}}
{{- $_ := set $labels "app.kubernetes.io/version" .root.Chart.AppVersion -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
{{- merge $labels (.own | default dict) (.root.Values.commonLabels | default dict) | toYaml -}}
{{- end }}

{{- define "plimsoll.labels" -}}
{{- include "plimsoll.labelsWith" (dict "root" .) -}}
{{- end }}

{{/* Annotations of one object, the common ones included, as the field "annotations"; nothing without any. */}}
{{- define "plimsoll.annotations" -}}
{{- with merge (deepCopy (.own | default dict)) (.root.Values.commonAnnotations | default dict) -}}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "plimsoll.serviceAccount" -}}
{{- .Values.serviceAccount.name | default "plimsoll-hub" -}}
{{- end }}

{{/* What of a Service's spec values may set, beside selector and ports. */}}
{{- define "plimsoll.service" -}}
type: {{ .type }}
{{- with .loadBalancerClass }}
loadBalancerClass: {{ . | quote }}
{{- end }}
{{- with .loadBalancerSourceRanges }}
loadBalancerSourceRanges:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .externalTrafficPolicy }}
externalTrafficPolicy: {{ . }}
{{- end }}
{{- with .ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .ipFamilies }}
ipFamilies:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "plimsoll.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The hub's configuration file. */}}
{{- define "plimsoll.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- range $part := list "webhook" "api" "metrics" -}}
{{- if (get $.Values $part).certificate.secretName -}}
{{- $_ := set $config $part (merge (dict "certDir" (printf "/etc/plimsoll/%s" $part)) (get $config $part | default dict)) -}}
{{- end -}}
{{- end -}}
{{- if .Values.webhook.clientCA.secretName -}}
{{- $_ := set $config "webhook" (merge (dict "clientCA" "/etc/plimsoll/webhook-clients/ca.crt") (get $config "webhook" | default dict)) -}}
{{- end -}}
{{- if .Values.api.clientCA.secretName -}}
{{- $_ := set $config "api" (merge (dict "clientCA" "/etc/plimsoll/api-clients/ca.crt") (get $config "api" | default dict)) -}}
{{- end -}}
{{- if .Values.metrics.unauthenticated -}}
{{- $_ := set $config "metrics" (merge (dict "unauthenticated" true) (get $config "metrics" | default dict)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}

{{- define "plimsoll.leaseName" -}}
{{- dig "leaderElection" "leaseName" "plimsoll-hub" .Values.config -}}
{{- end }}

{{/* The names that a certificate of cert-manager is for: those of the Services, that of the URL, and the configuration's. */}}
{{- define "plimsoll.certificateNames" -}}
{{- $names := list -}}
{{- range $service := list "plimsoll-webhook" "plimsoll-api" "plimsoll-hub" "plimsoll-metrics" -}}
{{- $name := printf "%s.%s.svc" $service $.Release.Namespace -}}
{{- $names = concat $names (list $name (printf "%s.cluster.local" $name)) -}}
{{- end -}}
{{- $host := include "plimsoll.host" . -}}
{{- if and $host (not (include "plimsoll.isAddress" $host)) -}}
{{- $names = append $names $host -}}
{{- end -}}
{{- concat $names (dig "webhook" "dnsNames" list .Values.config) | uniq | toYaml -}}
{{- end }}

{{/* Its IP addresses; nothing without any. */}}
{{- define "plimsoll.certificateAddresses" -}}
{{- $addresses := dig "webhook" "ips" list .Values.config -}}
{{- $host := include "plimsoll.host" . -}}
{{- if include "plimsoll.isAddress" $host -}}
{{- $addresses = prepend $addresses $host -}}
{{- end -}}
{{- with $addresses | uniq }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/* The host of the URL that members get. */}}
{{- define "plimsoll.host" -}}
{{- (urlParse (dig "webhook" "url" "" .Values.config)).hostname -}}
{{- end }}

{{- define "plimsoll.isAddress" -}}
{{- if regexMatch "^[0-9.]+$|:" . }}true{{ end -}}
{{- end }}
