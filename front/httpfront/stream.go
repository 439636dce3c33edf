// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"net/http"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/sseproxy"
)

// comeBack is the time for callers to wait before they come back for the rest of a stream. Drained streams end at
// random times, so not all come at once.
const comeBack = time.Second

// openStream is a stream under way.
type openStream struct {
	front   *Front
	stream  *gateway.Stream
	out     *sseproxy.Writer
	sink    gateway.Sink
	unguard func() // ends the guard of the connection
	began   time.Time
}

// stream sends a stream. A reply, if there is one, is sent first, as an event without a number. It returns the summary
// of the call when the stream has ended, or has outlived its request.
func (f *Front) stream(w http.ResponseWriter, r *http.Request, s *gateway.Stream, reply []byte) gateway.Summary {
	o := openStream{front: f, stream: s, unguard: guardConnection(r.Context(), f.config.WriteTimeout), began: time.Now()}
	takenOver := false
	defer func() { // after a panic, too
		if !takenOver {
			o.close()
		}
	}()
	options := sseproxy.Options{
		Heartbeat: f.config.Heartbeat, Timeout: f.config.WriteTimeout, HeartbeatDue: s.Wake,
		Taken: s.Taken, Lasting: r.ProtoMajor == 1,
	}
	if s.Numbered() {
		options.Retry = comeBack
	}
	o.out = sseproxy.NewWriter(w, options)
	if reply != nil {
		o.out.Data(func(dst []byte) []byte { return append(dst, reply...) })
		if err := o.out.Flush(); err != nil {
			s.Cut(err)
		}
	}
	o.sink = sinkOf(r.Context(), o.out, r.ProtoMajor)
	if f.mayTakeOver(r) {
		if s.RunFor(o.sink, f.config.TakeOver.After) {
			return s.Outcome().Summary
		}
		summary := s.Summary() // another goroutine runs it then
		if takenOver = o.takeOver(w, r); takenOver {
			return summary
		}
	}
	s.Run(o.sink)
	return s.Outcome().Summary
}

// close gives back everything the stream holds.
func (o *openStream) close() {
	if o.out != nil {
		o.out.Close()
	}
	o.unguard()
	o.stream.Close()
}
