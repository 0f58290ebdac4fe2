{{/* The registrations in a namespace, by name, as YAML; root, namespace. The hub takes any type in its own namespace, as older versions did. */}}
{{- define "plimsoll.registrationsIn" -}}
{{- $names := list -}}
{{- range $secret := (lookup "v1" "Secret" .namespace "").items -}}
{{- $labels := dig "metadata" "labels" dict $secret -}}
{{- $labelled := or (eq (get $labels "plimsoll.dev/member") "true") (eq (get $labels "sigs.k8s.io/multicluster-runtime-kubeconfig") "true") -}}
{{- if and $labelled (or (eq $secret.type "plimsoll.dev/kubeconfig") (eq $.namespace $.root.Release.Namespace)) -}}
{{- $names = append $names $secret.metadata.name -}}
{{- end -}}
{{- end -}}
{{- toYaml $names -}}
{{- end }}

{{/* The namespaces in which the running hub may read registrations, as YAML: its own, where older versions kept them, and what its
Deployment names. Without a running hub, the default one if an earlier installation of the release has left it there. */}}
{{- define "plimsoll.formerRegistrationNamespaces" -}}
{{- $namespaces := list .Release.Namespace -}}
{{- $running := lookup "apps/v1" "Deployment" .Release.Namespace "plimsoll-hub" -}}
{{- range $container := dig "spec" "template" "spec" "containers" list $running -}}
{{- range $variable := $container.env -}}
{{- if and (eq $variable.name "PLIMSOLL_HUB_REGISTRATIONNAMESPACE") $variable.value -}}
{{- $namespaces = append $namespaces $variable.value -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $running -}}
{{- $left := dig "metadata" "annotations" dict (lookup "v1" "Namespace" "" "plimsoll-members") -}}
{{- if and (eq (get $left "meta.helm.sh/release-name") .Release.Name) (eq (get $left "meta.helm.sh/release-namespace") .Release.Namespace) -}}
{{- $namespaces = append $namespaces "plimsoll-members" -}}
{{- end -}}
{{- end -}}
{{- $namespaces | uniq | toYaml -}}
{{- end }}

{{/* Fails an upgrade after which the hub would no longer read the registration of a member. */}}
{{- define "plimsoll.refuseOrphans" -}}
{{- $to := .Values.registrations.namespace -}}
{{- $read := list $to -}}
{{- if .Values.registrations.inReleaseNamespace -}}
{{- $read = append $read .Release.Namespace -}}
{{- end -}}
{{- range $from := include "plimsoll.formerRegistrationNamespaces" . | fromYamlArray -}}
{{- if not (has $from $read) -}}
{{- $orphans := include "plimsoll.registrationsIn" (dict "root" $ "namespace" $from) | fromYamlArray -}}
{{- range $member := $.Values.registrations.members -}}
{{- $orphans = without $orphans $member.name -}}
{{- end -}}
{{- range $namespace := $read -}}
{{- if $orphans -}}
{{- range $name := include "plimsoll.registrationsIn" (dict "root" $ "namespace" $namespace) | fromYamlArray -}}
{{- $orphans = without $orphans $name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $orphans -}}
{{- $some := join ", " ($orphans | sortAlpha) -}}
{{- $remedy := printf "set registrations.namespace=%s" $from -}}
{{- if eq $from $.Release.Namespace -}}
{{- $remedy = "set registrations.inReleaseNamespace=true until you have moved them" -}}
{{- end -}}
{{- fail (printf "registrations.namespace=%s: namespace %s has registrations of members that namespace %s does not have: %s. The hub removes a member whose registration it does not read. Either %s, or first register these members in namespace %s (docs/upgrade.md)" $to $from $to $some $remedy $to) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}
