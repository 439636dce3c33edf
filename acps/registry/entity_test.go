// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
)

// entityOf returns the order for a Partner at a URL.
func entityOf(at *Client, url string) Entity {
	return Entity{Partner: url, Ontology: registrytest.Ontology, At: at, ACS: json.RawMessage(fmt.Sprintf(
		`{"name":"Echo","version":"1.0.0","endPoints":[{"url":%q,"transport":"JSONRPC","security":[{"mtls":[]}]}],
		"certificate":{"altNames":{"dns":["agent.example"]},"requestedValidity":90}}`, url))}
}

// TestEntity registers a Partner as an entity, at once and once, whatever request breaks off.
func TestEntity(t *testing.T) {
	const url = "https://agent.example/rpc"
	for _, fault := range []registrytest.Fault{registrytest.None, registrytest.Before, registrytest.After,
		registrytest.Half, registrytest.Bad} {
		for step := range 4 {
			r, s := registrytest.New(t), newMemory()
			r.KeepNames()
			n := 0
			r.Fail(func(string, string) registrytest.Fault {
				if n++; n-1 == step {
					return fault
				}
				return registrytest.None
			})
			var record *Record
			var err error
			for range 3 {
				if record, err = account(t, r, s).RegisterEntity(t.Context(), entityOf(open(t, r.URL), url)); err == nil {
					break
				}
			}
			r.Fail(nil)
			all := r.Entities()
			if err != nil || len(all) != 1 || record.AIC() != all[0] || record.Current.Status != Approved ||
				record.Current.Ontology != registrytest.Ontology {
				t.Errorf("fault %d at step %d: %v, %+v, %v", fault, step, all, record, err)
				continue
			}
			record, err = account(t, r, s).Poll(t.Context(), url, 0) // after a restart
			if err != nil || record.AIC() != all[0] || record.Current.Ontology != registrytest.Ontology {
				t.Errorf("it is asked again: %+v, %v", record, err)
			}
		}
	}
}

// TestEntityWithoutNames: if the registry keeps no names for the certificate, as one of ACPs 2.1 does, there is no
// entity, and the error has the reason. An earlier one is not deleted.
func TestEntityWithoutNames(t *testing.T) {
	r, s := registrytest.New(t), newMemory()
	a := account(t, r, s)
	record, err := a.RegisterEntity(t.Context(), entityOf(a.client, "https://agent.example/rpc"))
	if !errors.Is(err, ErrNoNames) || len(r.Entities()) != 0 || record.AIC() != "" {
		t.Errorf("got %v, %+v, %v", r.Entities(), record, err)
	}
	r.Fail(func(method, path string) registrytest.Fault { // the process dies before it looks
		if method == http.MethodGet {
			return registrytest.Before
		}
		return registrytest.None
	})
	_, _ = a.RegisterEntity(t.Context(), entityOf(a.client, "https://agent.example/rpc"))
	r.Fail(nil)
	_, err = a.RegisterEntity(t.Context(), entityOf(a.client, "https://agent.example/rpc"))
	if all := r.Entities(); !errors.Is(err, ErrNoNames) || len(all) != 1 || !strings.Contains(err.Error(), all[0]) {
		t.Errorf("got %v, %v", all, err)
	}
}

// TestEntityRefused: existing registrations of the Partner stay, and so do those of others.
func TestEntityRefused(t *testing.T) {
	r, s := registrytest.New(t), newMemory()
	r.KeepNames()
	a := account(t, r, s)
	must(t, a, order("1.0.0", "echoes"))
	entity := entityOf(a.client, "https://agent.example/rpc")
	entity.Partner = partner
	if _, err := a.RegisterEntity(t.Context(), entity); err == nil || !strings.Contains(err.Error(), "{AIC}") {
		t.Errorf("with a placeholder: %v", err)
	}
	o := order("1.0.0", "echoes")
	o.Partner = "https://agent.example/rpc"
	entity.Partner = o.Partner
	must(t, a, o)
	if _, err := a.RegisterEntity(t.Context(), entity); !errors.Is(err, ErrUnfinished) {
		t.Errorf("beside what waits: %v", err)
	}
	aic := r.Process("Echo", "1.0.0", true, "ok")
	if _, err := a.Poll(t.Context(), o.Partner, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := a.RegisterEntity(t.Context(), entity); !errors.Is(err, ErrNewVersion) {
		t.Errorf("beside an agent: %v", err)
	}
	entity.NewVersion = true
	record, err := a.RegisterEntity(t.Context(), entity)
	if err != nil || !slices.Equal(record.Former, []string{aic}) || !slices.Equal(r.Entities(), []string{record.AIC()}) {
		t.Errorf("as a new version: %+v, %v", record, err)
	}
	for name, acs := range map[string]string{"no JSON": `{`, "no names": `{"endPoints":[{"url":"https://a.example"}]}`} {
		entity.ACS = json.RawMessage(acs)
		if _, err := a.RegisterEntity(t.Context(), entity); err == nil {
			t.Errorf("%s is registered", name)
		}
	}
}

// TestEntityAtMount: an entity registered with the mount point for an endpoint stays, and is registered anew if a new
// version is ordered.
func TestEntityAtMount(t *testing.T) {
	r := registrytest.New(t)
	r.KeepNames()
	a := account(t, r, newMemory())
	const mount = "https://agent.example/one"
	record, err := a.RegisterEntity(t.Context(), entityOf(a.client, mount))
	if err != nil {
		t.Fatal(err)
	}
	aic := record.AIC()
	entity := entityOf(a.client, mount+"/rpc")
	entity.Partner = mount
	if record, err = a.RegisterEntity(t.Context(), entity); err != nil || record.AIC() != aic {
		t.Errorf("again: %+v, %v", record, err)
	}
	entity.NewVersion = true
	for range 2 { // the second time, there is nothing to do
		record, err = a.RegisterEntity(t.Context(), entity)
		if err != nil || !slices.Equal(record.Former, []string{aic}) || record.Current.Endpoint() != mount+"/rpc" {
			t.Errorf("anew: %+v, %v", record, err)
		}
	}
}

// TestEntityDisabled: an entity disabled by a person is found again after the record of it was lost.
func TestEntityDisabled(t *testing.T) {
	r := registrytest.New(t)
	r.KeepNames()
	a := account(t, r, newMemory())
	entity := entityOf(a.client, "https://agent.example/rpc")
	record, err := a.RegisterEntity(t.Context(), entity)
	if err != nil {
		t.Fatal(err)
	}
	aic := record.AIC()
	r.Disable(aic, "complaint")
	record, err = account(t, r, newMemory()).RegisterEntity(t.Context(), entity)
	if err != nil || record.AIC() != aic || record.Current.Status != Disabled || record.Current.Comments != "complaint" {
		t.Errorf("got %+v, %v", record, err)
	}
}

// TestEntityWithoutVersion reads the ACS of an entity made by a registry of ACPs 2.1: it has no protocolVersion.
func TestEntityWithoutVersion(t *testing.T) {
	r, s := registrytest.New(t), newMemory()
	r.KeepNames()
	a := account(t, r, s)
	record, err := a.RegisterEntity(t.Context(), entityOf(a.client, "https://agent.example/rpc"))
	if err != nil {
		t.Fatal(err)
	}
	acs, err := a.client.ACS(t.Context(), record.AIC())
	var doc map[string]any
	if err != nil || json.Unmarshal(acs, &doc) != nil || doc["aic"] != record.AIC() || doc["protocolVersion"] != nil {
		t.Errorf("the ACS is %s, %v", acs, err)
	}
	if eab, err := a.EAB(t.Context(), record.AIC()); err != nil || eab.KeyID == "" {
		t.Errorf("its credential is %+v, %v", eab, err)
	}
}
