// SPDX-License-Identifier: Apache-2.0

package acps

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/node"
)

// Registry is a registry of ACPs 2, in which Partners are registered.
type Registry struct {
	// Its URL without a path: https, or http on this host. May hold {env.NAME}. Required.
	URL string `json:"url"`

	// The user at a registry of ACPs 2.1, the gateway's alone: each login ends other sessions. Either user or oidc is
	// required.
	User string `json:"user,omitempty"`

	// The password may hold placeholders, read at each login.
	Password string `json:"password,omitempty"`

	// The issuer for the user's login in a browser, at a registry of ACPs 2.2.
	Issuer string `json:"issuer,omitempty"`

	// The client. Default: registry-cli.
	ClientID string `json:"client_id,omitempty"`

	// Its secret. Default: none.
	ClientSecret string `json:"client_secret,omitempty"`

	// PEM files with the roots of the registry and the issuer. Default: the system's.
	CA []string `json:"ca,omitempty"`

	// How often the registry is asked about a waiting submission. Default: 1m.
	Poll caddy.Duration `json:"poll,omitempty"`

	// An ontology with the Partners as its entities, at a registry of ACPs 2.2. See docs/discovery.md#entities. Default:
	// none; each is an agent of its own.
	Ontology *Ontology `json:"ontology,omitempty"`
}

// RegistryOption returns what reads the option registry. Syntax:
//
//	registry <url> {
//		user     <name> <password>
//		oidc     <issuer> [<client_id> [<client_secret>]]
//		ca       <file>...
//		poll     <duration>
//		ontology <cert> <key> [<url>]
//	}
func RegistryOption(p *conf.Parser, into **Registry) func() {
	return func() {
		r := new(Registry)
		*into = r
		p.Word(&r.URL)()
		p.Block("registry", conf.Options{
			"user": p.Pair("a name and a password", func(name, password string) { r.User, r.Password = name, password }),
			"oidc": func() {
				args := p.RemainingArgs()
				if len(args) < 1 || len(args) > 3 {
					p.Fail("oidc is written as: oidc <issuer> [<client_id> [<client_secret>]]")
					return
				}
				for i, into := range []*string{&r.Issuer, &r.ClientID, &r.ClientSecret}[:len(args)] {
					*into = args[i]
				}
			},
			"ca":   p.Words(&r.CA),
			"poll": p.Duration(&r.Poll),

			"ontology": ontologyOption(p, &r.Ontology),
		})
	}
}

const (
	defaultPoll   = time.Minute
	minPoll       = time.Second
	defaultClient = "registry-cli" // that of the reference
)

// Account returns the account at the registry; nil without the option. What it keeps is in a storage, which may be nil
// where only the settings are checked.
func (r *Registry) Account(s registry.Storage) (*registry.Account, error) {
	if r == nil {
		return nil, nil
	}
	conf.OrDefault(&r.Poll, caddy.Duration(defaultPoll))
	conf.OrDefault(&r.ClientID, defaultClient)
	a, err := r.open(s)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	return a, nil
}

func (r *Registry) open(s registry.Storage) (*registry.Account, error) {
	switch {
	case r.User == "" && r.Issuer == "":
		return nil, errors.New("it needs user, for a registry of ACPs 2.1, or oidc, for one of 2.2")
	case r.User != "" && r.Issuer != "":
		return nil, errors.New("use user, for a registry of ACPs 2.1, or oidc, for one of 2.2, not both")
	case r.User != "" && r.Password == "":
		return nil, errors.New("user needs a password")
	case r.User == "" && r.Password != "":
		return nil, errors.New("password belongs to user, which is not set")
	case r.Issuer == "" && (r.ClientID != defaultClient || r.ClientSecret != ""):
		return nil, errors.New("client_id and client_secret belong to issuer, which is not set")
	case r.Ontology != nil && r.Issuer == "":
		return nil, errNoEntities
	case time.Duration(r.Poll) < minPoll:
		return nil, fmt.Errorf("poll is %s, but must be %s or more", time.Duration(r.Poll), minPoll)
	}
	if r.Ontology != nil {
		if _, _, err := r.Ontology.Open(r); err != nil {
			return nil, err
		}
	}
	certificates, err := certfile.ReadRoots(r.CA)
	if err != nil {
		return nil, err
	}
	roots := node.PoolOf(certificates)
	repl := caddy.NewReplacer()
	server, err := r.server()
	if err != nil {
		return nil, err
	}
	client, err := registry.New(registry.Config{URL: server.URL, Roots: roots})
	if err != nil {
		return nil, err
	}
	for name, secret := range map[string]string{"user": r.Password, "oidc": r.ClientSecret} {
		if _, err := conf.Replace(repl, secret); err != nil {
			return nil, fmt.Errorf("%s %w", name, err)
		}
	}
	if r.Issuer == "" {
		return registry.NewAccount(client, &registry.Password{Client: client, User: r.User,
			Secret: readSecret(r.Password)}, s), nil
	}
	provider, err := registry.New(registry.Config{URL: r.Issuer, Roots: roots})
	if err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	device := &registry.Device{Provider: provider, ClientID: r.ClientID}
	if r.ClientSecret != "" {
		device.Secret = readSecret(r.ClientSecret)
	}
	return registry.NewAccount(client, device, s), nil
}

// server returns the registry as one that is asked where agents are.
func (r *Registry) server() (s FindServer, err error) {
	s = FindServer{CA: r.CA}
	if s.URL, err = conf.Replace(caddy.NewReplacer(), r.URL); err != nil {
		return s, fmt.Errorf("its URL %w", err)
	}
	return s, nil
}

// Feed returns the feed of the registry, one of those of all configurations.
func (r *Registry) Feed(of *node.Feeds, log *slog.Logger) (*node.Feed, error) {
	s, err := r.server()
	if err != nil {
		return nil, err
	}
	roots, err := certfile.ReadRoots(s.CA)
	if err != nil {
		return nil, err
	}
	return of.Use(strings.TrimRight(s.URL, "/"), roots, log)
}

// readSecret returns what reads a secret anew, whose file may have changed.
func readSecret(setting string) func() (string, error) {
	return func() (string, error) {
		secret, err := conf.Replace(caddy.NewReplacer(), setting)
		if err != nil {
			return "", fmt.Errorf("registry: a secret %w", err)
		}
		return strings.TrimRight(secret, "\r\n"), nil
	}
}

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

// Open reads the certificate. It returns the AIC in it, and the client that shows it to the registry.
func (o *Ontology) Open(r *Registry) (aic string, at *registry.Client, err error) {
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
