// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/aip-gateway/aip-gateway/internal/bufpool"
	"github.com/aip-gateway/aip-gateway/internal/protobytes"
)

// grpcSink is the sink of a stream of gRPC. A message has no number: a caller resuming a stream gets the task first.
// There are no comments either, and HTTP/2 keeps the connection.
type grpcSink struct {
	writer *grpcWriter
	out    *connect.ServerStream[protobytes.Message]

	data    *[]byte // gathered messages; nil for none, so an idle stream holds no buffer
	ends    []int   // of the messages in data
	failure []byte  // the google.rpc.Status at the end of the stream; nil for none
}

var grpcMessages = bufpool.Pool{Largest: 128 << 10}

// open sends the header, for the caller to know of the open stream.
func (s *grpcSink) open() error { return s.out.Conn().Send(nil) }

// send sends one message.
func (s *grpcSink) send(message []byte) error { return s.out.Send(&protobytes.Message{Data: message}) }

// Event implements gateway.Sink.
func (s *grpcSink) Event(_ uint64, build func(dst []byte) (data []byte, name string, more bool)) {
	if s.data == nil {
		s.data = grpcMessages.Get()
	}
	if data, _, _ := build(*s.data); data != nil {
		*s.data, s.ends = data, append(s.ends, len(data))
	}
}

// Data implements gateway.Sink: it is the error at the end of the stream.
func (s *grpcSink) Data(build func(dst []byte) []byte) { s.failure = build(nil) }

// Comment implements gateway.Sink.
func (*grpcSink) Comment(string) {}

// Buffered implements gateway.Sink.
func (s *grpcSink) Buffered() int {
	if s.data == nil {
		return 0
	}
	return len(*s.data)
}

// Flush implements gateway.Sink. Package connect flushes each message, so flushing is held back until the last one.
func (s *grpcSink) Flush() (err error) {
	from := 0
	for i, end := range s.ends {
		s.writer.holding = i < len(s.ends)-1
		if err = s.send((*s.data)[from:end]); err != nil {
			break
		}
		from = end
	}
	s.writer.holding = false
	s.ends = s.ends[:0]
	if s.data != nil {
		grpcMessages.Put(s.data)
		s.data = nil
	}
	return err
}

// Abort implements gateway.AbortSink.
func (s *grpcSink) Abort() { s.writer.abort() }

// grpcWriter writes the answer to a request of gRPC. The caller must read each piece of it in time.
type grpcWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	holding bool // Flush does nothing
	aborted atomic.Bool
	taken   func() // is called when the caller has taken a piece, and more is to follow; nil: nothing is called
}

func newGRPCWriter(w http.ResponseWriter, timeout time.Duration) *grpcWriter {
	return &grpcWriter{ResponseWriter: w, control: http.NewResponseController(w), timeout: timeout}
}

// abort has the present write fail, and the next ones. It may be called by any goroutine.
func (w *grpcWriter) abort() {
	w.aborted.Store(true)
	_ = w.control.SetWriteDeadline(longAgo)
}

// deadline sets the deadline of writes; zero for none. After abort, the deadline is over whatever is set.
func (w *grpcWriter) deadline(at time.Time) {
	_ = w.control.SetWriteDeadline(at)
	if w.aborted.Load() {
		_ = w.control.SetWriteDeadline(longAgo)
	}
}

// longAgo is a deadline in the past.
var longAgo = time.Unix(1, 0)

// Write implements io.Writer.
func (w *grpcWriter) Write(data []byte) (n int, err error) {
	defer w.deadline(time.Time{})
	for piece := range slices.Chunk(data, pieceSize) {
		w.deadline(time.Now().Add(w.timeout))
		m, err := w.ResponseWriter.Write(piece)
		if n += m; err != nil {
			return n, err
		}
		if n < len(data) && w.taken != nil {
			w.taken()
		}
	}
	return n, nil
}

// Flush implements http.Flusher. The peer may block it by flow control, too.
func (w *grpcWriter) Flush() {
	if !w.holding {
		w.deadline(time.Now().Add(w.timeout))
		_ = w.control.Flush() // a broken connection fails at the next write
		w.deadline(time.Time{})
	}
}

// Unwrap returns the writer of the server, for http.ResponseController.
func (w *grpcWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
