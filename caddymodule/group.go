// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/front/group"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/egress"
)

// Group lets the Partner take part in the groups of AIP, to which its Leaders invite it. The gateway then connects to
// the RabbitMQ broker that an invitation names.
//
// The Partner needs an aic, its name in groups. Several handlers of one Partner have the same group.
//
// # Which exchanges
//
// An exchange belongs to one Leader. An invitation is refused (−32009, in AIP 2 −32020) if its exchange
//
//   - has the name of another Leader's group, group_<its AIC>_…,
//   - is used by a membership of another Leader, at the same broker and virtual host, or
//   - is not group_<leader>_<groupId>, where the Partner logs in by its certificate, or by a user for several Leaders.
//
// allow_exchanges lists further ones; list only exchanges of no other Leader. With identity optional, invitations of a
// Leader without a certificate need an accessToken of a user for it alone. A membership without its right waits for an
// invitation.
type Group struct {
	// Brokers for invitations: host (IPv6 in brackets), host:port or *.domain. TLS is required with amqps:// before it, on
	// port 5671, and without an accessToken. Required without inbox.
	AllowBrokers []string `json:"allow_brokers,omitempty"`

	// Networks of brokers although not public, also without TLS. Default: those of notify.
	AllowNetworks []string `json:"allow_networks,omitempty"`

	// Further exchanges of a Leader; a star at the end is any rest. May be repeated. Default: none.
	AllowExchanges map[string][]string `json:"allow_exchanges,omitempty"`

	// The broker of the Partner's inbox, amqps://<host>/<virtual host>, for invitations of AIP 2. Needs client_cert with
	// the AIC as common name. See docs/groups.md#the-inbox. Default: none.
	Inbox string `json:"inbox,omitempty"`

	// Takes messages without an AMQP user_id, as in AIP 2.01: each user of the inbox can then invite in the name of any
	// Leader. Default: false.
	InboxWithoutUserID bool `json:"inbox_without_user_id,omitempty"`

	// TLS to brokers.
	TLS GroupTLS `json:"tls,omitzero"`

	// The key for tokens of invitations in the store: 32 bytes as hexadecimal digits or base64. May hold placeholders;
	// never logged. Default: none; after a restart, memberships with a token wait for an invitation.
	TokenKey string `json:"token_key,omitempty"`

	// Groups of this Partner, 1 to 100000. Default: 1000.
	MaxGroups int `json:"max_groups,omitempty"`

	brokers []group.Broker
	inbox   *group.Inbox // nil for none
	key     []byte       // of tokens; nil without token_key
	tls     *tls.Config  // of the connections to brokers
}

// GroupTLS holds the certificates of brokers and of the gateway as their client.
type GroupTLS struct {
	// PEM files with the roots of brokers, read at load. Default: the system's.
	CA []string `json:"ca,omitempty"`

	// PEM files with the Partner's client certificate and its key, for a login without an accessToken, read at each
	// connection.
	Cert string `json:"cert,omitempty"`

	// Default: none; such invitations are refused.
	Key string `json:"key,omitempty"`

	// aip: the one from the option certificates.
	Obtained bool `json:"obtained,omitempty"`

	pki.ServerIdentity
}

// mostGroups is the largest value of max_groups.
const mostGroups = 100_000

// groupOption returns what reads the option group. Syntax:
//
//	group {
//		allow_brokers   <pattern>...
//		allow_networks  <cidr>...
//		allow_exchanges <leader> <exchange>...
//		inbox           <url> {
//			without_user_id
//		}
//		tls {
//			ca          <file>...
//			client_cert <cert> <key> | aip
//			aic         <AIC>...
//			verify      aic|name|both
//		}
//		token_key       <key>
//		max_groups      <n>
//	}
func groupOption(p *conf.Parser, into **Group) func() {
	return func() {
		g := new(Group)
		*into = g
		p.Section(conf.Options{
			"allow_brokers":   p.Words(&g.AllowBrokers),
			"allow_networks":  p.Words(&g.AllowNetworks),
			"allow_exchanges": p.WordsOf(&g.AllowExchanges, "the AIC of a Leader, and at least one exchange"),
			"inbox": func() {
				p.Word(&g.Inbox)()
				p.Block("inbox", conf.Options{"without_user_id": p.Flag(&g.InboxWithoutUserID)})
			},
			"tls": p.Section(g.TLS.Options(p, conf.Options{
				"ca":          p.Words(&g.TLS.CA),
				"client_cert": pki.ClientCertOption(p, &g.TLS.Cert, &g.TLS.Key, &g.TLS.Obtained),
			})),
			"token_key":  p.Word(&g.TokenKey),
			"max_groups": p.Number(&g.MaxGroups),
		})()
	}
}

// fillDefaults sets what is not set. There may be no settings.
func (g *Group) fillDefaults() {
	if g == nil {
		return
	}
	conf.OrDefault(&g.MaxGroups, group.DefaultMaxGroups)
}

// check checks the settings, which may be none. named says that the Partner has an AIC, or gets one from the registry;
// callers are its own.
func (g *Group) check(named bool, callers []string) error {
	switch {
	case g == nil:
		return nil
	case !named:
		return errors.New("group: the Partner needs an aic, which is its name in groups; set aic")
	case !slices.Contains(callers, "aip") && !slices.Contains(callers, "aip/2"):
		return errors.New("group: Leaders invite by AIP; add aip or aip/2 to callers")
	case len(g.AllowBrokers) == 0 && g.Inbox == "":
		return errors.New("group: no broker is allowed; name the brokers of your Leaders in allow_brokers")
	case g.MaxGroups < 1 || g.MaxGroups > mostGroups:
		return fmt.Errorf("group: max_groups is %d, but must be 1 to %d", g.MaxGroups, mostGroups)
	}
	for _, pattern := range g.AllowBrokers {
		if _, err := group.ParseBroker(pattern); err != nil {
			return fmt.Errorf("group: allow_brokers: %q: %w", pattern, err)
		}
		if len(g.TLS.AIC) > 0 && !strings.HasPrefix(pattern, "amqps://") {
			return fmt.Errorf("group: a broker shows its AIC only with TLS; write amqps:// before %q in allow_brokers", pattern)
		}
	}
	if _, err := conf.Networks(g.AllowNetworks); err != nil {
		return fmt.Errorf("group: %w", err)
	}
	if err := g.checkInbox(callers); err != nil {
		return fmt.Errorf("group: inbox: %w", err)
	}
	return g.checkExchanges()
}

// checkInbox checks the inbox, if there is one.
func (g *Group) checkInbox(callers []string) error {
	switch {
	case g.Inbox == "" && g.InboxWithoutUserID:
		return errors.New("inbox_without_user_id needs the URL of an inbox")
	case g.Inbox == "":
		return nil
	}
	if _, err := group.ParseInbox(g.Inbox); err != nil {
		return fmt.Errorf("%q: %w", g.Inbox, err)
	}
	switch {
	case g.TLS.Cert == "" && !g.TLS.Obtained:
		return errors.New("the Partner logs in there by a certificate; set client_cert in tls")
	case !slices.Contains(callers, "aip/2"):
		return errors.New("invitations there are of AIP 2; add aip/2 to callers")
	}
	return nil
}

// provision reads what the settings name. own shows the certificate that is obtained for the Partner; nil for none.
func (g *Group) provision(own pki.Presenter) (err error) {
	for _, pattern := range g.AllowBrokers {
		broker, err := group.ParseBroker(pattern)
		if err != nil {
			return err
		}
		g.brokers = append(g.brokers, broker)
	}
	if g.Inbox != "" {
		if g.inbox, err = group.ParseInbox(g.Inbox); err != nil {
			return err
		}
	}
	repl := caddy.NewReplacer()
	if g.key, err = readTokenKey(repl, g.TokenKey); err != nil {
		return fmt.Errorf("group: token_key %w", err)
	}
	if g.tls, err = g.TLS.config(repl, own); err != nil {
		return fmt.Errorf("group: %w", err)
	}
	return nil
}

// checkExchanges checks the exchanges of Leaders.
func (g *Group) checkExchanges() error {
	for _, leader := range slices.Sorted(maps.Keys(g.AllowExchanges)) { // so that an error is always the same
		if _, err := identity.ParseAIC(leader); err != nil {
			return fmt.Errorf("group: allow_exchanges: %q is no AIC of a Leader: %w", leader, err)
		}
		for _, name := range g.AllowExchanges[leader] {
			if begin, _ := strings.CutSuffix(name, "*"); name == "" || strings.Contains(begin, "*") {
				return fmt.Errorf("group: allow_exchanges: %q is not the name of an exchange; a star stands only at the end",
					name)
			}
		}
	}
	return nil
}

// config returns the TLS configuration of connections to brokers. Without a client certificate it has no
// GetClientCertificate.
func (t *GroupTLS) config(repl *caddy.Replacer, own pki.Presenter) (*tls.Config, error) {
	roots, err := certfile.ReadPool(repl, t.CA)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if err := t.Require(c, nil); err != nil {
		return nil, err
	}
	if t.Obtained {
		return c, own.Present(c, t.Cert, t.Key)
	}
	return c, certfile.Present(c, repl, t.Cert, t.Key)
}

// egress returns to which addresses brokers are connected to: those of webhooks, if there are no others. The settings
// have been checked.
func (g *Group) egress(webhooks *egress.Policy) *egress.Policy {
	if len(g.AllowNetworks) == 0 {
		return webhooks
	}
	p, _ := conf.Networks(g.AllowNetworks)
	p.Closed = webhooks.Closed
	return &p
}

// readTokenKey reads a key of 32 bytes. Its errors do not quote it.
func readTokenKey(repl *caddy.Replacer, s string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	s, err := conf.Replace(repl, s)
	if err != nil {
		return nil, err
	}
	s = strings.TrimSpace(s)
	key, err := hex.DecodeString(s)
	if err != nil {
		key, err = base64.StdEncoding.DecodeString(s)
	}
	switch {
	case err != nil:
		return nil, errors.New("is neither hexadecimal nor base64; make one with: openssl rand -hex 32")
	case len(key) != group.KeySize:
		return nil, fmt.Errorf("has %d bytes, but must have %d; make one with: openssl rand -hex 32",
			len(key), group.KeySize)
	}
	return key, nil
}
