// SPDX-License-Identifier: Apache-2.0

package openapitest

import (
	"net/http"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	const agents = "/api/v1/agent/client"
	for name, tt := range map[string]struct {
		of                         func() *Interface
		method, target, kind, body string
		refused                    string // a part of the reason; empty for none
	}{
		"a list":             {Registry, "GET", agents + "?name=x&page_num=2&page_size=100&statuses=DRAFT", "", "", ""},
		"an unknown member":  {Registry, "GET", agents + "?name=x&include_all=true", "", "", "no parameter include_all"},
		"no number":          {Registry, "GET", agents + "?page_num=x", "", "", "page_num"},
		"too many":           {Registry, "GET", agents + "?page_size=101", "", "", "page_size"},
		"no such path":       {Registry, "GET", "/api/v1/agents", "", "", "no path"},
		"no such method":     {Registry, "PATCH", agents, "", "", "takes no PATCH"},
		"a path with a name": {Registry, "POST", agents + "/1/submit", "", "", ""},
		"a form": {Registry, "POST", "/api/v1/auth/login", "application/x-www-form-urlencoded",
			"username=a&password=b", ""},
		"a form that lacks a member": {Registry, "POST", "/api/v1/auth/login", "application/x-www-form-urlencoded",
			"username=a", "password"},
		"JSON in place of a form": {Registry, "POST", "/api/v1/auth/login", "application/json",
			`{"username":"a","password":"b"}`, "takes no application/json"},
		"no body":  {Registry, "POST", agents, "application/json", "", "EOF"},
		"not JSON": {Registry, "POST", agents, "application/json", "{", "EOF"},
		"a JWS": {CA, "POST", "/acps-atr-v2/acme/new-order", "application/jose+json",
			`{"protected":"a","payload":"b","signature":"c"}`, ""},
		"a JWS without a signature": {CA, "POST", "/acps-atr-v2/acme/new-order", "application/jose+json",
			`{"protected":"a","payload":"b"}`, "signature"},
		"a discovery": {Discovery, "POST", "/acps-adp-v2/discover", "application/json", `{"query":"x"}`, ""},
		"a discovery of too many": {Discovery, "POST", "/acps-adp-v2/discover", "application/json",
			`{"query":"x","limit":51}`, "limit"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequest(tt.method, "http://host"+tt.target, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", tt.kind)
			err = tt.of().Check(r, []byte(tt.body))
			if tt.refused == "" && err != nil || tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)) {
				t.Errorf("%v, want %q", err, tt.refused)
			}
		})
	}
}
