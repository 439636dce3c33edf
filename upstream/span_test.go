// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/upstream"
)

func TestSpan(t *testing.T) {
	var headers []http.Header
	answers := script{
		"send": func(w http.ResponseWriter, r *http.Request, _ int) {
			headers = append(headers, r.Header)
			io.WriteString(w, is("completed"))
		},
		"cancel": func(w http.ResponseWriter, r *http.Request, _ int) {
			headers = append(headers, r.Header)
			w.WriteHeader(500)
			io.WriteString(w, fails(-32002, "no"))
		},
	}
	seen := tracetest.NewSpanRecorder()
	withAgent(t, answers.handler(), func(c *settings) { c.URL = "http://agent:81/" },
		func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
			tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(seen)).Tracer("test")
			ctx, caller := tracer.Start(t.Context(), "caller")
			member, _ := baggage.NewMember("k", "v")
			bag, _ := baggage.New(member)
			ctx = baggage.ContextWithBaggage(ctx, bag)
			show(carryOut(ctx, h, turn("x"), false))
			h.Cancel(ctx, turn("x"))
			// An unrecorded caller is still passed on; an unknown one is not invented.
			far := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
				Remote: true})
			show(h.Run(trace.ContextWithRemoteSpanContext(t.Context(), far), turn("x"), false))
			show(carryOut(t.Context(), h, turn("x"), false))
			caller.End()
		})
	type span struct {
		Name, Parent string
		Attributes   map[attribute.Key]any
		Status       codes.Code
	}
	var got []span
	var want []string
	ended := seen.Ended()
	for _, s := range ended[:len(ended)-1] {
		attributes := map[attribute.Key]any{}
		for _, kv := range s.Attributes() {
			attributes[kv.Key] = kv.Value.AsInterface()
		}
		got = append(got, span{s.Name(), s.Parent().SpanID().String(), attributes, s.Status().Code})
		want = append(want, "00-"+s.SpanContext().TraceID().String()+"-"+s.SpanContext().SpanID().String()+"-01")
	}
	attributes := func(method string, status int64, more ...string) map[attribute.Key]any {
		m := map[attribute.Key]any{
			"rpc.system": "jsonrpc", "rpc.jsonrpc.version": "2.0", "rpc.method": method, "http.request.method": "POST",
			"server.address": "agent", "server.port": int64(81), "http.response.status_code": status,
		}
		for _, kind := range more {
			m["error.type"] = kind
		}
		return m
	}
	parent := ended[len(ended)-1].SpanContext().SpanID().String()
	if diff := cmp.Diff([]span{
		{"tasks/send", parent, attributes("tasks/send", 200), codes.Unset},
		{"tasks/cancel", parent, attributes("tasks/cancel", 500, "task-not-cancelable"), codes.Error},
	}, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	want = append(want, "00-01000000000000000000000000000000-0200000000000000-00", "")
	var parents, bags []string
	for _, h := range headers {
		parents, bags = append(parents, h.Get("Traceparent")), append(bags, h.Get("Baggage"))
	}
	if diff := cmp.Diff(want, parents); diff != "" {
		t.Errorf("traceparent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"k=v", "k=v", "", ""}, bags); diff != "" {
		t.Errorf("baggage (-want +got):\n%s", diff)
	}
}
