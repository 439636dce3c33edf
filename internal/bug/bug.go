// SPDX-License-Identifier: Apache-2.0

// Package bug logs a panic caused by one request, task or delivery. Such a panic must not end the process.
package bug

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
)

// Log logs a message with the result of recover and the stack of the panic. It must be called by the deferred function.
// The value of a panic may hold a payload, so only its type is logged, unless it is Go's own error.
func Log(ctx context.Context, log *slog.Logger, message string, recovered any, about ...slog.Attr) {
	why := fmt.Sprintf("%T", recovered)
	if e, ok := recovered.(runtime.Error); ok {
		why = e.Error()
	}
	log.LogAttrs(ctx, slog.LevelError, message,
		append(about, slog.String("panic", why), slog.String("stack", string(debug.Stack())))...)
}
