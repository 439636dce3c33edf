// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/proof"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// TestSettings: the settings are named as in the JSON, read as in a Caddyfile, and show no secret.
func TestSettings(t *testing.T) {
	g := &Gateway{Name: "planner", Callers: []string{"aip", "a2a"}, Group: &Group{TokenKey: "hex of a key"}}
	g.Agent.Dialect, g.Agent.Timeout = "a2a", caddy.Duration(90*time.Second)
	g.Agent.RetryFor = new(caddy.Duration(0))
	g.Agent.HeaderUp = http.Header{"X-One": {"{env.ONE}"}, "X-Two": {"Bearer two-secret", "a {env.TWO} b-secret"}}
	g.Identity.JWT = []proof.JWT{{Issuer: "https://one.example"},
		{Issuer: "https://two.example", Audience: []string{"a", "b"}}}
	g.Agent.Caller.Headers = true
	got := g.settings()
	want := []adminapi.Setting{
		{Name: "agent.dialect", Value: "a2a"},
		{Name: "agent.header_up.X-One", Value: "{env.ONE}", Secret: true},
		{Name: "agent.header_up.X-Two", Value: "*** *** {env.TWO}", Secret: true},
		{Name: "agent.caller.headers", Value: "true"},
		{Name: "agent.timeout", Value: "1m30s"},
		{Name: "agent.retry_for", Value: "0s"},
		{Name: "name", Value: "planner"},
		{Name: "callers", Value: "aip a2a"},
		{Name: "identity.jwt[0].issuer", Value: "https://one.example"},
		{Name: "identity.jwt[1].issuer", Value: "https://two.example"},
		{Name: "identity.jwt[1].audience", Value: "a b"},
		{Name: "group.token_key", Value: "***", Secret: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// harmless are the settings whose names speak of something secret, and that hold none.
var harmless = regexp.MustCompile(`(^|\.)(tls|decide)\.key$|^identity\.keys\.(file|header)$`)

// TestSecretSettings: whoever adds a setting that may hold a secret says whether it does.
func TestSecretSettings(t *testing.T) {
	suspect := regexp.MustCompile(`key|token|secret|password|credential|header_up|auth`)
	var names []string
	var walk func(reflect.Type, string)
	walk = func(of reflect.Type, name string) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(of.Elem(), name)
		case reflect.Struct:
			for f := range of.Fields() {
				switch tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
				case f.Anonymous:
					walk(f.Type, name)
				case tag != "" && f.IsExported():
					walk(f.Type, strings.TrimPrefix(name+"."+tag, "."))
				}
			}
		default:
			names = append(names, name)
		}
	}
	walk(reflect.TypeFor[Gateway](), "")
	if len(names) < 80 {
		t.Errorf("only %d settings were found", len(names))
	}
	for _, name := range names {
		if suspect.MatchString(name) && !harmless.MatchString(name) && !slices.Contains(secretSettings, name) {
			t.Errorf("is %s a secret? Then it belongs to secretSettings", name)
		}
	}
	for _, name := range secretSettings {
		if !slices.Contains(names, name) {
			t.Errorf("there is no setting %s", name)
		}
	}
}
