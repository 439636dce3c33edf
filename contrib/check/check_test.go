// SPDX-License-Identifier: Apache-2.0

// Package check holds the container files, the Kubernetes manifests and the Helm chart of contrib to their schemas: the
// Go types of Kubernetes, Compose's own loader, and BuildKit's parser. It also makes a release, whose bill of materials
// it holds to the schema of CycloneDX. It is a module of its own, so that the gateway does not depend on all this.
// HAProxy, nginx, systemd and the Caddyfile are checked by the end-to-end tests.
package check

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile("../" + name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestKubernetes decodes every object strictly: a field that its type does not have is an error.
func TestKubernetes(t *testing.T) {
	var config corev1.ConfigMap
	var public, internal corev1.Service
	var set appsv1.StatefulSet
	objects := []any{&config, &public, &internal, &set}
	documents := bytes.Split(read(t, "kubernetes/aip-gateway.yaml"), []byte("\n---\n"))
	if len(documents) != len(objects) {
		t.Fatalf("there are %d objects, want %d", len(documents), len(objects))
	}
	for i, document := range documents {
		if err := yaml.UnmarshalStrict(append(bytes.Clone(document), '\n'), objects[i]); err != nil {
			t.Fatalf("object %d: %v", i, err)
		}
	}
	if set.APIVersion != "apps/v1" || set.Kind != "StatefulSet" || public.Kind != "Service" ||
		internal.Kind != "Service" || config.Kind != "ConfigMap" {
		t.Fatal("an object is of another kind")
	}
	if config.Data["Caddyfile"] != string(read(t, "Caddyfile")) {
		t.Error("the Caddyfile of the ConfigMap is not contrib/Caddyfile")
	}

	if *set.Spec.Replicas != 1 {
		t.Errorf("there are %d replicas, but one process uses a store", *set.Spec.Replicas)
	}
	fits(t, &public, &internal, &set)
}

// fits holds that the services and the probes find the pods of a StatefulSet, and its containers their volumes.
func fits(t *testing.T, public, internal *corev1.Service, set *appsv1.StatefulSet) {
	t.Helper()
	template := set.Spec.Template
	labels := template.Labels
	for name, selector := range map[string]map[string]string{
		"the StatefulSet": set.Spec.Selector.MatchLabels, public.Name: public.Spec.Selector,
		internal.Name: internal.Spec.Selector,
	} {
		for key, value := range selector {
			if labels[key] != value {
				t.Errorf("%s selects %s=%s, which the pod is not", name, key, value)
			}
		}
	}
	if set.Spec.ServiceName != internal.Name {
		t.Errorf("the StatefulSet names the service %q", set.Spec.ServiceName)
	}
	if len(template.Spec.Containers) != 1 {
		t.Fatalf("the pod has %d containers", len(template.Spec.Containers))
	}
	gateway := template.Spec.Containers[0]
	var ports []string
	for _, p := range gateway.Ports {
		ports = append(ports, p.Name)
	}
	for _, service := range []*corev1.Service{public, internal} {
		for _, p := range service.Spec.Ports {
			if !slices.Contains(ports, p.TargetPort.StrVal) {
				t.Errorf("%s has the target %s, which the pod has not", service.Name, p.TargetPort.StrVal)
			}
		}
	}
	probes := map[string]*corev1.Probe{"live": gateway.LivenessProbe, "ready": gateway.ReadinessProbe}
	if *set.Spec.Replicas == 1 { // several have no store of their own that a start could migrate
		probes["live at the start"] = gateway.StartupProbe
	}
	for name, probe := range probes {
		path := "/aip/health/" + strings.Fields(name)[0]
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path ||
			!slices.Contains(ports, probe.HTTPGet.Port.StrVal) {
			t.Errorf("the probe %q does not get %s at a port of the pod", name, path)
		}
	}
	volumes := make(map[string]bool)
	for _, v := range template.Spec.Volumes {
		volumes[v.Name] = true
	}
	for _, claim := range set.Spec.VolumeClaimTemplates {
		volumes[claim.Name] = true
	}
	for _, mount := range gateway.VolumeMounts {
		if !volumes[mount.Name] {
			t.Errorf("there is no volume %s", mount.Name)
		}
	}
	if pod, own := template.Spec.SecurityContext, gateway.SecurityContext; !*pod.RunAsNonRoot ||
		*own.AllowPrivilegeEscalation || !*own.ReadOnlyRootFilesystem {
		t.Error("the container may do more than it needs")
	}
}

func TestCompose(t *testing.T) {
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  "../docker",
		ConfigFiles: []types.ConfigFile{{Filename: "../docker/compose.yaml"}},
		Environment: types.Mapping{},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gateway", "agent", "prometheus"} {
		service, err := project.GetService(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range service.Volumes {
			if v.Type == "bind" && !strings.HasSuffix(v.Source, "/tls") { // tls is for the operator to make
				if _, err := os.Stat(v.Source); err != nil {
					t.Errorf("%s mounts %v", name, err)
				}
			}
		}
	}
	gateway := project.Services["gateway"]
	if _, err := os.Stat(gateway.Build.Context + "/" + gateway.Build.Dockerfile); err != nil {
		t.Error(err)
	}
	if !gateway.ReadOnly || !slices.Contains(gateway.CapDrop, "ALL") {
		t.Error("the gateway may do more than it needs")
	}
}

// TestDockerfile parses the file as BuildKit does.
func TestDockerfile(t *testing.T) {
	parsed, err := parser.Parse(bytes.NewReader(read(t, "docker/Dockerfile")))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range parsed.Warnings {
		t.Errorf("warning: %s", w.Short)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	last := stages[len(stages)-1]
	if last.BaseName != "scratch" {
		t.Errorf("the image is based on %s", last.BaseName)
	}
	var user, probe string
	copied := make(map[string]bool)
	for _, command := range last.Commands {
		switch c := command.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.HealthCheckCommand:
			probe = strings.Join(c.Health.Test, " ")
		case *instructions.CopyCommand:
			if c.From != "" {
				break
			}
			for _, path := range c.SourcePaths {
				copied[path] = true
			}
		}
	}
	// A number, since an orchestrator that requires another user than root cannot look up a name.
	if user != "65532:65532" {
		t.Errorf("the image runs as %q", user)
	}
	if !strings.HasSuffix(probe, "/aip/health/live") {
		t.Errorf("the health check is %q", probe)
	}
	for path := range copied {
		if _, err := os.Stat("../../" + path); err != nil {
			t.Error(err)
		}
	}
}
