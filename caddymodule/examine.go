// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/front/group"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// examineTimeout is how long an agent or a broker may take to answer an examination.
const examineTimeout = 5 * time.Second

// clockSkew is how far the clock may differ from an agent's.
const clockSkew = time.Minute

// examinedDriver is a driver that knows whether its store can be used without opening it.
type examinedDriver interface {
	// Examine returns why no store could be opened, or why it would accept no new tasks, with what to do; nil if there is
	// no reason. It is an uncheckedError where the store can be used, but may be unsafe. It changes nothing.
	Examine() error
}

// uncheckedError says what of a store could not be checked.
type uncheckedError struct{ text string }

func (e *uncheckedError) Error() string { return e.text }

// examination collects findings.
type examination struct{ findings []doctor.Finding }

func (e *examination) add(check string, s doctor.Status, subject, text string) {
	e.findings = append(e.findings, doctor.Finding{Check: check, Status: s, Subject: subject, Text: text})
}

// Examine implements doctor.Examiner.
func (a *App) Examine(ctx caddy.Context, partners []doctor.Partner, try doctor.Try) []doctor.Finding {
	var e examination
	provisioning, end := caddy.NewContext(ctx)
	defer end()
	if err := errors.Join(a.read(provisioning), a.Validate()); err != nil {
		e.add(doctor.CheckConfiguration, doctor.Broken, "aip", err.Error())
		return e.findings
	}
	if driver, ok := a.store.(examinedDriver); ok {
		switch err := driver.Examine(); {
		case errors.As(err, new(*uncheckedError)):
			e.add(doctor.CheckStore, doctor.Warning, a.store.Location(), err.Error())
		case err != nil:
			e.add(doctor.CheckStore, doctor.Broken, a.store.Location(), err.Error())
		default:
			e.add(doctor.CheckStore, doctor.OK, a.store.Location(), "it can be written")
		}
	}
	all := make([]struct {
		*Gateway
		agent gateway.AgentConfig
		err   error
	}, len(partners))
	for i, p := range partners {
		all[i].Gateway, all[i].agent, all[i].err = a.examined(ctx, p)
	}
	a.assignTitles()
	tried := e.tried(a, try)
	e.certificates(ctx, a)
	asked := make(map[string]bool) // the agents, by the names of their Partners
	for i, p := range partners {
		g, agent, err := all[i].Gateway, all[i].agent, all[i].err
		if err != nil {
			e.add(doctor.CheckConfiguration, doctor.Broken, g.title(), doctor.Advised(err).Error())
			continue
		}
		e.clientAuth(g, p)
		if !p.ShowsAIC && g.needsSender() {
			e.add(doctor.CheckAIC, doctor.Warning, g.title(), withoutSender+"; "+setAIC)
		}
		if header := g.loggedSecrets(); header != "" {
			e.add(doctor.CheckKeys, doctor.Warning, g.title(), "callers send keys or tokens in the header "+header+
				", which the access log of the site shows; "+hideSecrets(header))
		}
		if name := g.name(); !asked[name] {
			asked[name] = true
			e.agent(ctx, g, agent, p.Served)
			if name == tried {
				e.try(ctx, g, agent.HTTP.Header, try.Text)
			}
		}
		e.registration(ctx, g)
		e.acs(ctx, g)
		e.brokers(ctx, g)
		e.issuers(ctx, g)
		e.policy(ctx, g)
	}
	for _, r := range a.allRevocations() {
		e.revocation(r, time.Now())
	}
	for _, g := range a.members {
		if other := a.sharesTasks(g); other != nil {
			e.add(doctor.CheckClientAuth, doctor.Warning, g.title(), fmt.Sprintf("identity is off at %s/, and %s at %s/, "+
				"which has the same tasks, so that everyone can read them; %s", g.BasePath, other.Identity.Mode, other.BasePath,
				separateTasks))
		}
	}
	return e.findings
}

// examined returns the handler of a Partner, with its agent, to which nothing was sent yet.
func (a *App) examined(ctx context.Context, p doctor.Partner) (g *Gateway, agent gateway.AgentConfig, err error) {
	g = &Gateway{log: slog.New(slog.DiscardHandler), logsAccess: p.LogsAccess, logsCredentials: p.LogsCredentials}
	var settings map[string]json.RawMessage
	if err := json.Unmarshal(p.Handler, &settings); err != nil {
		return g, agent, err
	}
	delete(settings, "handler")
	text, err := json.Marshal(settings)
	if err == nil {
		err = caddy.StrictUnmarshalJSON(text, g)
	}
	if err != nil {
		return g, agent, err
	}
	g.fillDefaults()
	if err := g.check(); err != nil {
		return g, agent, err
	}
	if err := g.findAIC(ctx, a); err != nil {
		return g, agent, err
	}
	config, err := g.prepare(a)
	if err != nil {
		return g, agent, err
	}
	if g.gateway, err = gateway.New(config); err != nil {
		return g, agent, err
	}
	return g, config.Agent, a.add(g)
}

// clientAuth says whether the site asks Leaders for what identity needs.
func (e *examination) clientAuth(g *Gateway, p doctor.Partner) {
	verifies := slices.ContainsFunc(p.Policies, verifiesClients)
	requires := verifies
	for _, policy := range p.Policies {
		if policy.ClientAuthentication == nil && len(policy.MatchersRaw) == 0 {
			continue // Caddy adds it, for names that are of no site
		}
		requires = requires && doctor.RequiresClients(policy)
	}
	onlyAUN := !slices.ContainsFunc(g.Callers, func(dialect string) bool { return dialect != gateway.AUN })
	switch mode := identity.Mode(g.Identity.Mode); {
	case mode == identity.Off:
		e.add(doctor.CheckClientAuth, doctor.Warning, g.title(),
			"identity is off, so that every caller is believed to be the Leader it names; set identity to required")
	case onlyAUN || g.Identity.others() && !requires:
	case g.Identity.others():
		e.add(doctor.CheckClientAuth, doctor.Warning, g.title(), "identity has other proofs than certificates, but the site "+
			"refuses callers without a certificate; set mode verify_if_given in client_auth")
	case mode == identity.Required && !verifies:
		e.add(doctor.CheckClientAuth, doctor.Broken, g.title(),
			"identity is required, but the site verifies no client certificates, so that every call is refused; "+
				doctor.NeedsClientAuth)
	case mode == identity.Optional && requires:
		e.add(doctor.CheckClientAuth, doctor.Warning, g.title(), "identity is optional, but the site refuses callers "+
			"without a certificate; set mode verify_if_given in client_auth, or identity to required")
	default:
		e.add(doctor.CheckClientAuth, doctor.OK, g.title(), "the site's client_auth fits identity "+g.Identity.Mode)
	}
}

// agent says whether an agent can be reached, and answers in its dialect. served are the addresses at which the
// configuration itself serves.
func (e *examination) agent(ctx context.Context, g *Gateway, c gateway.AgentConfig, served []string) {
	name := c.Dialect + " " + g.Agent.name()
	broken := func(err error) {
		if upstream.ReasonOf(err) == upstream.Unreachable && isServed(cmp.Or(c.HTTP.URL, c.AUN.URL), served) {
			e.add(doctor.CheckAgent, doctor.OK, name, "this configuration serves it, and is not running; "+
				"to examine the agent, run this again when it does")
			return
		}
		e.add(doctor.CheckAgent, doctor.Broken, name, doctor.Explained(err))
	}
	if c.Finder != nil {
		finding, end := context.WithTimeout(ctx, examineTimeout)
		found, err := c.Finder.Find(finding)
		end()
		if err != nil {
			broken(err)
			return
		}
		c.HTTP.URL, c.Dialect = found.URL, found.Dialect
	}
	if _, err := g.app.Certificates.clientCert(g.AIC); g.Agent.TLS.Obtained && err != nil {
		e.add(doctor.CheckAgent, doctor.Warning, name, "it was not asked: "+err.Error())
		return
	}
	switch transport := g.Agent.dialect().Transport; {
	case transport == gateway.Connecting:
		e.add(doctor.CheckAgent, doctor.OK, name, "it connects to the gateway, and was not looked for")
		return
	case transport == gateway.OverAUN && c.AUN.URL == "":
		e.add(doctor.CheckAgent, doctor.OK, name, "its URL is found out when it is needed, and it was not looked for")
		return
	case transport == gateway.OverAUN:
		if err := dialURL(ctx, c.AUN.URL, c.AUN.HTTP.Transport.(*http.Transport).TLSClientConfig); err != nil {
			broken(err)
			return
		}
		e.add(doctor.CheckAgent, doctor.OK, name, "it accepts connections")
		return
	case transport == gateway.OverHTTP:
		at, err := askTime(ctx, &c.HTTP)
		if err != nil {
			broken(err)
			return
		}
		if skew := time.Since(at).Round(time.Second); !at.IsZero() && skew.Abs() > clockSkew {
			e.add(doctor.CheckClock, doctor.Warning, name, fmt.Sprintf("the clock of this machine is %s %s that of the "+
				"agent; synchronise both with NTP", skew.Abs(), map[bool]string{true: "ahead of", false: "behind"}[skew > 0]))
		}
	}
	polled := g.Agent.dialect().Polled()
	var err error
	if polled {
		err = g.gateway.AskAgent(ctx)
	}
	verdict := translate.Unsure
	if err == nil || task.KindOf(err) == task.InvalidAgentResponse || task.KindOf(err) == task.MethodNotFound {
		var dialect, url string
		verdict, dialect, url = c.Examine(ctx, polled && err == nil)
		if dialect != "" {
			text := fmt.Sprintf("it does not speak %s at this URL, but %s", c.Dialect, dialect)
			if dialect == c.Dialect {
				text = fmt.Sprintf("its endpoint of %s is at another URL", dialect)
			}
			e.add(doctor.CheckAgent, doctor.Broken, name, fmt.Sprintf("%s; write agent %s %s", text, dialect, url))
			return
		}
	}
	switch {
	case err != nil:
		broken(err)
	case polled:
		text := "it answers requests of " + g.gateway.Health().Dialect
		if way, why := g.gateway.WayToAgent(ctx); way != "" {
			text += "; " + way + ": " + why
		}
		e.add(doctor.CheckAgent, doctor.OK, name, text)
	case verdict == translate.Yes:
		e.add(doctor.CheckAgent, doctor.OK, name, "it answers requests of "+c.Dialect)
	default:
		e.add(doctor.CheckAgent, doctor.Warning, name, fmt.Sprintf("it accepts connections, but does not answer as an agent "+
			"of %s does; check its URL and its dialect", c.Dialect))
	}
}

// askTime asks an agent of HTTP for a card, whether it has one or not, and returns the time of its answer; the zero
// time if the answer names none.
func askTime(ctx context.Context, c *httptransport.Config) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	u, err := url.Parse(c.URL)
	if err != nil {
		return time.Time{}, err
	}
	u.RawQuery = ""
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath(".well-known/agent-card.json").String(), nil)
	if err != nil {
		return time.Time{}, err
	}
	req.Header, req.Host = c.Header.Clone(), c.Header.Get("Host")
	transport := &http.Transport{TLSClientConfig: c.TLS.Clone(), DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return time.Time{}, unreachable(err)
	}
	defer res.Body.Close()
	at, _ := http.ParseTime(res.Header.Get("Date"))
	return at, nil
}

// isServed reports whether a URL on this machine is at one of the addresses.
func isServed(rawURL string, addresses []string) bool {
	u, err := url.Parse(rawURL)
	if err != nil {
		return false
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "ws": "80"}[u.Scheme], "443")
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip.IsLoopback()
	return slices.ContainsFunc(addresses, func(address string) bool {
		at, err := caddy.ParseNetworkAddress(address)
		n, bad := strconv.ParseUint(port, 10, 16)
		return err == nil && bad == nil && uint(n) >= at.StartPort && uint(n) <= at.EndPort &&
			(strings.EqualFold(at.Host, u.Hostname()) || local && (at.Host == "" || at.Host == "localhost" ||
				net.ParseIP(at.Host).IsLoopback() || net.ParseIP(at.Host).IsUnspecified()))
	})
}

// unreachable is the error of an agent to which there is no connection.
func unreachable(err error) error {
	return httptransport.DialFailed(err, "the agent cannot be reached; start it, or correct its URL")
}

// dialURL connects to the host of a URL of WebSocket, and closes the connection.
func dialURL(ctx context.Context, rawURL string, config *tls.Config) error {
	u, err := url.Parse(rawURL)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	secure, port := u.Scheme == "wss", u.Port()
	dial := (&net.Dialer{}).DialContext
	if secure {
		dial = (&tls.Dialer{Config: config}).DialContext
	}
	if port == "" {
		port = map[bool]string{true: "443", false: "80"}[secure]
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return unreachable(err)
	}
	return conn.Close()
}

// brokers says whether the brokers of groups accept connections. It does not log in.
func (e *examination) brokers(ctx context.Context, g *Gateway) {
	if g.Group == nil {
		return
	}
	if _, err := g.app.Certificates.clientCert(g.AIC); g.Group.TLS.Obtained && err != nil {
		e.add(doctor.CheckBroker, doctor.Warning, g.title(), "no broker was asked: "+err.Error())
		return
	}
	d := &egress.Dialer{Policy: *g.Group.egress(g.app), TLS: g.Group.tls, Timeout: examineTimeout}
	for i, pattern := range g.Group.AllowBrokers {
		e.broker(ctx, d, g.Group.brokers[i], pattern, "allow_brokers")
	}
	if at := g.Group.inbox; at != nil {
		e.broker(ctx, d, at.Broker(), g.Group.Inbox, "inbox")
	}
}

// broker is brokers for one of them, which an option names.
func (e *examination) broker(ctx context.Context, d *egress.Dialer, b group.Broker, name, option string) {
	address, secure := b.Address()
	if address == "" {
		e.add(doctor.CheckBroker, doctor.OK, name, "its names are not known before an invitation")
		return
	}
	dial := d.DialPlain
	if secure {
		dial = d.DialTLS
	}
	conn, err := dial(ctx, "tcp", address)
	if err == nil {
		err = conn.Close()
	}
	var refused *egress.RefusedError
	var handshake *egress.HandshakeError
	switch {
	case err == nil:
		e.add(doctor.CheckBroker, doctor.OK, name, "it accepts connections")
	case errors.As(err, &refused):
		advice := "use amqps://, or add its network to allow_networks of group"
		if secure {
			advice = "add its network to allow_networks of group"
		}
		e.add(doctor.CheckBroker, doctor.Broken, name, fmt.Sprintf("the gateway may not connect to it (%s); %s",
			strings.TrimPrefix(err.Error(), "egress: "), advice))
	case errors.As(err, &handshake):
		advice := cmp.Or(doctor.AdviceOnServer(err, "group"), "check ca in the tls of group, and the broker's certificate")
		e.add(doctor.CheckBroker, doctor.Broken, name, fmt.Sprintf("it accepts no TLS (%v); %s", err, advice))
	default:
		e.add(doctor.CheckBroker, doctor.Broken, name, fmt.Sprintf("it cannot be reached (%v); "+
			"start it, or correct its host and port in %s", err, option))
	}
}

// Interface guards.
var _ doctor.Examiner = (*App)(nil)
