// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"context"
	"net/http"

	"github.com/tidwall/gjson"
	"go.opentelemetry.io/otel/attribute"

	"github.com/aip-gateway/aip-gateway/internal/tracing"
)

// startSpan starts the span of a request, and returns the header with the trace of ctx in it, nil if there is none. The
// given header is not changed. A request other than JSON-RPC is named by its method of HTTP, as its path would name a
// task.
func (t *Transport) startSpan(
	ctx context.Context,
	method string,
	body []byte,
	header http.Header,
) (http.Header, tracing.ClientSpan) {
	var s tracing.ClientSpan
	if tracing.Enabled(ctx, nil) {
		name, attributes := method, []attribute.KeyValue{attribute.String("http.request.method", method)}
		if t.facets.Binder == nil {
			name = gjson.GetBytes(body, "method").Str
			attributes = append(attributes, attribute.String("rpc.system", "jsonrpc"),
				attribute.String("rpc.jsonrpc.version", "2.0"), attribute.String("rpc.method", name))
		}
		ctx, s = tracing.StartClient(ctx, name, t.url, attributes...)
	}
	return tracing.Inject(ctx, header), s
}
