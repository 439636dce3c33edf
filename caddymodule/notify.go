// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/notify/sign"
)

// Notify is how webhooks are notified of tasks, and where agents may push to.
type Notify struct {
	// How often the delivery of a notification is tried, over about a day. Then it is kept as a dead letter for 7 days,
	// and can be replayed. Default: 10.
	Attempts int `json:"attempts,omitempty"`

	// How long one attempt may take, from the host's DNS lookup to the end of the answer. Default: 15s.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// Networks, as CIDRs, that webhooks may reach although they are not public, also by plain http. Default: none;
	// webhooks reach only public addresses, by https.
	AllowNetworks []string `json:"allow_networks,omitempty"`

	// The receivers, host or host:port, that are shown the certificate which the app's option certificates obtains for
	// the Partner, if they ask for one and the agent's tls has client_cert aip. To them the gateway is the Partner, so
	// list no server that takes commands from it, such as another Partner. Default: none; the gateway shows no receiver a
	// certificate.
	CertificateFor []string `json:"certificate_for,omitempty"`

	// Keys that sign notifications, as Standard Webhooks has it: whsk_… (ed25519; make one with
	// caddy aip webhook-key) or whsec_… (HMAC-SHA256). Each key makes a signature, so that receivers can verify all
	// notifications while a key is replaced. Values may hold placeholders. Default: none; notifications carry the
	// Leader's token, and no signature.
	SigningKeys []string `json:"signing_keys,omitempty"`

	// The public URL of a site with the aip_callback directive, for push notifications of agents without streams.
	// Default: none; such agents are polled.
	Callback string `json:"callback,omitempty"`

	// Keep the bodies of the last attempts, of requests and of answers, so that an operator who may replay notifications
	// sees them: 4 KiB of each, of the last 10 attempts at each URL, in memory. Header fields are not kept. Default: no
	// body is kept.
	KeepBodies bool `json:"keep_bodies,omitempty"`

	guard   *egress.Policy
	trusted []egress.Server // of CertificateFor
	keys    sign.Keys
}

// maxAttempts is the largest value of attempts.
const maxAttempts = 100

func (n *Notify) fillDefaults() {
	conf.OrDefault(&n.Attempts, notify.DefaultAttempts)
	conf.OrDefault(&n.Timeout, caddy.Duration(notify.DefaultTimeout))
}

func (n *Notify) provision() error {
	n.fillDefaults()
	guard, err := networks(n.AllowNetworks)
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

func (n *Notify) validate() error {
	if _, err := networks(n.AllowNetworks); err != nil {
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
	return checkPublicURL("notify: callback", n.Callback)
}

// servers returns the receivers that are shown certificates.
func (n *Notify) servers() (all []egress.Server, err error) {
	for _, s := range n.CertificateFor {
		server, err := egress.ParseServer(s)
		if err != nil {
			return nil, fmt.Errorf("notify: certificate_for: %q: %w", s, err)
		}
		all = append(all, server)
	}
	return all, nil
}

// config returns the configuration of the engine.
func (n *Notify) config() *notify.Config {
	return &notify.Config{
		Attempts:       n.Attempts,
		Timeout:        time.Duration(n.Timeout),
		Concurrency:    notify.DefaultConcurrency,
		Egress:         n.guard,
		CertificateFor: n.trusted,
		Keys:           n.keys,
		KeepBodies:     n.KeepBodies,
		Dialects:       dialectOf,
	}
}
