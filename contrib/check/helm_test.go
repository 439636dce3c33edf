// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/santhosh-tekuri/jsonschema/v6"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// chartFiles are the files of the chart as its templates get them.
type chartFiles string

// Get returns a file, or nothing, as Helm does.
func (dir chartFiles) Get(name string) string {
	content, _ := os.ReadFile(filepath.Join(string(dir), name))
	return string(content)
}

// helmTemplate returns the files of a chart that `helm template` would make of values. Helm itself needs a client of
// Kubernetes, which takes longer to compile than all else here, so this does what it does: it puts the values upon
// those of the chart, holds them to the schema, and executes the templates with the functions of sprig and three of
// Helm. A chart with dependencies, or a function that is missing here, does not pass.
func helmTemplate(dir, release, values string) (map[string]string, error) {
	content := make(map[string]map[string]any)
	for _, name := range []string{"Chart.yaml", "values.yaml", "values.schema.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		var of map[string]any
		if err := yaml.UnmarshalStrict(text, &of); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		content[name] = of
	}
	chart, all := content["Chart.yaml"], content["values.yaml"]
	var given map[string]any
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		return nil, err
	}
	upon(all, given)
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("values.schema.json", content["values.schema.json"]); err != nil {
		return nil, err
	}
	schema, err := compiler.Compile("values.schema.json")
	if err != nil {
		return nil, err
	}
	if err := schema.Validate(all); err != nil {
		return nil, err
	}

	root := template.New(dir).Option("missingkey=error")
	functions := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv"} { // what Helm takes away
		delete(functions, name)
	}
	maps.Copy(functions, template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var out strings.Builder
			err := root.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
		"required": func(otherwise string, v any) (any, error) {
			if v == nil || v == "" {
				return nil, errors.New(otherwise)
			}
			return v, nil
		},
		"toYaml": func(v any) (string, error) {
			out, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(out), "\n"), err
		},
	})
	if _, err := root.Funcs(functions).ParseGlob(filepath.Join(dir, "templates", "*")); err != nil {
		return nil, err
	}
	data := map[string]any{
		"Values": all,
		"Chart": map[string]any{
			"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"],
		},
		"Release": map[string]any{"Name": release, "Namespace": "agents", "Service": "Helm"},
		"Files":   chartFiles(dir),
	}
	files := make(map[string]string)
	for _, of := range root.Templates() {
		if filepath.Ext(of.Name()) != ".yaml" {
			continue
		}
		var out strings.Builder
		if err := of.Execute(&out, data); err != nil {
			return nil, err
		}
		files[of.Name()] = out.String()
	}
	return files, nil
}

// upon puts values upon others: maps become one, and null removes.
func upon(values, given map[string]any) {
	for name, v := range given {
		under, isMap := values[name].(map[string]any)
		over, both := v.(map[string]any)
		switch {
		case v == nil:
			delete(values, name)
		case isMap && both:
			upon(under, over)
		default:
			values[name] = v
		}
	}
}

// rendered is what the chart makes of values.
type rendered struct {
	config           corev1.ConfigMap
	public, internal corev1.Service
	set              appsv1.StatefulSet
	budget           *policyv1.PodDisruptionBudget
}

// render decodes every object of the chart strictly.
func render(t *testing.T, values string) (*rendered, error) {
	t.Helper()
	files, err := helmTemplate("../helm", "travel", values)
	if err != nil {
		return nil, err
	}
	r := &rendered{}
	services := []*corev1.Service{&r.public, &r.internal}
	for name, text := range files {
		for _, document := range bytes.Split([]byte(text), []byte("\n---\n")) {
			var kind struct {
				Kind string `json:"kind"`
			}
			if err := yaml.Unmarshal(document, &kind); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			var object any
			switch kind.Kind {
			case "":
				continue
			case "ConfigMap":
				object = &r.config
			case "Service":
				object, services = services[0], services[1:]
			case "StatefulSet":
				object = &r.set
			case "PodDisruptionBudget":
				r.budget = &policyv1.PodDisruptionBudget{}
				object = r.budget
			default:
				t.Fatalf("%s has a %s", name, kind.Kind)
			}
			if err := yaml.UnmarshalStrict(append(document, '\n'), object); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
		}
	}
	return r, nil
}

// TestHelm renders the chart as it stands, with every value set, and for several gateways.
func TestHelm(t *testing.T) {
	t.Parallel()
	const several = "nats: {servers: [nats://a, nats://b, nats://c], monitors: ['http://a:8222'], replicas: 4}"
	for name, tc := range map[string]struct {
		values, caddyfile string
		replicas          int32
		claims            int
		env               []string // names and values
	}{
		"as it stands": {"", string(read(t, "Caddyfile")), 1, 1, []string{"AIP_HOST=agent.example.com", "AIP_AIC="}},
		"every value": {`{image: {repository: r, tag: t, pullSecrets: [{name: p}]}, host: h, aic: '1', agent: 'https://a',
			tlsSecret: s, caddyfile: "localhost {\n\trespond ok\n}\n", env: [{name: A, value: b}],
			store: {size: 1Gi, storageClass: fast}, service: {type: ClusterIP, port: 8443, annotations: {a: b}},
			resources: {}, nodeSelector: {a: b}, tolerations: [{key: k, operator: Exists}]}`,
			"localhost {\n\trespond ok\n}\n", 1, 1, []string{"AIP_HOST=h", "AIP_AIC=1", "AIP_AGENT=https://a", "A=b"}},
		"several gateways": {several, string(read(t, "Caddyfile.cluster")), 4, 0,
			[]string{"AIP_NATS=nats://a nats://b nats://c", "AIP_NATS_MONITOR=http://a:8222", "AIP_NATS_PASSWORD="}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := render(t, tc.values)
			if err != nil {
				t.Fatal(err)
			}
			fits(t, &r.public, &r.internal, &r.set)
			if got := r.config.Data["Caddyfile"]; got != tc.caddyfile {
				t.Errorf("the Caddyfile is\n%s", got)
			}
			if n := *r.set.Spec.Replicas; n != tc.replicas {
				t.Errorf("there are %d replicas, want %d", n, tc.replicas)
			}
			if n := len(r.set.Spec.VolumeClaimTemplates); n != tc.claims {
				t.Errorf("there are %d volumes for stores, want %d", n, tc.claims)
			}
			if (r.budget != nil) != (tc.replicas > 1) {
				t.Error("only several gateways have a budget of disruptions")
			}
			if name := r.set.Spec.Template.Spec.Volumes; name[len(name)-2].ConfigMap.Name != r.config.Name {
				t.Errorf("the pod mounts another Caddyfile than that of %s", r.config.Name)
			}
			var env []string
			for _, v := range r.set.Spec.Template.Spec.Containers[0].Env {
				env = append(env, v.Name+"="+v.Value)
			}
			text := "\n" + strings.Join(env, "\n") + "\n"
			for _, want := range tc.env {
				if !strings.Contains(text, "\n"+want+"\n") {
					t.Errorf("the pod does not have %s, but:%s", want, text)
				}
			}
		})
	}
}

// TestHelmRefuses holds that wrong values are refused before anything is installed.
func TestHelmRefuses(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"agents: http://a":               "agents",
		"agent: agent:9101":              "agent",
		"service: {type: External}":      "type",
		"nats: {servers: ['redis://a']}": "servers",
		"replicas: 3":                    "replicas",
		"nats: {servers: [nats://a]}":    "nats.monitors is empty",
	} {
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is answered with: %v", values, err)
		}
	}
}
