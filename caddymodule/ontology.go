// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// Ontology is an agent without an endpoint, as whose entities Partners are registered. It is registered by other means.
type Ontology struct {
	// The PEM file with its certificate for clients.
	Cert string `json:"cert"`

	// Its key.
	Key string `json:"key"`

	// The registry's place for entities. Default: the registry's URL.
	URL string `json:"url,omitempty"`
}

// ontologyOption reads the option.
func ontologyOption(p *conf.Parser, into **Ontology) func() {
	return func() {
		args := p.RemainingArgs()
		if len(args) < 2 || len(args) > 3 {
			p.Fail("ontology is written as: ontology <cert> <key> [<url>]")
			return
		}
		*into = &Ontology{Cert: args[0], Key: args[1], URL: strings.Join(args[2:], "")}
	}
}

// errNoEntities refuses entities at a registry of ACPs 2.1.
var errNoEntities = errors.New("ontology needs oidc, and so a registry of ACPs 2.2: one of ACPs 2.1 keeps no names " +
	"for the certificate of an entity, so that no Leader would accept it for the Partner's host")

// open reads the certificate. It returns the AIC in it, and the client that shows it to the registry.
func (o *Ontology) open(r *Registry) (aic string, at *registry.Client, err error) {
	pair, err := certfile.ReadPair(caddy.NewReplacer(), o.Cert, o.Key)
	if err != nil {
		return "", nil, fmt.Errorf("ontology: %w", err)
	}
	named, err := identity.FromCertificate(pair.Leaf)
	if err != nil {
		return "", nil, fmt.Errorf("ontology: %s: %s", o.Cert, doctor.Explained(err))
	}
	levels := strings.Split(string(named), ".")
	if len(levels) < 2 || strings.Trim(levels[len(levels)-2], "0") != "" {
		return "", nil, fmt.Errorf("ontology: the AIC %s in %s is of no ontology, whose instance is all zeros", named, o.Cert)
	}
	roots, err := certfile.ReadRoots(r.CA)
	if err != nil {
		return "", nil, err
	}
	url, err := conf.Replace(caddy.NewReplacer(), cmp.Or(o.URL, r.URL))
	if err != nil {
		return "", nil, fmt.Errorf("ontology: its URL %w", err)
	}
	at, err = registry.New(registry.Config{URL: url, Roots: node.PoolOf(roots),
		Certificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return certfile.ReadPair(caddy.NewReplacer(), o.Cert, o.Key)
		}})
	if err != nil {
		return "", nil, fmt.Errorf("ontology: %w", err)
	}
	return string(named), at, nil
}

// register registers the Partner, as an agent or, with an ontology, as an entity of it. The record may be there beside
// an error; without it nothing was sent.
func (g *Gateway) register(ctx context.Context, order *adminapi.RegistrationOrder) (*registry.Record, error) {
	what, err := g.order(ctx)
	if err != nil {
		return nil, err
	}
	o := g.app.Registry.Ontology
	if o == nil {
		what.NewVersion, what.Resubmit = order.NewVersion, order.Resubmit
		return g.app.account.Register(ctx, what)
	}
	aic, at, err := o.open(g.app.Registry)
	if err != nil {
		return nil, task.Errorf(task.UnsupportedOperation, "%v", err)
	}
	defer at.Close()
	return g.app.account.RegisterEntity(ctx, registry.Entity{Partner: what.Partner, ACS: what.ACS, Ontology: aic, At: at,
		NewVersion: order.NewVersion})
}
