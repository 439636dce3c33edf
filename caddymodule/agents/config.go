// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/translate/agentapi"
	"github.com/aip-gateway/aip-gateway/translate/aip/acs"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// Config is how the agent is reached.
type Config struct {
	// Its dialect: a2a (any version, found out), a2a/1.0, a2a/1.0-rest, a2a/1.0-grpc, a2a/0.3, a2a/legacy, aip, aip/2,
	// agentapi, aun or aun-assignee (see docs/dialects.md). Default: a2a.
	Dialect string `json:"dialect,omitempty"`

	// Its URL, at most 400 bytes, without placeholders; for aun, the wss URL of its gateway or, at /acp, of the agent.
	// Default for aun: found out.
	URL string `json:"url,omitempty"`

	// For AIP, its AIC instead, also required in its certificate: find has the place.
	AIC string `json:"aic,omitempty"`

	// The agent's card, for its version and for the Partner's cards. A URL gets header_up and tls only at the agent's own
	// scheme, host and port. Read again after a minute. Default: an agent of A2A is asked.
	Card string `json:"card,omitempty"`

	// A header field of every request to the agent. May hold placeholders, and be repeated; never logged. Default: none.
	HeaderUp http.Header `json:"header_up,omitempty"`

	// Certificates of both ends.
	TLS TLS `json:"tls,omitzero"`

	// The caller's name for the agent: see docs/security.md#what-the-agent-learns. Not for AUN. Default: none.
	Caller Caller `json:"caller,omitzero"`

	// Silence of the agent during a turn before it fails; an answer without a stream must also end within as much again.
	// Default: 5m.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// The time to send a start or continue again to an agent out of reach. 0: not at all. Default: 10s.
	RetryFor *caddy.Duration `json:"retry_for,omitempty"`

	// Whether starts and continues ask for streams; auto: as the card says, until one fails. Set off where streams break
	// on their way. Only for A2A and AIP. Default: auto.
	Streams string `json:"streams,omitempty"`

	// A message after a broken connection, unknown to the agent: sent again where this is proven safe, see
	// docs/getting-started.md#after-a-crash.
	Resend Resend `json:"resend,omitzero"`

	// Requests to the agent at the same time, and connections; further turns wait in turn. At least 2. See
	// docs/production.md#more-turns-than-an-agent-takes. Default: a quarter of the process's files, 16 to 16384.
	MaxRuns int `json:"max_runs,omitempty"`

	// Starts and continues of one Leader at the same time, even while the agent is free. Default: no bound.
	MaxRunsPerLeader int `json:"max_runs_per_leader,omitempty"`

	// The interval of a question to know the agent's health before a turn. At least 1s. Only for A2A and AIP. Default:
	// never.
	Check caddy.Duration `json:"check,omitempty"`

	AgentAPI
	AUN
}

// streamsAuto is the default of streams of an agent.
const streamsAuto = "auto"

// streaming are the values of streams of an agent.
var streaming = map[string]upstream.Streaming{
	streamsAuto: upstream.StreamsAuto, "on": upstream.StreamsOn, "off": upstream.StreamsOff,
}

// minCheck is the least interval of check.
const minCheck = time.Second

// The bounds of the default of max_runs.
const (
	minRuns = 16
	maxRuns = 16384
)

// FillDefaults sets what is not set.
func (a *Config) FillDefaults() {
	conf.OrDefault(&a.Dialect, gateway.A2A)
	conf.OrDefault(&a.Timeout, caddy.Duration(5*time.Minute))
	conf.OrDefault(&a.Streams, streamsAuto)
	conf.OrDefault(&a.RetryFor, new(caddy.Duration(10*time.Second)))
	a.Resend.fillDefaults()
	// The other three quarters of the files are for callers, webhooks and the store.
	conf.OrDefault(&a.MaxRuns, min(max(maxFiles()/4, minRuns), maxRuns))
}

// maxURL is the largest length of an agent's URL, in bytes. The URL can be a part of each log's name.
const maxURL = 400

// Validate finds mistakes in the settings. It brings names into their canonical form.
func (a *Config) Validate() error {
	dialect, err := gateway.AgentDialect(a.Dialect)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	_, known := streaming[a.Streams]
	switch {
	case !known:
		return fmt.Errorf("agent: streams is %q, but must be auto, on or off", a.Streams)
	case a.Streams != streamsAuto && !dialect.Polled():
		return fmt.Errorf("agent: streams is for an agent of A2A or AIP, not of %s", a.Dialect)
	case a.MaxRuns < 2:
		return fmt.Errorf("agent: max_runs is %d, but must be at least 2", a.MaxRuns)
	case a.MaxRunsPerLeader < 0:
		return fmt.Errorf("agent: max_runs_per_leader is %d, but must not be negative; 0 means no bound", a.MaxRunsPerLeader)
	case *a.RetryFor < 0:
		return fmt.Errorf("%w; 0 means no retry", conf.NotNegative("agent: retry_for", *a.RetryFor))
	case a.Timeout < 0:
		return conf.NotNegative("agent: timeout", a.Timeout)
	case a.Check != 0 && a.Check < caddy.Duration(minCheck):
		return fmt.Errorf("agent: check is %s, but must be at least %s", time.Duration(a.Check), minCheck)
	case a.Check != 0 && !dialect.Polled():
		return fmt.Errorf("agent: check is for an agent of A2A or AIP, not of %s", a.Dialect)
	case a.TLS.Set() && (dialect.Transport == gateway.Connecting || dialect.Transport == gateway.OverAUN):
		return errors.New("agent: aic and verify in tls are not for an agent of AUN, whose identity is its AID")
	case a.TLS.Revocation && a.AIC == "" && !strings.HasPrefix(a.URL, "https://"):
		return errors.New("agent: revocation in tls is for an agent at an https URL, or one that is found by its AIC")
	case a.Caller.set() && (dialect.Transport == gateway.Connecting || dialect.Transport == gateway.OverAUN):
		return errors.New("agent: caller is not for an agent of AUN, whose connection is for all callers")
	case a.AIC != "":
		err = a.checkAIC(dialect)
	case dialect.Transport == gateway.Connecting:
		err = a.checkAID()
	default:
		err = a.checkURL(dialect.Transport)
	}
	return cmp.Or(err, a.Resend.check(), a.checkCard(), a.Caller.check(a.HeaderUp), a.checkOwn())
}

// hasCardURL reports whether the card is at a URL, and not in a file.
func (a *Config) hasCardURL() bool { return strings.Contains(a.Card, "://") }

// checkCard checks where the card is. A file is looked for when it is read.
func (a *Config) checkCard() error {
	if !a.hasCardURL() {
		return nil
	}
	if err := conf.Literal("agent: card", a.Card); err != nil {
		return err
	}
	if _, err := httptransport.ParseURL(a.Card); err != nil {
		return errors.New("agent: card: write an http or https URL without a user, or the name of a file")
	}
	return nil
}

// readCard returns what reads the card from its file; nil where it is in none. It must be there now.
func (a *Config) readCard(repl *caddy.Replacer) (func() ([]byte, error), error) {
	if a.Card == "" || a.hasCardURL() {
		return nil, nil
	}
	name, err := conf.FileName(repl, a.Card)
	if err == nil {
		_, err = os.Stat(name)
	}
	if err != nil {
		return nil, fmt.Errorf("card: %w", err)
	}
	return func() ([]byte, error) { return acs.ReadFile(name) }, nil
}

// checkAIC checks the AIC of an agent that is to be found, which is then in its canonical form.
func (a *Config) checkAIC(d *gateway.Dialect) error {
	aic, err := conf.AIC("agent", a.AIC)
	switch {
	case err != nil:
		return err
	case !d.Found():
		return fmt.Errorf("agent: only an agent of aip or aip/2 is found by its AIC, not of %s", a.Dialect)
	case a.URL != "":
		return errors.New("agent: it has an AIC and a URL; write agent aip <url>, and the AIC into its tls, or only the AIC")
	}
	a.AIC = string(aic)
	a.requireAIC()
	return nil
}

// ownSettings are those that only the agents of one dialect have.
type ownSettings interface {
	// only returns the dialect, the names of the settings for an error, and whether any of them is set.
	only() (dialect, names string, set bool)
	check(*Config) error
	options(*conf.Parser) conf.Options // of the agent's block
}

// own returns the settings of single dialects.
func (a *Config) own() []ownSettings { return []ownSettings{&a.AgentAPI, &a.AUN} }

// checkOwn checks the settings that only some dialects have.
func (a *Config) checkOwn() error {
	for _, s := range a.own() {
		switch dialect, names, set := s.only(); {
		case dialect == a.Dialect:
			return s.check(a)
		case set:
			return fmt.Errorf("agent: %s are for an agent of %s, not of %s", names, dialect, a.Dialect)
		}
	}
	return nil
}

// checkAID checks the AID of an agent that connects to the gateway, which is then in its canonical form.
func (a *Config) checkAID() error {
	aid, err := aun.ParseAID(a.URL)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	a.URL = string(aid)
	return nil
}

// Assignee returns the AID of an agent that connects to the gateway; empty for another one.
func (a *Config) Assignee() string {
	if a.Speaks().Transport == gateway.Connecting {
		return a.URL
	}
	return ""
}

// Speaks returns the agent's dialect; the zero value before it is checked that there is one.
func (a *Config) Speaks() *gateway.Dialect {
	if d, err := gateway.AgentDialect(a.Dialect); err == nil {
		return d
	}
	return new(gateway.Dialect)
}

func (a *Config) checkURL(transport gateway.Transport) error {
	if err := conf.Literal("agent: the URL", a.URL); err != nil {
		return err
	}
	u, err := url.Parse(a.URL)
	switch {
	case len(a.URL) > maxURL:
		return fmt.Errorf("agent: the URL has %d bytes, but must have no more than %d", len(a.URL), maxURL)
	case transport == gateway.OverAUN:
		if a.URL != "" && aun.CheckURL(a.URL) != nil {
			return fmt.Errorf("agent: %q is no wss or ws URL", a.URL)
		}
		return nil
	case transport == gateway.OverGRPC && (err != nil || u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Errorf("agent: %q is no URL for gRPC; write http:// for a server without TLS, else https://", a.URL)
	case !strings.Contains(a.URL, "://"):
		return fmt.Errorf("agent: %q is no http or https URL; write http://%[1]s", a.URL)
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("agent: %q is no http or https URL", a.URL)
	case u.Scheme != "https" && a.TLS.Set():
		return errors.New("agent: aic and verify in tls need an https URL")
	case u.User != nil:
		return errors.New("agent: put credentials into header_up, not into the URL, which is logged")
	}
	return nil
}

// Name identifies the agent where it has no AIC.
func (a *Config) Name() string {
	switch {
	case a.Speaks().Transport == gateway.OverAUN:
		return "aun:" + a.AID
	case a.AIC != "":
		return "aic:" + a.AIC
	}
	return a.URL
}

// Connection returns the configuration of the connection to the agent. own has the gateway's own identity and roots of
// AUN, if there are any. judge may be nil without revocation. It replaces placeholders and reads files.
func (a *Config) Connection(
	own aun.ClientConfig, obtained pki.Presenter, judge pki.Judge,
) (gateway.AgentConfig, error) {
	repl := caddy.NewReplacer()
	header := make(http.Header, len(a.HeaderUp))
	for field, values := range a.HeaderUp {
		for _, v := range values {
			value, err := conf.Replace(repl, v)
			if err != nil {
				return gateway.AgentConfig{}, fmt.Errorf("header_up %s %w", field, err)
			}
			header.Add(field, value)
		}
	}
	tls, err := a.TLS.Config(repl, obtained, judge)
	if err != nil {
		return gateway.AgentConfig{}, err
	}
	expose, err := agentapi.ParseExpose(a.Expose)
	if err != nil {
		return gateway.AgentConfig{}, err
	}
	aun, err := a.AUN.config(repl, a, tls, own)
	if err != nil {
		return gateway.AgentConfig{}, err
	}
	readCard, err := a.readCard(repl)
	if err != nil {
		return gateway.AgentConfig{}, err
	}
	cardURL := ""
	if a.hasCardURL() {
		cardURL = a.Card
	}
	return gateway.AgentConfig{
		Dialect:     a.Dialect,
		CardURL:     cardURL,
		ReadCard:    readCard,
		AUN:         aun,
		IdleWindow:  time.Duration(a.IdleWindow),
		AgentAPI:    agentapi.Options{Expose: expose, CancelPath: a.CancelPath},
		MaxRequests: a.MaxRuns, MaxPerLeader: a.MaxRunsPerLeader,
		HTTP: httptransport.Config{URL: a.URL, Header: header, TLS: tls},
		Turns: upstream.Config{
			IdleTimeout: time.Duration(a.Timeout),
			RetryFor:    time.Duration(*a.RetryFor),
			ResendAfter: time.Duration(*a.Resend.After),
			Resend:      a.Resend.mode(),
			Streaming:   streaming[a.Streams],
		},
	}, nil
}

// requireAIC has the connections to an agent that was found by its AIC fail where the server has another one.
func (a *Config) requireAIC() {
	if a.AIC != "" && len(a.TLS.AIC) == 0 {
		a.TLS.AIC = []string{a.AIC}
	}
}
