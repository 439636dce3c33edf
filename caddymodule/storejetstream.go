// SPDX-License-Identifier: Apache-2.0

package caddymodule

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
	"github.com/aip-gateway/aip-gateway/operator"
	"github.com/aip-gateway/aip-gateway/replay"
)

func init() { caddy.RegisterModule(new(JetStreamStore)) }

// JetStreamStore keeps tasks in the streams of a cluster of NATS servers with JetStream, which any number of gateways
// share: each takes any call.
type JetStreamStore struct {
	// The servers: nats://host[:port] or tls://host[:port]. One that can be reached is enough, and names the others.
	// Required.
	URLs []string `json:"urls,omitempty"`

	// The user of the gateway at the servers. May hold placeholders, which are replaced at each connection; the same for
	// password and token. Default: none.
	User string `json:"user,omitempty"`

	// The password of user. Required with it.
	Password string `json:"password,omitempty"`

	// The token of the gateway at the servers, where they have no users. Default: none.
	Token string `json:"token,omitempty"`

	// The file with the seed of the gateway's NKey, read at each connection. Default: none.
	NKey string `json:"nkey,omitempty"`

	// The file with the gateway's JWT and the seed of its key, as nsc writes it, read at each connection. Default: none.
	Credentials string `json:"credentials,omitempty"`

	// The certificates of the connections to the servers.
	TLS NATSTLS `json:"tls,omitzero"`

	// The monitoring endpoints of the servers, http://host:8222, all of them. The gateway reads there whether the servers
	// sync each write and are new enough, does not use those that do not or are not, and warns of servers that are not
	// named. Default: none; it is not checked.
	Monitor []string `json:"monitor,omitempty"`

	// The name of this gateway among those that share the store. It must stay the same, and be that of no other one.
	// Default: the name of the host.
	Node string `json:"node,omitempty"`

	// For how long the heartbeats of a gateway may fail before the others take its tasks over. Default: 3s.
	Lease caddy.Duration `json:"lease,omitempty"`

	// Into how many streams the tasks are divided. Each is worked on by one gateway, so there must be more of them than
	// gateways. It cannot be changed later. Default: 16.
	Shards int `json:"shards,omitempty"`

	// On how many servers each stream is stored. Default: 3.
	Replicas int `json:"replicas,omitempty"`

	// Replicas may be 1, so that the loss of one server is the loss of tasks. Default: false.
	AllowSingleReplica bool `json:"allow_single_replica,omitempty"`

	// With what the names of the streams begin. Gateways with the same one share their tasks. Default: aip.
	Prefix string `json:"prefix,omitempty"`

	StoreLimits
}

// NATSTLS holds the certificates of NATS servers and of the gateway as their client.
type NATSTLS struct {
	// PEM files with the trusted roots of the servers' certificates, read when the configuration is loaded. Default: the
	// system's.
	CA []string `json:"ca,omitempty"`

	// The PEM file with the gateway's client certificate. It and its key are read at each connection, so that they can be
	// renewed. Default: none.
	Cert string `json:"cert,omitempty"`

	// The PEM file with the key of cert. Required with it.
	Key string `json:"key,omitempty"`

	// The host name in the servers' certificates. Default: the host of each URL.
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
func (*JetStreamStore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: storeNamespace + ".jetstream", New: func() caddy.Module { return new(JetStreamStore) }}
}

// Provision sets defaults.
func (s *JetStreamStore) Provision(ctx caddy.Context) error {
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
	return s.StoreLimits.Provision(ctx)
}

func (s *JetStreamStore) fillNumbers() {
	conf.OrDefault(&s.Lease, caddy.Duration(defaultLease))
	conf.OrDefault(&s.Shards, defaultShards)
	conf.OrDefault(&s.Replicas, defaultReplicas)
}

// checkWritten checks what has no placeholders.
func (s *JetStreamStore) checkWritten() error {
	c := *s
	c.fillNumbers()
	return cmp.Or(c.checkNumbers(), c.StoreLimits.checkWritten())
}

func (s *JetStreamStore) checkNumbers() error {
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
func (s *JetStreamStore) Validate() error {
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
	return s.StoreLimits.Validate()
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

// Location implements StoreDriver: gateways with one prefix share their tasks.
func (s *JetStreamStore) Location() string { return s.Prefix }

// Open implements StoreDriver. It is not called: see Join.
func (*JetStreamStore) Open(*slog.Logger) (replay.Store, error) { return nil, operator.ErrShared }

// LeastResend implements SharedDriver. A message may be on its way for as long as another lease.
func (s *JetStreamStore) LeastResend() time.Duration { return 2 * time.Duration(s.Lease) }

// read reads the driver in a Caddyfile, behind its name. Syntax:
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
func (s *JetStreamStore) read(p *conf.Parser) {
	s.URLs = p.RemainingArgs()
	if len(s.URLs) == 0 {
		p.Fail("store jetstream needs the URLs of the servers, such as nats://host")
	}
	readStoreBlock(p, "jetstream", &s.StoreLimits, conf.Options{
		"user": p.Pair("a name and a password", func(name, password string) {
			s.User, s.Password = name, password
		}),
		"token":       p.Word(&s.Token),
		"nkey":        p.Word(&s.NKey),
		"credentials": p.Word(&s.Credentials),
		"tls": p.Section(conf.Options{
			"ca": p.Words(&s.TLS.CA),
			"client_cert": p.Pair("a certificate and a key, both PEM files", func(cert, key string) {
				s.TLS.Cert, s.TLS.Key = cert, key
			}),
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
	_ SharedDriver         = (*JetStreamStore)(nil)
	_ ownDriver            = (*JetStreamStore)(nil)
	_ caddy.Provisioner    = (*JetStreamStore)(nil)
	_ caddy.Validator      = (*JetStreamStore)(nil)
	_ doctor.ExaminedStore = (*JetStreamStore)(nil)
)
