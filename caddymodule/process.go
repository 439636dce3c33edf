// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"expvar"
	"log/slog"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap/exp/zapslog"

	"github.com/aip-gateway/aip-gateway/caddymodule/nodemetrics"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator"
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

// openStore is the host's side of a node.
type openStore struct {
	*node.Node

	admin   *operator.Admin
	metrics *nodemetrics.Exporter
}

// openBeside opens the host's side of a node.
func openBeside(n *node.Node) node.Beside {
	return &openStore{Node: n, admin: openAdmin(n), metrics: nodemetrics.NewExporter(context.Background(), logOf("aip"))}
}

// Close implements node.Beside.
func (o *openStore) Close() {
	o.admin.Close()
	o.metrics.Close()
}

// running returns the store of the running configuration; nil if none runs.
func running() *openStore {
	if n := process.Running(); n != nil {
		return n.Beside.(*openStore)
	}
	return nil
}

// newest returns the node's configuration in force; nil if there is none.
func (o *openStore) newest() *App {
	if c := o.InForce(); c != nil {
		return c.Host().(*App)
	}
	return nil
}

// newest returns the last configuration in force; nil before the first one.
func newest() *App {
	if c := process.Newest(); c != nil {
		return c.Host().(*App)
	}
	return nil
}

// members returns the handlers of the configuration in force. The list is not to be changed.
func (o *openStore) members() []*Gateway {
	if app := o.newest(); app != nil {
		return app.members
	}
	return nil
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
