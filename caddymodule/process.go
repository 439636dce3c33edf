// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"expvar"
	"log/slog"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/exp/zapslog"

	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/node"
)

// The state that all configurations share.
var (
	process    = node.NewProcess(node.Host{Log: logOf, Exiting: caddy.Exiting})
	processPKI = pki.NewProcess(process, logOf)
)

func init() {
	caddy.RegisterModule(processPKI.RootPool())
	process.Beside = openBeside
	// Caddy's admin API serves it under /debug/vars.
	expvar.Publish("aip", expvar.Func(func() any {
		return map[string]int64{"memory": process.Memory.Total(), "streams": process.Streams.Total(),
			"streams_taken_over": process.TakenOver.Total()}
	}))
}

// processLog is the log of objects that outlive a configuration: the current default log of Caddy, because the log of
// an earlier configuration may be closed.
type processLog struct {
	name  string
	attrs []slog.Attr
}

// logOf returns the log of a part of the process.
func logOf(name string) *slog.Logger { return slog.New(processLog{name: name}) }

func (processLog) now() slog.Handler { return zapslog.NewHandler(caddy.Log().Core()) }

// Enabled implements slog.Handler.
func (l processLog) Enabled(ctx context.Context, level slog.Level) bool {
	return l.now().Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l processLog) Handle(ctx context.Context, r slog.Record) error {
	tracing.AddID(ctx, &r)
	r.AddAttrs(slog.String("logger", l.name))
	return l.now().WithAttrs(l.attrs).Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l processLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	l.attrs = append(l.attrs[:len(l.attrs):len(l.attrs)], attrs...)
	return l
}

// WithGroup implements slog.Handler. Groups are ignored, because no log line here has one.
func (l processLog) WithGroup(string) slog.Handler { return l }
