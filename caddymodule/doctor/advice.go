// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/front/httpfront"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// adviceByReason names the options of the Caddyfile that an operator must check when an agent cannot be used. No other
// package knows these names.
var adviceByReason = map[upstream.Reason]string{
	upstream.CredentialsRefused:   "check header_up in agent",
	upstream.CertificateRefused:   "check client_cert in the tls of agent",
	upstream.CertificateUntrusted: "check ca and server_name in the tls of agent, and its URL",
	upstream.NoTLS:                "write http:// in the URL of agent, or use the port at which it takes TLS",
	upstream.NoHTTP2: "check the URL of agent; over TLS, its server must offer h2 by ALPN; where the agent has no gRPC " +
		"at it, write agent a2a, and its dialect is found out",
	upstream.IdentityRefused: "check identity and roots in agent, or cert and roots in aun: the gateway's certificate " +
		"must lead to the roots of the agent's AUN gateway, and that one's to these roots",
	upstream.Redirected:        "set the URL of agent to the one that it redirects to",
	upstream.NoAgent:           "check the URL of agent",
	upstream.InvalidURL:        "check the URL of agent",
	upstream.URLHasCredentials: "put credentials into header_up in agent",
	upstream.InvalidHeader:     "check header_up in agent",
	upstream.CardMissing:       "check the URL of agent, and header_up in it",
	upstream.DialectUnknown: "check the URL of agent and header_up in it, " +
		"or name the dialect: agent a2a/legacy <endpoint>, or a2a/0.3, a2a/1.0",
	upstream.WrongDialect: "check the dialect of agent",
}

// Advice returns what an operator must change in the configuration to mend an error. It is empty where the
// configuration is not the cause.
func Advice(err error) string {
	switch {
	case errors.Is(err, identity.ErrNotVerified):
		return "set client_auth in the tls of the site: mode require_and_verify, or verify_if_given with identity optional"
	case errors.Is(err, identity.ErrNoCertificate):
		return "if Leaders send certificates, the site does not ask for them, or a proxy before it ends TLS; " +
			NeedsClientAuth
	case errors.Is(err, gateway.ErrReadOtherwise):
		return "give aip_identify the base_path, the callers and the limits of aip_gateway, and let no handler between " +
			"them change the path or the body"
	case errors.Is(err, httpfront.ErrJudgedOtherwise):
		return "give aip_identify the identity of aip_gateway, or none; with aac, none"
	case errors.Is(err, gateway.ErrCardSigned):
		return "set signatures in card to drop or keep"
	case errors.Is(err, gateway.ErrInvalidACS):
		return "each mistake says what to change, in card, or in the agent's card"
	case errors.Is(err, gateway.ErrOtherACS):
		return otherACS
	case errors.Is(err, gateway.ErrAtMount):
		return RegisterAnew
	}
	if advice := AdviceOnServer(err, "agent"); advice != "" {
		return advice
	}
	return adviceByReason[upstream.ReasonOf(err)]
}

// Advised adds the advice to an error of the configuration.
func Advised(err error) error {
	if advice := Advice(err); advice != "" {
		return fmt.Errorf("%w; %s", err, advice)
	}
	return err
}

// Explained returns what an error of an agent means, why it happened, and what to do.
func Explained(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*task.Error](err); ok && e.Detail != "" {
		text = e.Detail
		// An error that wraps another of its kind has its sentence already, or the sentence has the cause.
		if e.Err != nil {
			if cause := e.Err.Error(); !strings.Contains(cause, text) && !strings.Contains(text, cause) {
				text += " (" + cause + ")"
			}
		}
	}
	if advice := Advice(err); advice != "" {
		text += "; " + advice
	}
	return text
}

// AdviceOnServer returns what an operator must change, in the tls of a block, where a server is not the one that is
// meant; empty for another error.
func AdviceOnServer(err error, block string) string {
	other, ok := errors.AsType[*identity.OtherServerError](err)
	switch {
	case !ok:
		return ""
	case other.AIC == "":
		return "if the server is known by its host name only, set verify name in the tls of " + block +
			", and leave aic out"
	}
	return "check aic in the tls of " + block + ", and whether another server answers at its address"
}

// NeedsClientAuth is what a site needs so that Leaders can prove who they are.
const NeedsClientAuth = "serve the site over https, and add client_auth to its tls block, with two lines: " +
	`"mode require_and_verify" and "trust_pool file <ca.pem>"`

// otherACS is what to do where another ACS is registered than the one that is served.
const otherACS = "restore what has changed in the agent's card or in the configuration, or register a new version"

// AtMount is what is wrong where the registered endpoint is the mount point, and RegisterAnew what to do.
const (
	AtMount = "it is registered with the mount point as its endpoint: calls by rpc arrive, and Leaders that look for " +
		"streams beside the endpoint find none"
	RegisterAnew = "what works today goes on; to have <mount>/rpc registered, raise the version, in the agent's card or " +
		"by version in card, and register it, as by caddy aip acs register --new-version: it gets another AIC"
)

// SetAIC is what to do where a Partner has no AIC, and its site shows no certificate with one.
const SetAIC = "have the site show the Partner's certificate, by its files behind tls, or set aic and write " +
	"get_certificate aip; Leaders that compare no certificates need only aic"

// hiddenHeaders are those whose values Caddy's access log does not show, without log_credentials.
var hiddenHeaders = []string{"authorization", "cookie", "set-cookie", "proxy-authorization"}

// HidesHeader reports whether Caddy's access log does not show a header, without log_credentials.
func HidesHeader(name string) bool { return slices.Contains(hiddenHeaders, strings.ToLower(name)) }

// HideSecrets says how keys and tokens in a header are kept out of access logs.
func HideSecrets(header string) string {
	if HidesHeader(header) {
		return "take log_credentials out of the global option servers"
	}
	return "have callers send keys as Authorization: Bearer, which Caddy hides, or take the header out of the log: " +
		"format filter, with request>headers>" + header + " delete"
}

// adviser is what Advising returns.
type adviser struct {
	slog.Handler
	title func() string // nil for none
}

// Advising adds the name of a Partner to log lines, the advice to those with an error, and the trace to those of calls.
// Without a title, there is no Partner.
func Advising(to slog.Handler, title func() string) slog.Handler { return adviser{to, title} }

// Handle implements slog.Handler.
func (h adviser) Handle(ctx context.Context, r slog.Record) error {
	var advice string
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			advice = Advice(err)
		}
		return advice == ""
	})
	if advice != "" {
		r.AddAttrs(slog.String("advice", advice))
	}
	tracing.AddID(ctx, &r)
	if h.title != nil {
		r.AddAttrs(slog.String("name", h.title()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h adviser) WithAttrs(attrs []slog.Attr) slog.Handler {
	return adviser{h.Handler.WithAttrs(attrs), h.title}
}

// WithGroup implements slog.Handler.
func (h adviser) WithGroup(name string) slog.Handler {
	return adviser{h.Handler.WithGroup(name), h.title}
}
