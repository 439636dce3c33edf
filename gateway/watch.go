// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/task"
)

// Answered is an answered call, for reports of calls. If it is a stream, it has begun.
type Answered struct {
	Summary
	Kind    task.Kind     // of the error, if there is one
	At      time.Time     // when the call was decoded
	Took    time.Duration // of a stream: until it began
	Address string        // of the caller, as the front knows it
	Trace   trace.SpanContext
}

// count counts a call, ended with an error or nil after some time, and hands it to Config.Watch.
func (x *exchange) count(err error, took time.Duration) {
	x.g.meter.count(x, err, took)
	watch := x.g.config.Watch
	if watch == nil {
		return
	}
	a := &Answered{Summary: x.summary(err), At: time.Now().Add(-took), Took: took, Address: x.in.Address,
		Trace: x.span.SpanContext()}
	if err != nil {
		a.Kind = task.KindOf(err)
	}
	watch(a)
}
