{{/* The name of all objects: that of the release. It is cut, since pods have a suffix and labels have 63 bytes. */}}
{{- define "aip-gateway.name" -}}
{{- if contains "aip-gateway" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-aip-gateway" (.Release.Name | trunc 38 | trimSuffix "-") }}
{{- end }}
{{- end }}

{{- define "aip-gateway.selector" -}}
app.kubernetes.io/name: aip-gateway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "aip-gateway.labels" -}}
{{ include "aip-gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The Caddyfile. */}}
{{- define "aip-gateway.caddyfile" -}}
{{- if .Values.caddyfile }}{{ .Values.caddyfile }}
{{- else if .Values.nats.servers }}{{ .Files.Get "files/Caddyfile.cluster" }}
{{- else }}{{ .Files.Get "files/Caddyfile" }}
{{- end }}
{{- end }}
