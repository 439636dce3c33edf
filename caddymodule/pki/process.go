// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"log/slog"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/node"
)

// Process is what the modules of all configurations share.
type Process struct {
	node *node.Process
	log  func(name string) *slog.Logger // of a part of the process

	// checkers are those of all configurations, by their settings. A new configuration that has the same goes on with
	// what is known: else each reload would refuse callers until the sources have said again what they had said.
	checkers *caddy.UsagePool
}

// NewProcess returns what the modules share in a process that begins.
func NewProcess(of *node.Process, log func(name string) *slog.Logger) *Process {
	return &Process{node: of, log: log, checkers: caddy.NewUsagePool()}
}
