// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/node"
)

// RootPool is a trust_pool of client_auth. A root taken out of its file counts no more within a minute: handshakes,
// calls and streams under it end. A new root needs a reload.
type RootPool struct {
	// PEM files with CAs.
	Files []string `json:"pem_files,omitempty"`

	process *Process
	pool    *node.Pool // nil before Provision
}

// RootPool returns the module. It needs no app, so it is registered with what it shares with all configurations.
func (p *Process) RootPool() *RootPool { return &RootPool{process: p} }

// CaddyModule returns the Caddy module information.
func (p *RootPool) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "tls.ca_pool.source.aip_file",
		New: func() caddy.Module { return p.process.RootPool() }}
}

// errNoRoots refuses a pool by which no certificate could be verified.
var errNoRoots = errors.New("aip_file needs at least one PEM file with the certificates of CAs")

// Provision reads the files.
func (p *RootPool) Provision(caddy.Context) error {
	if len(p.Files) == 0 {
		return errNoRoots
	}
	var err error
	if p.pool, err = p.process.node.Roots.Use(p.Files, certfile.Read); err != nil {
		return fmt.Errorf("aip_file: %w", err)
	}
	return nil
}

// Cleanup ends the use of the pool. Connections that were verified by it may be open for longer.
func (p *RootPool) Cleanup() error {
	if p.pool != nil {
		p.pool.Leave()
	}
	return nil
}

// CertPool implements caddytls.CA.
func (p *RootPool) CertPool() *x509.CertPool { return p.pool.CertPool() }

// Certificates implements caddytls.CertificateProvider.
func (p *RootPool) Certificates() []*x509.Certificate { return p.pool.Certificates() }

// UnmarshalCaddyfile sets up the pool from a Caddyfile. Syntax:
//
//	trust_pool aip_file <file>...
func (p *RootPool) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if p.Files = d.RemainingArgs(); len(p.Files) == 0 {
		return d.WrapErr(errNoRoots)
	}
	if d.NextBlock(d.Nesting()) {
		return d.Errf("aip_file has no block, but there is %q", d.Val())
	}
	return nil
}

// Interface guards.
var (
	_ caddy.Provisioner            = (*RootPool)(nil)
	_ caddy.CleanerUpper           = (*RootPool)(nil)
	_ caddytls.CA                  = (*RootPool)(nil)
	_ caddytls.CertificateProvider = (*RootPool)(nil)
	_ caddyfile.Unmarshaler        = (*RootPool)(nil)
)
