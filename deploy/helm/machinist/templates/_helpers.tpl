{{/* One of the containers with a program of ours. Values: root, name, program (none: all in one), args, drivers, hasDrivers, autoscaler, port,
portName. */}}
{{- define "machinist.container" -}}
- name: {{ .name }}
  image: {{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
  {{- if ne .root.Values.image.pullPolicy "IfNotPresent" }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  {{- end }}
  {{- with .program }}
  command: [/nodejs/bin/node, /app/cmd/{{ . }}/main.js]
  {{- end }}
  args:
    {{- if not .program }}
    - run
    {{- end }}
    - --namespace={{ if eq .root.Values.layout "two-namespaces" }}{{ .root.Values.machinesNamespace }}{{ else }}$(POD_NAMESPACE){{ end }}
    - --control-kubeconfig=inClusterConfig
    - --port={{ .port }}
    {{- if eq .root.Values.layout "two-namespaces" }}
    - --leader-elect-resource-namespace=$(POD_NAMESPACE)
    {{- end }}
    {{- if eq .root.Values.layout "cells" }}
    {{- if .root.Values.cells.namespaces }}
    - --cell-namespaces={{ join "," .root.Values.cells.namespaces }}
    {{- else }}
    - {{ printf "--cells=%s" .root.Values.cells.selector | quote }}
    {{- end }}
    {{- with .root.Values.cells.kubeconfigSecret }}
    - --cell-kubeconfig-secret={{ . }}
    {{- else }}
    - --target-kubeconfig={{ .root.Values.cells.targetKubeconfig | default "none" }}
    {{- end }}
    {{- with .root.Values.cells.tokenSecret }}
    - --cell-token-secret={{ . }}
    {{- end }}
    - --cell-shards={{ .root.Values.cells.shards }}
    {{- end }}
    {{- range $at, $driver := .drivers }}
    - --driver={{ $driver.provider }}=unix:///run/driver/{{ include "machinist.socket" (dict "at" $at) }}.sock
    {{- end }}
    {{- if .root.Values.statusPage.enabled }}
    - --status-page
    {{- end }}
    {{- if .autoscaler }}
    - --autoscaler-grpc-address=0.0.0.0:8086
    - --autoscaler-tls-cert=/etc/autoscaler/tls.crt
    - --autoscaler-tls-key=/etc/autoscaler/tls.key
    - --autoscaler-tls-client-ca=/etc/autoscaler/ca.crt
    {{- end }}
    {{- with .args }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  env:
    - name: POD_NAMESPACE
      valueFrom:
        fieldRef:
          fieldPath: metadata.namespace
    - name: NODE_OPTIONS
      value: --max-semi-space-size=8 --max-old-space-size={{ .root.Values.maxOldSpaceMiB }}{{ if eq .root.Values.layout "cells" }} --v8-pool-size=1{{ end }}
    {{- if eq .root.Values.layout "cells" }}
    - name: MALLOC_ARENA_MAX
      value: '2'
    {{- end }}
    {{- with .root.Values.extraEnv }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  ports:
    - name: {{ .portName }}
      containerPort: {{ .port }}
  livenessProbe:
    httpGet:
      path: /healthz
      port: {{ .portName }}
    initialDelaySeconds: 30
    periodSeconds: 10
    timeoutSeconds: 5
    failureThreshold: 3
  readinessProbe:
    httpGet:
      path: /readyz
      port: {{ .portName }}
    periodSeconds: 5
    timeoutSeconds: 5
  resources:
    {{- toYaml .root.Values.resources | nindent 4 }}
  {{- include "machinist.securityContext" . | nindent 2 }}
  volumeMounts:
    {{- if .hasDrivers }}
    - name: driver
      mountPath: /run/driver
    {{- end }}
    {{- include "machinist.serviceAccountMount" . | nindent 4 }}
    {{- if .autoscaler }}
    - name: autoscaler-tls
      mountPath: /etc/autoscaler
      readOnly: true
    {{- end }}
    {{- with .root.Values.volumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "machinist.serviceAccountMount" -}}
- name: service-account
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end }}

{{- define "machinist.securityContext" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* Name of a driver's socket, and of its container: the first has the name of the plain manifests. */}}
{{- define "machinist.socket" -}}
{{ if eq (int .at) 0 }}driver{{ else }}driver-{{ add1 .at }}{{ end }}
{{- end }}
