// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/notify/sign"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Config is how webhooks are notified of tasks, and where agents may push to.
type Config struct {
	// Attempts before a notification is a dead letter; 10 take about a day. 1 to 100. Default: 10.
	Attempts int `json:"attempts,omitempty"`

	// The time for one attempt, from the DNS look-up to the end of the answer. 1s to 1m. Default: 15s.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// Networks for webhooks although they are not public, also by plain http. Own sites, the admin API and agents stay
	// refused. Default: none.
	AllowNetworks []string `json:"allow_networks,omitempty"`

	// Receivers (host or host:port) of the certificate from certificates, if they ask for one and the agent has
	// client_cert aip. List no server with commands from this Partner. Default: none.
	CertificateFor []string `json:"certificate_for,omitempty"`

	// A key to sign notifications, whsk_… (ed25519) or whsec_… (HMAC-SHA256), from `caddy aip webhook-key`. Each key
	// makes a signature. May hold placeholders; never logged. Default: none; no signature.
	SigningKeys []string `json:"signing_keys,omitempty"`

	// The public URL of aip_callback. Default: none; agents are polled.
	Callback string `json:"callback,omitempty"`

	// Keeps the bodies of the last attempts in memory, 4 KiB of each, for operators with replay. Default: false.
	KeepBodies bool `json:"keep_bodies,omitempty"`

	guard   *egress.Policy
	trusted []egress.Server // of CertificateFor
	keys    sign.Keys
}

// maxAttempts is the largest value of attempts.
const maxAttempts = 100

// FillDefaults sets what the configuration leaves out.
func (n *Config) FillDefaults() {
	conf.OrDefault(&n.Attempts, notify.DefaultAttempts)
	conf.OrDefault(&n.Timeout, caddy.Duration(notify.DefaultTimeout))
}

// Provision sets defaults, and reads networks, receivers and keys.
func (n *Config) Provision() error {
	n.FillDefaults()
	guard, err := conf.Networks(n.AllowNetworks)
	if err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	n.guard = &guard
	if n.trusted, err = n.servers(); err != nil {
		return err
	}
	repl := caddy.NewReplacer()
	for i, s := range n.SigningKeys {
		value, err := conf.Replace(repl, s)
		if err != nil {
			return fmt.Errorf("notify: signing_key %d %w", i+1, err)
		}
		key, err := sign.Parse(strings.TrimSpace(value))
		if err != nil {
			return fmt.Errorf("notify: signing_key %d: %w", i+1, err)
		}
		n.keys = append(n.keys, key)
	}
	return nil
}

// Validate checks the settings.
func (n *Config) Validate() error {
	if _, err := conf.Networks(n.AllowNetworks); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	if _, err := n.servers(); err != nil {
		return err
	}
	if n.Attempts < 1 || n.Attempts > maxAttempts {
		return fmt.Errorf("notify: attempts is %d, but must be 1 to %d", n.Attempts, maxAttempts)
	}
	if n.Timeout < caddy.Duration(time.Second) || n.Timeout > caddy.Duration(time.Minute) {
		return fmt.Errorf("notify: timeout is %s, but must be a second to a minute", time.Duration(n.Timeout))
	}
	return conf.PublicURL("notify: callback", n.Callback)
}

// Guard returns the networks that webhooks may be in.
func (n *Config) Guard() *egress.Policy { return n.guard }

// servers returns the receivers that are shown certificates.
func (n *Config) servers() (all []egress.Server, err error) {
	for _, s := range n.CertificateFor {
		server, err := egress.ParseServer(s)
		if err != nil {
			return nil, fmt.Errorf("notify: certificate_for: %q: %w", s, err)
		}
		all = append(all, server)
	}
	return all, nil
}

// Config returns the configuration of the engine, with the dialect of each webhook.
func (n *Config) Config(dialects func(*task.Webhook, string) translate.Notifier) *notify.Config {
	return &notify.Config{
		Attempts:       n.Attempts,
		Timeout:        time.Duration(n.Timeout),
		Concurrency:    notify.DefaultConcurrency,
		Egress:         n.guard,
		CertificateFor: n.trusted,
		Keys:           n.keys,
		KeepBodies:     n.KeepBodies,
		Dialects:       dialects,
	}
}
