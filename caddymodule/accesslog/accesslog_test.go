// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/task"
)

const (
	aic  = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	user = "alice.aid.pub"
)

// answered is the summary of a call that a policy has denied, and denied has its fields in a log.
var (
	answered = gateway.Summary{Dialect: "aip", Command: "start", Leader: aic, User: user, Task: "t-1",
		State: task.Rejected, Error: "authorization-failed", Rule: "guests", Trace: trace.TraceID{15: 7}}
	denied = map[string]any{"dialect": "aip", "command": "start", "leader": aic, "task": "t-1", "state": "rejected",
		"error": "authorization-failed", "rule": "guests", "trace_id": "00000000000000000000000000000007"}
)

// request returns a request to a host as Caddy has it, with logs of its server and some variables.
func request(host string, logs *caddyhttp.ServerLogConfig, vars map[string]any) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://a.example/", nil)
	r.Host = host
	ctx := context.WithValue(r.Context(), caddyhttp.VarsCtxKey, vars)
	ctx = context.WithValue(ctx, caddyhttp.ServerCtxKey, &caddyhttp.Server{Logs: logs})
	return r.WithContext(ctx)
}

// TestPlaceholders: they have the fields of the call that was answered, and leave all others to Caddy.
func TestPlaceholders(t *testing.T) {
	repl, record := caddy.NewEmptyReplacer(), new(Record)
	repl.Set("http.request.host", "a.example")
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	record.SetPlaceholders(r) // of another host than Caddy, nothing
	record.SetPlaceholders(r.WithContext(context.WithValue(r.Context(), caddy.ReplacerCtxKey, repl)))
	const text = "{aip.dialect} {aip.command} {aip.leader} {aip.task} {aip.state} {aip.error} {aip.rule} " +
		"{aip.trace_id} {http.auth.user.id} {aip.user} {command} {http.request.host}"
	for _, tc := range []struct {
		of   gateway.Summary
		want string
	}{
		{gateway.Summary{}, "- - - - - - - - {http.auth.user.id} {aip.user} {command} a.example"},
		{gateway.Summary{Command: "get", State: task.Working},
			"- get - - working - - - {http.auth.user.id} {aip.user} {command} a.example"},
		{answered, "aip start " + aic + " t-1 rejected authorization-failed guests 00000000000000000000000000000007 " +
			user + " {aip.user} {command} a.example"},
	} {
		record.Summary = tc.of // when the call was answered, after the placeholders were set
		if diff := cmp.Diff(tc.want, repl.ReplaceKnown(text, "-")); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.of, diff)
		}
	}
}

// TestFields: an object has the known fields of the call, and no others.
func TestFields(t *testing.T) {
	for _, tc := range []struct {
		of   gateway.Summary
		want map[string]any
	}{
		{answered, denied},
		{gateway.Summary{Command: "get", User: user}, map[string]any{"command": "get"}},
		{gateway.Summary{}, map[string]any{}},
	} {
		e := zapcore.NewMapObjectEncoder()
		zap.Object("aip", &Record{tc.of}).AddTo(e)
		if diff := cmp.Diff(map[string]any{"aip": tc.want}, e.Fields); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.of, diff)
		}
	}
}

// TestAddTo: the line of a request has the record once, also after two handlers.
func TestAddTo(t *testing.T) {
	got, want, record := new(caddyhttp.ExtraLogFields), new(caddyhttp.ExtraLogFields), &Record{answered}
	got.Set(zap.String("uuid", "u"))
	want.Set(zap.String("uuid", "u"))
	want.Set(zap.Object("aip", record))
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	record.AddTo(r) // of another host than Caddy, to nothing
	r = r.WithContext(context.WithValue(r.Context(), caddyhttp.ExtraLogFieldsCtxKey, got))
	new(Record).AddTo(r)
	record.AddTo(r)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(caddyhttp.ExtraLogFields{}),
		cmpopts.IgnoreFields(caddyhttp.ExtraLogFields{}, "handlers")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// names writes a line to a log, and returns the names of the loggers that have it; nil for no log.
func names(log *slog.Logger, seen *observer.ObservedLogs) (all []string) {
	if log == nil {
		return nil
	}
	log.Info("a line")
	all = []string{}
	for _, line := range seen.TakeAll() {
		all = append(all, line.LoggerName)
	}
	return all
}

// TestLogs: a request is logged by the loggers of its host, by those that its site names, or by none.
func TestLogs(t *testing.T) {
	core, seen := observer.New(zap.InfoLevel)
	logs := Logs{core}
	named := func(all ...any) map[string]any {
		return map[string]any{caddyhttp.AccessLoggerNameVarKey: all}
	}
	ofHost := &caddyhttp.ServerLogConfig{DefaultLoggerName: "rest", LoggerNames: map[string]caddyhttp.StringArray{
		"a.example": {"one", "two"}, "quiet.example": {}, "*.wild.example": {"wild"}, "own.wild.example": {"own", ""},
	}, SkipHosts: []string{"b.example", "*.c.example"}}
	only := &caddyhttp.ServerLogConfig{SkipUnmappedHosts: true, LoggerNames: ofHost.LoggerNames}
	for _, tc := range []struct {
		logs *caddyhttp.ServerLogConfig
		host string
		vars map[string]any
		want []string
	}{
		{nil, "a.example", nil, nil},
		{new(caddyhttp.ServerLogConfig), "a.example", nil, []string{"http.log.access"}},
		{ofHost, "a.example", nil, []string{"http.log.access.one", "http.log.access.two"}},
		{ofHost, "A.Example:8443", nil, []string{"http.log.access.one", "http.log.access.two"}},
		{ofHost, "quiet.example", nil, nil},
		{ofHost, "x.wild.example", nil, []string{"http.log.access.wild"}},
		{ofHost, "own.wild.example", nil, []string{"http.log.access.own", "http.log.access"}},
		{ofHost, "wild.example", nil, []string{"http.log.access.rest"}},
		{ofHost, "[::1]:443", nil, []string{"http.log.access.rest"}},
		{ofHost, "b.example:443", nil, nil},
		{ofHost, "x.c.example", nil, nil},
		{only, "d.example", nil, nil},
		{only, "a.example", nil, []string{"http.log.access.one", "http.log.access.two"}},
		{ofHost, "a.example", map[string]any{caddyhttp.LogSkipVar: true}, nil},
		{ofHost, "x.wild.example", map[string]any{caddyhttp.LogSkipVar: false}, []string{"http.log.access.wild"}},
		{ofHost, "a.example", named("mine", "", "yours"), []string{"http.log.access.mine", "http.log.access",
			"http.log.access.yours"}},
		{ofHost, "a.example", named(), nil},
		{ofHost, "a.example", map[string]any{caddyhttp.AccessLoggerNameVarKey: "mine"}, []string{"http.log.access.one",
			"http.log.access.two"}},
	} {
		got := names(logs.Of(request(tc.host, tc.logs, tc.vars)), seen)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s of %+v with %v (-want +got):\n%s", tc.host, tc.logs, tc.vars, diff)
		}
	}
	if logs.Of(httptest.NewRequest(http.MethodPost, "/", nil)) != nil {
		t.Error("a request of another host than Caddy has a log")
	}
	for host, want := range map[string][]string{"": {"http.log.access.rest"}, "b.example": nil,
		"*.wild.example": {"http.log.access.wild"}} {
		if diff := cmp.Diff(want, names(logs.OfHost(ofHost, host), seen)); diff != "" {
			t.Errorf("the host %s (-want +got):\n%s", host, diff)
		}
	}
}

// TestLogsAsCaddy: where the settings of hosts contradict each other, a host is logged where Caddy logs it. The line of
// Caddy about a push is replaced, and one that is not found would show the secrets of the push.
func TestLogsAsCaddy(t *testing.T) {
	core, seen := observer.New(zap.InfoLevel)
	logs := Logs{core}
	named := map[string]any{caddyhttp.AccessLoggerNameVarKey: []any{"mine"}}
	wild := map[string]caddyhttp.StringArray{"*.a.example": {"wild"}, "*.*.b.example": {"deep"}}
	for _, tc := range []struct {
		logs caddyhttp.ServerLogConfig
		host string
		vars map[string]any
		want []string
	}{
		// A logger of more hosts comes before the host's own absence.
		{caddyhttp.ServerLogConfig{LoggerNames: wild, SkipHosts: []string{"x.a.example"}}, "x.a.example", nil,
			[]string{"http.log.access.wild"}},
		// A pattern may have several stars.
		{caddyhttp.ServerLogConfig{LoggerNames: wild, SkipUnmappedHosts: true}, "x.y.b.example", nil,
			[]string{"http.log.access.deep"}},
		{caddyhttp.ServerLogConfig{SkipHosts: []string{"*.*.b.example"}}, "x.y.b.example", nil, nil},
		// The host of a pattern is matched in any case.
		{caddyhttp.ServerLogConfig{SkipHosts: []string{"B.Example"}}, "b.example", nil, nil},
		// A logger that a site names logs no host that is not to be logged.
		{caddyhttp.ServerLogConfig{SkipHosts: []string{"b.example"}}, "b.example", named, nil},
		{caddyhttp.ServerLogConfig{SkipUnmappedHosts: true}, "b.example", named, nil},
		{caddyhttp.ServerLogConfig{SkipUnmappedHosts: true, LoggerNames: wild}, "x.a.example", named,
			[]string{"http.log.access.mine"}},
	} {
		got := names(logs.Of(request(tc.host, &tc.logs, tc.vars)), seen)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s of %+v with %v (-want +got):\n%s", tc.host, tc.logs, tc.vars, diff)
		}
	}
}
