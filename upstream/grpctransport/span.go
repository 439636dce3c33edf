// SPDX-License-Identifier: Apache-2.0

package grpctransport

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/aip-gateway/aip-gateway/internal/tracing"
)

// startSpan starts the span of a call, and returns the header fields with the trace of ctx; nil if there is none.
func (r *route) startSpan(ctx context.Context) (http.Header, tracing.ClientSpan) {
	var s tracing.ClientSpan
	if tracing.Enabled(ctx, nil) {
		name := strings.TrimPrefix(r.method, "/")
		service, method, _ := strings.Cut(name, "/")
		ctx, s = tracing.StartClient(ctx, name, r.transport.url, attribute.String("rpc.system", "grpc"),
			attribute.String("rpc.service", service), attribute.String("rpc.method", method))
	}
	return tracing.Inject(ctx, nil), s
}
