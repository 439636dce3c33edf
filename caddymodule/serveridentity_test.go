// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/agents"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// TestServerIdentity: connections to agents and to brokers are made to the server that is meant, and an error says what
// to change.
func TestServerIdentity(t *testing.T) {
	made := devpkitest.Make(t, devpki.Options{})
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{devpkitest.KeyPair(t, made.Server)}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that fail on purpose
	server.StartTLS()
	defer server.Close()
	aic, other := string(made.Server.AIC), string(made.Leader.AIC)
	ca := []string{made.CA.Cert}
	for _, tt := range []struct {
		meant pki.ServerIdentity
		name  string // of the server
		want  string // of the advice; empty for a connection
	}{
		{pki.ServerIdentity{AIC: []string{aic}}, "elsewhere.example", ""},
		{pki.ServerIdentity{AIC: []string{other, strings.ToLower(aic)}}, "elsewhere.example", ""},
		{pki.ServerIdentity{AIC: []string{aic}, Verify: "both"}, "localhost", ""},
		{pki.ServerIdentity{Verify: "name"}, "localhost", ""},
		{pki.ServerIdentity{AIC: []string{other}}, "localhost", "check aic in the tls of "},
	} {
		agent := agents.TLS{CA: ca, ServerName: tt.name, ServerIdentity: tt.meant}
		toAgent, err := agent.Config(caddy.NewReplacer(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		brokers := GroupTLS{CA: ca, ServerIdentity: tt.meant}
		toBroker, err := brokers.config(caddy.NewReplacer(), nil)
		if err != nil {
			t.Fatal(err)
		}
		toBroker.ServerName = tt.name
		for block, config := range map[string]*tls.Config{"agent": toAgent, "group": toBroker} {
			conn, err := tls.Dial("tcp", server.Listener.Addr().String(), config)
			if err == nil {
				conn.Close()
			}
			if (err == nil) != (tt.want == "") {
				t.Errorf("%s, %+v: %v", block, tt, err)
			}
			if tt.want == "" || err == nil {
				continue
			}
			if _, ok := errors.AsType[*identity.OtherServerError](err); !ok {
				t.Errorf("%s: another error: %v", block, err)
			}
			if got := doctor.AdviceOnServer(err, block); !strings.HasPrefix(got, tt.want+block) {
				t.Errorf("%s: the advice is %q", block, got)
			}
			ofAgent := httptransport.DialFailed(err, "the agent cannot be reached")
			if got := doctor.Advice(ofAgent); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s: of an agent the advice is %q", block, got)
			}
		}
	}
}
