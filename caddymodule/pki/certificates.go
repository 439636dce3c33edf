// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// Certificates has the gateway obtain the certificates of its Partners from the certificate authority of ACPs, and
// renew them. Sites show them by get_certificate aip, and connections to agents and brokers by client_cert aip. They
// are in Caddy's storage, and gateways that share it share them.
type Certificates struct {
	// The URL of its ACME directory, such as https://ca.example/acps-atr-v2/acme/directory: https, or http on this host.
	// Required.
	Directory string `json:"directory,omitempty"`

	// PEM files with the roots of the authority's server. Default: the system's.
	CA []string `json:"ca,omitempty"`

	// Credentials for the accounts of Partners: the JSON from the registry, mostly as {file./etc/caddy/eab.json}. Looked
	// up without a reload. Default: from the option registry.
	EAB []string `json:"eab,omitempty"`

	// The operator's addresses for the authority. Default: none.
	Contact []string `json:"contact,omitempty"`

	// The Partners with certificates. Default: all with an AIC.
	Partners []string `json:"partners,omitempty"`

	// A file for the roots of agents, written each hour, for trust_pool aip_file. Default: none.
	TrustBundle string `json:"trust_bundle,omitempty"`

	storage agentca.Storage
	client  *agentca.Client
	status  *revocation.Checker // asks the authority whether certificates are revoked; nil before start
	feed    *node.Feed          // of the registry of the app's option registry; nil for none

	keepers atomic.Pointer[map[string]*agentca.Keeper] // by AIC; nil before start
}

// CertificatesOption returns what reads the option. Syntax:
//
//	certificates <directory> {
//		ca           <file>...
//		eab          <credential>...
//		contact      <address>...
//		partners     <AIC>...
//		trust_bundle <file>
//	}
func CertificatesOption(p *conf.Parser, into **Certificates) func() {
	return func() {
		c := new(Certificates)
		*into = c
		p.Word(&c.Directory)()
		p.Block("certificates", conf.Options{
			"ca":           p.Words(&c.CA),
			"eab":          p.Words(&c.EAB),
			"contact":      p.Words(&c.Contact),
			"partners":     p.Words(&c.Partners),
			"trust_bundle": p.Word(&c.TrustBundle),
		})
	}
}

// Provision checks the settings, and asks nothing. follow returns the feed of the app's option registry; nil for none.
func (c *Certificates) Provision(storage agentca.Storage, follow func() (*node.Feed, error)) (err error) {
	if c == nil {
		return nil
	}
	if follow != nil {
		if c.feed, err = follow(); err != nil {
			return fmt.Errorf("certificates: %w", err)
		}
	}
	if _, err := registry.CheckURL(c.Directory); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	for i, aic := range c.Partners {
		parsed, err := identity.ParseAIC(aic)
		if err != nil {
			return fmt.Errorf("certificates: partners: %q: %w", aic, err)
		}
		c.Partners[i] = string(parsed)
	}
	if c.TrustBundle != "" && !strings.HasSuffix(c.Directory, "/acme/directory") {
		return errors.New("certificates: trust_bundle is for an authority of ACPs, whose directory is <url>/acme/directory")
	}
	roots, err := certfile.ReadPool(caddy.NewReplacer(), c.CA)
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	c.storage = storage
	c.client = &agentca.Client{Directory: c.Directory, HTTP: agentca.NewHTTP(&http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 16 << 10, // requests are rare
	})}
	if roots == nil {
		if roots, err = x509.SystemCertPool(); err != nil {
			return fmt.Errorf("certificates: the roots of the system: %w", err)
		}
	}
	authority, err := url.Parse(c.Directory)
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	authority.Path = ""
	c.status, err = revocation.New(revocation.Config{Log: slog.New(slog.DiscardHandler), Agent: AgentOf,
		Sources: []revocation.Source{{Kind: revocation.ACPS, Location: authority.String()}}, Roots: roots})
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	return nil
}

// Start reads the certificates of the Partners with some AICs, so that they are shown: Work looks after them. others
// know of revoked certificates, too. account is that at the registry; nil for none.
func (c *Certificates) Start(aics []string, others []*revocation.Checker, account RegistryAccount, log *slog.Logger) {
	if c == nil {
		return
	}
	c.status.Start()
	keepers := make(map[string]*agentca.Keeper)
	for aic := range c.obtained(aics) {
		config := agentca.Config{AIC: string(aic), Client: c.client, Storage: c.storage, Log: log,
			EAB: func(ctx context.Context) (agentca.EAB, error) { return c.Credential(ctx, string(aic), account) },
			Revoked: func(ctx context.Context, chain []*x509.Certificate) (bool, error) {
				return c.revoked(ctx, chain, others)
			}}
		if account != nil {
			config.Inactive = func(ctx context.Context) bool {
				_, err := account.Client().ACS(ctx, string(aic))
				return registry.Is(err, registry.Inactive)
			}
		}
		for _, to := range c.Contact {
			if !strings.Contains(to, ":") {
				to = "mailto:" + to
			}
			config.Contact = append(config.Contact, to)
		}
		if aic.Form() == identity.FormV1 {
			config.Challenges = c.storage
		}
		k := agentca.New(config)
		if err := k.Load(context.Background()); err != nil {
			log.Error("the certificates of the agent cannot be read from the storage", "aic", aic, "error", err)
		}
		keepers[string(aic)] = k
	}
	c.keepers.Store(&keepers)
}

// Work obtains and renews the certificates until ctx ends, and returns between two steps. What is there goes on to be
// served. Start has returned.
func (c *Certificates) Work(ctx context.Context, log *slog.Logger) {
	if c == nil {
		return
	}
	keepers := *c.keepers.Load()
	var work sync.WaitGroup
	for _, k := range keepers {
		k.Start()
	}
	if c.TrustBundle != "" {
		work.Go(func() { c.followBundle(ctx, log) })
	}
	if c.feed != nil {
		c.feed.Start()
		work.Go(func() { c.followRegistry(ctx, keepers) })
	}
	<-ctx.Done()
	for _, k := range keepers {
		k.Close()
	}
	work.Wait()
}

// obtained yields each of some AICs whose certificates are obtained, once.
func (c *Certificates) obtained(aics []string) iter.Seq[identity.AIC] {
	return func(yield func(identity.AIC) bool) {
		seen := make(map[identity.AIC]bool)
		for _, s := range aics {
			aic, err := identity.ParseAIC(s)
			if err != nil || seen[aic] || !c.Obtains(string(aic)) {
				continue
			}
			if seen[aic] = true; !yield(aic) {
				return
			}
		}
	}
}

// Load reads the certificates of Partners with some AICs from the storage, and has connections show them. It asks
// nothing. found is called for each Partner, with the error if they cannot be read.
func (c *Certificates) Load(ctx context.Context, aics []string, found func(*agentca.Keeper, error)) {
	keepers := make(map[string]*agentca.Keeper)
	for aic := range c.obtained(aics) {
		k := agentca.New(agentca.Config{AIC: string(aic), Client: c.client, Storage: c.storage,
			Log: slog.New(slog.DiscardHandler)})
		err := k.Load(ctx)
		if err == nil {
			keepers[k.AIC] = k
		}
		found(k, err)
	}
	c.keepers.Store(&keepers)
}

// Obtains reports whether the certificates of an agent are obtained.
func (c *Certificates) Obtains(aic string) bool {
	return c != nil && aic != "" && (len(c.Partners) == 0 || slices.Contains(c.Partners, aic))
}

// Close ends what provision has begun.
func (c *Certificates) Close() {
	if c != nil && c.status != nil {
		c.status.Close()
	}
	if c != nil && c.feed != nil {
		c.feed.Leave()
		c.feed = nil
	}
}

// Credential returns the EAB of an agent. Its errors quote none.
func (c *Certificates) Credential(ctx context.Context, aic string, account RegistryAccount) (agentca.EAB, error) {
	var err error
	for _, text := range c.EAB {
		text, bad := conf.Replace(caddy.NewReplacer(), text)
		if bad != nil {
			err = fmt.Errorf("eab %w", bad)
			continue
		}
		eab, bad := agentca.ReadEAB([]byte(text))
		switch {
		case bad != nil:
			err = bad
		case eab.AIC == aic || eab.AIC == "":
			return eab, nil
		}
	}
	switch {
	case err != nil:
		return agentca.EAB{}, err
	case account == nil:
		return agentca.EAB{}, errors.New("no eab in certificates is for this agent, and there is no option registry")
	}
	given, err := account.EAB(ctx, aic)
	if err != nil {
		return agentca.EAB{}, fmt.Errorf("the registry gives no credential: %w", err)
	}
	body, err := json.Marshal(given)
	if err != nil {
		return agentca.EAB{}, err
	}
	return agentca.ReadEAB(body)
}

// RegistryAccount gives the credential for an account at the authority, and the client of the registry. A
// *registry.Account is one.
type RegistryAccount interface {
	EAB(ctx context.Context, aic string) (*registry.EAB, error)
	Client() *registry.Client
}

// revoked reports whether a certificate is revoked: by what its authority says, or a source of the app's option
// revocation.
func (c *Certificates) revoked(
	ctx context.Context, chain []*x509.Certificate, others []*revocation.Checker,
) (bool, error) {
	var err error
	for _, checker := range append([]*revocation.Checker{c.status}, others...) {
		bad := checker.Check(ctx, chain, nil)
		if refusal, is := errors.AsType[*revocation.Refusal](bad); is && refusal.Reason == revocation.Revoked {
			return true, nil
		}
		err = cmp.Or(err, bad)
	}
	return false, err
}

// All returns the Keepers, in the order of their AICs.
func (c *Certificates) All() (all []*agentca.Keeper) {
	if c == nil || c.keepers.Load() == nil {
		return nil
	}
	keepers := *c.keepers.Load()
	for _, k := range keepers {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *agentca.Keeper) int { return strings.Compare(a.AIC, b.AIC) })
	return all
}

// Of returns the Keeper of an agent; nil for none.
func (c *Certificates) Of(aic string) *agentca.Keeper {
	parsed, err := identity.ParseAIC(aic)
	if err != nil || c == nil || c.keepers.Load() == nil {
		return nil
	}
	return (*c.keepers.Load())[string(parsed)]
}

// ClientCert returns the certificate that a Partner shows as a client.
func (c *Certificates) ClientCert(aic string) (*tls.Certificate, error) {
	k := c.Of(aic)
	switch {
	case aic == "":
		return nil, errors.New("the registry has assigned no AIC to the Partner yet")
	case k == nil:
		return nil, fmt.Errorf("no certificate is obtained for %s", aic)
	}
	if pair := k.Certificate(agentca.ClientAuth); pair != nil {
		return pair, nil
	}
	if k.Status().Retired {
		return nil, fmt.Errorf("the certificates of %s were retired; run caddy aip certificates renew %[1]s", aic)
	}
	return nil, fmt.Errorf("there is no certificate of %s yet; see caddy aip certificates list", aic)
}

// followRegistry has the certificates of an agent looked after at once when the registry has disabled it, which revokes
// them, and when it has enabled it again.
func (c *Certificates) followRegistry(ctx context.Context, keepers map[string]*agentca.Keeper) {
	active := make(map[string]bool)
	for {
		changed := c.feed.Changed()
		for aic, k := range keepers {
			now := c.feed.Agent(aic)
			if was, is := active[aic]; now.Known && is && was != now.Active {
				k.Wake()
			}
			if now.Known {
				active[aic] = now.Active
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}
