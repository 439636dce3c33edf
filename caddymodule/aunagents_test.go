// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/x509"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
)

// TestAgentCerts: the certificates of agents lead to the roots, each of an AID of its own.
func TestAgentCerts(t *testing.T) {
	s := newAUNSite(t)
	dir := filepath.Join(s.dir, "..")
	foreign, err := aunpeer.NewPKI("aid.test")
	if err != nil {
		t.Fatal(err)
	}
	for name, pki := range map[string]*aunpeer.PKI{"reviewer": s.pki, "writer": s.pki, "stranger": foreign} {
		id, err := pki.Issue(name + ".aid.test")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".pem"), []byte(id.ChainPEM()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ended, err := s.pki.Issue("ended.aid.test", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "ended.pem"), []byte(ended.ChainPEM()), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		files []string
		want  string // a part of the error, or the AIDs
	}{
		{[]string{"writer.pem", "reviewer.pem"}, "reviewer.aid.test writer.aid.test"},
		{[]string{"ended.pem", "writer.pem"}, "writer.aid.test"}, // an end refuses no configuration
		{[]string{"gateway.pem"}, "agent_cert: FILE: it is that of gateway.aid.test, the gateway's own AID"},
		{[]string{"writer.pem", "writer.pem"}, "agent_cert: FILE: another file has a certificate of writer.aid.test"},
		{[]string{"stranger.pem"}, "agent_cert: FILE: The certificate is not accepted: certificate signed by"},
		{[]string{"roots.pem"}, "agent_cert: FILE: The certificate"},
		{[]string{"none.pem"}, "agent_cert: FILE: "},
	} {
		a := &AUN{Cert: filepath.Join(dir, "gateway.pem"), Roots: []string{filepath.Join(dir, "roots.pem")}}
		for _, name := range tt.files {
			a.AgentCerts = append(a.AgentCerts, filepath.Join(dir, name))
		}
		got := ""
		if err := a.provision(); err != nil {
			got = strings.ReplaceAll(err.Error(), a.AgentCerts[len(tt.files)-1], "FILE")
		} else {
			for _, aid := range slices.Sorted(maps.Keys(a.agents)) {
				if chain := a.agents[aid]; aun.AID(chain[0].Subject.CommonName) != aid {
					t.Errorf("%s has the certificate of %s", aid, chain[0].Subject)
				}
				got += string(aid) + " "
			}
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%v: %s, want %s", tt.files, got, tt.want)
		}
	}
}
