// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/node"
)

// TestRootPool: the pool has the roots of its files, until it is cleaned up, and each new one is of the same process.
func TestRootPool(t *testing.T) {
	made, process := devpkitest.Make(t, devpki.Options{}), node.NewProcess(node.Host{})
	module := NewProcess(process, silent).RootPool()
	p := module.CaddyModule().New().(*RootPool)
	if err := p.Provision(caddy.Context{}); !errors.Is(err, errNoRoots) {
		t.Errorf("of no files, the error is %v", err)
	}
	if err := p.Cleanup(); err != nil {
		t.Error(err)
	}
	p.Files = []string{made.CA.Cert}
	if err := p.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	root := devpkitest.KeyPair(t, made.CA).Leaf
	if all := p.Certificates(); len(all) != 1 || !all[0].Equal(root) || p.CertPool() == nil {
		t.Errorf("the roots are %v", all)
	}
	if n := len(process.Roots.Health()); n != 1 {
		t.Errorf("the process has %d pools", n)
	}
	if err := p.Cleanup(); err != nil {
		t.Error(err)
	}
	if n := len(process.Roots.Health()); n != 0 {
		t.Errorf("after the clean-up, the process has %d pools", n)
	}
}

// TestRootPoolInCaddyfile: the pool takes files, and nothing else.
func TestRootPoolInCaddyfile(t *testing.T) {
	for text, want := range map[string]struct {
		files []string
		err   string
	}{
		"aip_file a.pem b.pem": {files: []string{"a.pem", "b.pem"}},
		"aip_file":             {err: errNoRoots.Error() + ", at Testfile:1"},
		"aip_file a.pem {\nroot\n}": {files: []string{"a.pem"},
			err: `aip_file has no block, but there is "root", at Testfile:2`},
	} {
		p, said := new(RootPool), ""
		if err := p.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text)); err != nil {
			said = err.Error()
		}
		if diff := cmp.Diff([]any{want.files, want.err}, []any{p.Files, said}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
