// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/aip-gateway/aip-gateway/front/httpfront/takeover"
)

// TakeOver lets streams over HTTP/1.1 outlive their requests: a resting stream takes the connection over, and
// everything the server and the host keep of the request is freed.
type TakeOver struct {
	// After is the least age of a stream outliving its request when it rests. A stream ending sooner would only waste the
	// time.
	After time.Duration
	// Passes reports whether a ResponseWriter of the host passes its input on unchanged. A stream with another one does
	// not outlive its request. nil: none does.
	Passes func(http.ResponseWriter) bool
	// Begin is called when a stream outlives its request, and end when the stream has ended. It must be set with Passes.
	Begin func() (end func())
	// Log returns the log for the line at the end of such a stream, missing from the host's log of requests. nil: the line
	// is logged at debug level.
	Log func(*http.Request) *slog.Logger
}

// mayTakeOver reports whether the stream of a request may take its connection over.
func (f *Front) mayTakeOver(r *http.Request) bool {
	return f.config.TakeOver.Passes != nil && r.ProtoMajor == 1 && hasOwnBody(r) && !f.gateway.Draining()
}

// takenOverStream is a stream after the end of its request.
type takenOverStream struct {
	openStream
	conn    *takeover.Conn
	end     func() // of TakeOver.Begin
	log     *slog.Logger
	level   slog.Level
	address string
}

// errLeft means the caller has closed the connection, or has sent more bytes than a caller may during a response.
var errLeft = errors.New("httpfront: the caller has left")

// takeOver has the stream outlive its request. It reports whether it does: if not, it is continued as it is.
func (o *openStream) takeOver(w http.ResponseWriter, r *http.Request) bool {
	connection, _ := r.Context().Value(connectionKey{}).(*connection)
	if connection == nil {
		return false
	}
	config := &o.front.config
	stream := o.stream
	conn, err := takeover.Take(w, r, takeover.Options{
		Socket: connection.socket, Passes: config.TakeOver.Passes, Gone: func() { stream.Cut(errLeft) },
		Timeout: config.WriteTimeout, Drain: o.front.gateway.Replaced(),
	})
	switch {
	case errors.Is(err, takeover.ErrUnable):
		return false
	case err != nil: // nothing more can be sent
		stream.Cut(err)
		return false
	}
	l := &takenOverStream{openStream: *o, conn: conn, end: config.TakeOver.Begin(), log: config.Log,
		level: slog.LevelDebug, address: r.RemoteAddr}
	if config.TakeOver.Log != nil {
		if log := config.TakeOver.Log(r); log != nil {
			l.log, l.level = log, slog.LevelInfo
		}
	}
	l.out.Continue(conn)
	stream.SetTransport("HTTP/1.1, taken over")
	stream.Park(l.sink, l.over)
	return true
}

// over ends the response, and logs the end of its stream.
func (l *takenOverStream) over() {
	front, outcome := l.front, l.stream.Outcome()
	l.close()
	l.conn.End(outcome.Complete, !front.gateway.Draining())
	reason := "the stream is complete"
	if outcome.Why != nil {
		reason = outcome.Why.Error()
	}
	l.log.Log(context.Background(), l.level, "a stream has ended", "user_id", outcome.Summary.User,
		"aip", outcome.Summary, "leader", outcome.Summary.Leader, "address", l.address, "task", outcome.Summary.Task,
		"events", outcome.Events, "bytes", l.conn.Size(), "duration", time.Since(l.began).Round(time.Millisecond),
		"reason", reason)
	l.end()
}
