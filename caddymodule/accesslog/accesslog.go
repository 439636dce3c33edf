// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"
	"go.uber.org/zap/zapcore"

	"github.com/aip-gateway/aip-gateway/gateway"
)

// Record shows a call in Caddy's access log, as the object aip and as user_id, and in the placeholders {aip.*}.
// Its fields are read after the call was answered.
type Record struct{ gateway.Summary }

// userID is the placeholder from which Caddy's access log has user_id. Handlers that authenticate set it as well, and
// theirs comes first.
const userID = "http.auth.user.id"

// SetPlaceholders sets the placeholders of a request. They have values when the call was answered.
func (c *Record) SetPlaceholders(r *http.Request) {
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		repl.Map(c.value)
	}
}

// AddTo adds the record to the line of a request in the access log. It is called at the end of the request: Caddy adds
// such fields to all lines that are logged with its context.
func (c *Record) AddTo(r *http.Request) {
	if fields, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		fields.Set(zap.Object("aip", c))
	}
}

// value returns the value of a placeholder.
func (c *Record) value(name string) (any, bool) {
	if name == userID && c.User != "" {
		return c.User, true
	}
	if field, ok := strings.CutPrefix(name, "aip."); ok {
		if value, ok := c.Field(field); ok {
			return value, true
		}
	}
	return nil, false
}

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (c *Record) MarshalLogObject(e zapcore.ObjectEncoder) error {
	c.Each(e.AddString)
	return nil
}

// Logs are Caddy's access logs.
type Logs struct {
	Core zapcore.Core // of Caddy's app http
}

// Of returns the access log of the site of a request, for what Caddy's own line lacks: the end of a stream that
// has outlived its request, and the calls over a WebSocket. nil if the site has none.
func (l *Logs) Of(r *http.Request) *slog.Logger {
	server, ok := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok || server.Logs == nil {
		return nil
	}
	if skip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.LogSkipVar).(bool); skip {
		return nil
	}
	return l.of(accessLoggers(server.Logs, r))
}

// OfHost returns the access log of a host, for commands that come by no request. nil if the host has none.
func (l *Logs) OfHost(logs *caddyhttp.ServerLogConfig, host string) *slog.Logger {
	return l.of(loggersOfHost(logs, host))
}

// of returns the access log with some names.
func (l *Logs) of(names []string) *slog.Logger {
	var handlers []slog.Handler
	for _, name := range names {
		name = strings.TrimSuffix(accessLogger+"."+name, ".")
		handlers = append(handlers, zapslog.NewHandler(l.Core, zapslog.WithName(name)))
	}
	if handlers == nil {
		return nil
	}
	return slog.New(slog.NewMultiHandler(handlers...))
}

// accessLogger is the name of Caddy's logger of requests.
const accessLogger = "http.log.access"

// accessLoggers returns the names of the loggers of a request, as Caddy chooses them: a name stands below
// accessLogger, and the empty one for that itself.
func accessLoggers(logs *caddyhttp.ServerLogConfig, r *http.Request) []string {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	list, ok := caddyhttp.GetVar(r.Context(), caddyhttp.AccessLoggerNameVarKey).([]any)
	switch {
	case !ok:
		return loggersOfHost(logs, host)
	case !logsHost(logs, host):
		return nil
	}
	var names []string
	for _, name := range list {
		if name, ok := name.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// logsHost reports whether requests to a host are logged. A logger of its own comes before all that keeps hosts out.
func logsHost(logs *caddyhttp.ServerLogConfig, host string) bool {
	matches := func(pattern string) bool { return certmagic.MatchWildcard(host, pattern) }
	for pattern := range logs.LoggerNames {
		if matches(pattern) {
			return true
		}
	}
	return !logs.SkipUnmappedHosts && !slices.ContainsFunc(logs.SkipHosts, matches)
}

// loggersOfHost returns the names of the loggers of requests to a host.
func loggersOfHost(logs *caddyhttp.ServerLogConfig, host string) []string {
	if !logsHost(logs, host) {
		return nil
	}
	host = strings.ToLower(host)
	if names, ok := logs.LoggerNames[host]; ok {
		return names
	}
	labels := strings.Split(host, ".")
	for i, label := range labels {
		if label == "" {
			continue
		}
		labels[i] = "*"
		if names, ok := logs.LoggerNames[strings.Join(labels, ".")]; ok {
			return names
		}
	}
	return []string{logs.DefaultLoggerName}
}
