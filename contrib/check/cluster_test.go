// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// TestKubernetesCluster decodes every object of the form with several gateways strictly, and holds that they fit each
// other.
func TestKubernetesCluster(t *testing.T) {
	var config, nats corev1.ConfigMap
	var public, internal, servers corev1.Service
	var budgets [2]policyv1.PodDisruptionBudget
	var server, gateway appsv1.StatefulSet
	objects := []any{&config, &nats, &public, &internal, &servers, &budgets[0], &budgets[1], &server, &gateway}
	documents := bytes.Split(read(t, "kubernetes/cluster.yaml"), []byte("\n---\n"))
	if len(documents) != len(objects) {
		t.Fatalf("there are %d objects, want %d", len(documents), len(objects))
	}
	for i, document := range documents {
		if err := yaml.UnmarshalStrict(append(bytes.Clone(document), '\n'), objects[i]); err != nil {
			t.Fatalf("object %d: %v", i, err)
		}
	}
	if config.Data["Caddyfile"] != string(read(t, "Caddyfile.cluster")) {
		t.Error("the Caddyfile of the ConfigMap is not contrib/Caddyfile.cluster")
	}
	if nats.Data["nats.conf"] != string(read(t, "nats/nats.conf")) {
		t.Error("the nats.conf of the ConfigMap is not contrib/nats/nats.conf")
	}
	if *server.Spec.Replicas != 3 || server.Spec.ServiceName != servers.Name {
		t.Error("there are not three servers with the names of their service")
	}
	if gateway.Spec.ServiceName != internal.Name {
		t.Errorf("the gateways have the service %q", gateway.Spec.ServiceName)
	}
	ofServer, ofGateway := &server.Spec.Template, &gateway.Spec.Template
	apart := ofServer.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	preferred := ofGateway.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0]
	for name, of := range map[string]struct {
		selector map[string]string
		pod      *corev1.PodTemplateSpec
	}{
		public.Name:            {public.Spec.Selector, ofGateway},
		internal.Name:          {internal.Spec.Selector, ofGateway},
		servers.Name:           {servers.Spec.Selector, ofServer},
		"the first budget":     {budgets[0].Spec.Selector.MatchLabels, ofServer},
		"the second budget":    {budgets[1].Spec.Selector.MatchLabels, ofGateway},
		"the set of servers":   {server.Spec.Selector.MatchLabels, ofServer},
		"the set of gateways":  {gateway.Spec.Selector.MatchLabels, ofGateway},
		"affinity of servers":  {apart.LabelSelector.MatchLabels, ofServer},
		"affinity of gateways": {preferred.PodAffinityTerm.LabelSelector.MatchLabels, ofGateway},
	} {
		for key, value := range of.selector {
			if of.pod.Labels[key] != value {
				t.Errorf("%s selects %s=%s, which the pod is not", name, key, value)
			}
		}
	}
	for of, services := range map[*appsv1.StatefulSet][]corev1.Service{&server: {servers}, &gateway: {public, internal}} {
		container := of.Spec.Template.Spec.Containers[0]
		var ports []string
		for _, p := range container.Ports {
			ports = append(ports, p.Name)
		}
		for _, service := range services {
			for _, p := range service.Spec.Ports {
				if !slices.Contains(ports, p.TargetPort.StrVal) {
					t.Errorf("%s has the target %s, which the pod has not", service.Name, p.TargetPort.StrVal)
				}
			}
		}
		for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
			if probe == nil || probe.HTTPGet == nil || !slices.Contains(ports, probe.HTTPGet.Port.StrVal) {
				t.Errorf("%s has a probe that gets nothing at a port of the pod", of.Name)
			}
		}
		volumes := make(map[string]bool)
		for _, v := range of.Spec.Template.Spec.Volumes {
			volumes[v.Name] = true
		}
		for _, claim := range of.Spec.VolumeClaimTemplates {
			volumes[claim.Name] = true
		}
		for _, mount := range container.VolumeMounts {
			if !volumes[mount.Name] {
				t.Errorf("%s has no volume %s", of.Name, mount.Name)
			}
		}
		if pod, own := of.Spec.Template.Spec.SecurityContext, container.SecurityContext; !*pod.RunAsNonRoot ||
			*own.AllowPrivilegeEscalation || !*own.ReadOnlyRootFilesystem {
			t.Errorf("the container of %s may do more than it needs", of.Name)
		}
	}
	variables := make(map[string]string)
	for _, v := range append(slices.Clone(server.Spec.Template.Spec.Containers[0].Env),
		gateway.Spec.Template.Spec.Containers[0].Env...) {
		variables[v.Name] = v.Value
	}
	for _, name := range []string{"AIP_NATS", "AIP_NATS_MONITOR", "NATS_ROUTES"} {
		for _, pod := range []string{"-nats-0.", "-nats-1.", "-nats-2."} {
			if !strings.Contains(variables[name], pod+servers.Name) {
				t.Errorf("%s has no server %s: %s", name, pod, variables[name])
			}
		}
	}
}

func TestComposeCluster(t *testing.T) {
	load := func(environment types.Mapping) (*types.Project, error) {
		return loader.LoadWithContext(t.Context(), types.ConfigDetails{
			WorkingDir:  "../docker",
			ConfigFiles: []types.ConfigFile{{Filename: "../docker/cluster.yaml"}},
			Environment: environment,
		})
	}
	passwords := types.Mapping{"NATS_PASSWORD": "p1", "NATS_ADMIN_PASSWORD": "p2"}
	for name := range passwords {
		others := maps.Clone(passwords)
		delete(others, name)
		if _, err := load(others); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
	project, err := load(passwords)
	if err != nil {
		t.Fatal(err)
	}
	balancer := string(read(t, "haproxy/cluster.cfg"))
	for name, service := range project.Services {
		for _, v := range service.Volumes {
			if v.Type == "bind" && !strings.HasSuffix(v.Source, "/tls") { // tls is for the operator to make
				if _, err := os.Stat(v.Source); err != nil {
					t.Errorf("%s mounts %v", name, err)
				}
			}
		}
		if !slices.Contains(service.CapDrop, "ALL") {
			t.Errorf("%s may do more than it needs", name)
		}
		if strings.HasPrefix(name, "gateway-") && (service.Hostname != name ||
			!strings.Contains(balancer, "server "+name+" "+name+":8443\n")) {
			t.Errorf("%s has another name, or HAProxy does not know it", name)
		}
		if strings.HasPrefix(name, "nats-") && *service.Environment["NATS_NAME"] != name {
			t.Errorf("%s has the name %s", name, *service.Environment["NATS_NAME"])
		}
		if service.Environment["NATS_ADMIN_PASSWORD"] != nil != strings.HasPrefix(name, "nats-") {
			t.Errorf("%s: the password of who looks after the servers is that of the servers alone", name)
		}
	}
	gateway := project.Services["gateway-3"]
	if _, err := os.Stat(gateway.Build.Context + "/" + gateway.Build.Dockerfile); err != nil {
		t.Error(err)
	}
	if !gateway.ReadOnly {
		t.Error("a gateway may do more than it needs")
	}
}
