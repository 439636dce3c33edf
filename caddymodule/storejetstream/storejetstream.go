// SPDX-License-Identifier: Apache-2.0

package storejetstream

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/operator"
	"github.com/aip-gateway/aip-gateway/replay"
)

func init() { caddy.RegisterModule(new(Store)) }

// Store keeps tasks on NATS servers with JetStream (2.15 or later), shared by any number of gateways: see
// docs/cluster.md. All gateways of one prefix have the same settings, except node; max_size is divided among the
// shards. A change of the settings in this section needs a restart.
type Store struct {
	// The servers, nats://host[:port] or tls://; one names the others. May hold {env.NAME}. Required.
	URLs []string `json:"urls,omitempty"`

	// The gateway's user.
	User string `json:"user,omitempty"`

	// Its password. May hold placeholders, read at each connection; never logged. Default: none.
	Password string `json:"password,omitempty"`

	// The gateway's token, likewise. Default: none.
	Token string `json:"token,omitempty"`

	// The file with the seed of its NKey, read at each connection. Default: none.
	NKey string `json:"nkey,omitempty"`

	// The file with its JWT and the seed of its key, read at each connection. Default: none.
	Credentials string `json:"credentials,omitempty"`

	// TLS to the servers. With any setting, a server without TLS is refused.
	TLS NATSTLS `json:"tls,omitzero"`

	// The monitoring endpoints of all servers, http://host:8222: a server without synced writes, or too old, is refused
	// there. Default: none; a line asks for it.
	Monitor []string `json:"monitor,omitempty"`

	// The name of this gateway, its own for ever: letters, digits, - and _. Default: the name of the host.
	Node string `json:"node,omitempty"`

	// Silence of a gateway before others take its tasks over, 1s to 1m. Default: 3s.
	Lease caddy.Duration `json:"lease,omitempty"`

	// Streams for the tasks, more than gateways; at most 1024, for ever. See docs/cluster.md#how-many. Default: 16.
	Shards int `json:"shards,omitempty"`

	// Servers with each stream: 3 or 5. Default: 3.
	Replicas int `json:"replicas,omitempty"`

	// Replicas may be 1, for a test. Default: false.
	AllowSingleReplica bool `json:"allow_single_replica,omitempty"`

	// The beginning of the streams' names, common to gateways with common tasks. Default: aip.
	Prefix string `json:"prefix,omitempty"`

	store.Limits
}

// NATSTLS holds the certificates of NATS servers and of the gateway as their client.
type NATSTLS struct {
	// PEM files with the roots of the servers, read at load. Default: the system's.
	CA []string `json:"ca,omitempty"`

	// PEM files with the client certificate and its key, read at each connection.
	Cert string `json:"cert,omitempty"`

	// Default: none.
	Key string `json:"key,omitempty"`

	// The name in the servers' certificates. Default: the host of each URL.
	ServerName string `json:"server_name,omitempty"`
}

// The bounds of the settings, and their defaults.
const (
	defaultShards   = 16
	mostShards      = 1024
	defaultReplicas = 3
	defaultLease    = 3 * time.Second
	shortestLease   = time.Second
	longestLease    = time.Minute
	defaultPrefix   = "aip"
)

var (
	nodeName     = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	streamPrefix = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
	// notInNodeName are the characters of names of hosts, or others, that names of nodes have not.
	notInNodeName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
)

// CaddyModule returns the Caddy module information.
func (*Store) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: store.Namespace + ".jetstream", New: func() caddy.Module { return new(Store) }}
}

// Provision sets defaults.
func (s *Store) Provision(ctx caddy.Context) error {
	repl := caddy.NewReplacer()
	type setting struct {
		name  string
		value *string
	}
	settings := []setting{{"node", &s.Node}, {"prefix", &s.Prefix}}
	for i := range s.URLs {
		settings = append(settings, setting{"the URL of a server", &s.URLs[i]})
	}
	for i := range s.Monitor {
		settings = append(settings, setting{"monitor: a URL", &s.Monitor[i]})
	}
	for _, replaced := range settings {
		value, err := conf.Replace(repl, *replaced.value)
		if err != nil {
			return fmt.Errorf("store: %s %w", replaced.name, err)
		}
		*replaced.value = value
	}
	if s.Node == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("store: this host has no name (%w); name this gateway with node", err)
		}
		s.Node = notInNodeName.ReplaceAllString(host, "-")
	}
	conf.OrDefault(&s.Prefix, defaultPrefix)
	s.fillNumbers()
	return s.Limits.Provision(ctx)
}

func (s *Store) fillNumbers() {
	conf.OrDefault(&s.Lease, caddy.Duration(defaultLease))
	conf.OrDefault(&s.Shards, defaultShards)
	conf.OrDefault(&s.Replicas, defaultReplicas)
}

// CheckWritten checks what has no placeholders.
func (s *Store) CheckWritten() error {
	c := *s
	c.fillNumbers()
	return cmp.Or(c.checkNumbers(), c.Limits.CheckWritten())
}

func (s *Store) checkNumbers() error {
	switch lease := time.Duration(s.Lease); {
	case lease < shortestLease || lease > longestLease:
		return fmt.Errorf("store: lease is %s, but must be %s to %s", lease, shortestLease, longestLease)
	case s.Shards < 1 || s.Shards > mostShards:
		return fmt.Errorf("store: shards is %d, but must be 1 to %d", s.Shards, mostShards)
	case s.Replicas == 1 && !s.AllowSingleReplica:
		return errors.New("store: with one replica, the loss of a server is the loss of tasks; use replicas 3, " +
			"or accept that with allow_single_replica")
	case !slices.Contains([]int{1, 3, 5}, s.Replicas):
		return fmt.Errorf("store: replicas is %d, but must be 3 or 5: an even number bears the loss of no more servers "+
			"than the odd one below it", s.Replicas)
	}
	return nil
}

// Validate checks the settings, and reads the files that they name. It asks no server.
func (s *Store) Validate() error {
	if len(s.URLs) == 0 {
		return errors.New("store: no server is named; write store jetstream nats://host, with the URLs of all servers")
	}
	for _, at := range s.URLs {
		if err := checkNATSURL(at); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	for _, at := range s.Monitor {
		if strings.Contains(at, "@") {
			return errors.New("store: monitor: a URL holds credentials, which logs would show; take them out")
		}
		if u, err := url.Parse(at); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("store: monitor: %q is no http or https URL; write that of the server's monitoring, "+
				"such as http://host:8222", at)
		}
	}
	if err := s.checkNumbers(); err != nil {
		return err
	}
	switch {
	case !nodeName.MatchString(s.Node):
		return fmt.Errorf("store: node is %q, but must be 1 to 64 letters, digits, - and _", s.Node)
	case !streamPrefix.MatchString(s.Prefix):
		return fmt.Errorf("store: prefix is %q, but must be 1 to 32 letters, digits, - and _", s.Prefix)
	}
	if _, err := s.connection(); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return s.Limits.Validate()
}

// checkNATSURL checks the URL of a server, which is shown in logs.
func checkNATSURL(at string) error {
	u, err := url.Parse(at)
	switch {
	case err != nil && strings.Contains(at, "@") || err == nil && u.User != nil:
		return errors.New("the URL of a server holds credentials, which logs would show; " +
			"use user, token, nkey or credentials")
	case err != nil || u.Host == "" || u.Scheme != "nats" && u.Scheme != "tls":
		return fmt.Errorf("%q is no URL of a NATS server; write nats://host or tls://host", at)
	case u.Path != "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("the URL %q of a server must be scheme, host and port alone", at)
	}
	return nil
}

// Location implements store.Driver: gateways with one prefix share their tasks.
func (s *Store) Location() string { return s.Prefix }

// Open implements store.Driver. It is not called: see Join.
func (*Store) Open(*slog.Logger) (replay.Store, error) { return nil, operator.ErrShared }

// LeastResend implements store.SharedDriver. A message may be on its way for as long as another lease.
func (s *Store) LeastResend() time.Duration { return 2 * time.Duration(s.Lease) }

// Read reads the driver in a Caddyfile, behind its name. Syntax:
//
//	store jetstream <url>... {
//		user                 <name> <password>
//		token                <token>
//		nkey                 <file>
//		credentials          <file>
//		tls {
//			ca          <file>...
//			client_cert <cert> <key>
//			server_name <name>
//		}
//		monitor              <url>...
//		node                 <name>
//		lease                <duration>
//		shards               <n>
//		replicas             <n>
//		allow_single_replica
//		prefix               <name>
//	}
func (s *Store) Read(p *conf.Parser) {
	s.URLs = p.RemainingArgs()
	if len(s.URLs) == 0 {
		p.Fail("store jetstream needs the URLs of the servers, such as nats://host")
	}
	store.ReadBlock(p, "jetstream", &s.Limits, conf.Options{
		"user": p.Pair("a name and a password", func(name, password string) {
			s.User, s.Password = name, password
		}),
		"token":       p.Word(&s.Token),
		"nkey":        p.Word(&s.NKey),
		"credentials": p.Word(&s.Credentials),
		"tls": p.Section(conf.Options{
			"ca":          p.Words(&s.TLS.CA),
			"client_cert": p.CertAndKey(&s.TLS.Cert, &s.TLS.Key),
			"server_name": p.Word(&s.TLS.ServerName),
		}),
		"monitor":              p.Words(&s.Monitor),
		"node":                 p.Word(&s.Node),
		"lease":                p.Duration(&s.Lease),
		"shards":               p.Number(&s.Shards),
		"replicas":             p.Number(&s.Replicas),
		"allow_single_replica": p.Flag(&s.AllowSingleReplica),
		"prefix":               p.Word(&s.Prefix),
	})
}

// Interface guards.
var (
	_ store.SharedDriver   = (*Store)(nil)
	_ store.Written        = (*Store)(nil)
	_ caddy.Provisioner    = (*Store)(nil)
	_ caddy.Validator      = (*Store)(nil)
	_ doctor.ExaminedStore = (*Store)(nil)
)
