// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/sseproxy"
)

// abortable is a response with a caller given up at some moment. A write after its deadline fails.
type abortable struct {
	http.ResponseWriter
	deadline time.Time
	written  int
	before   func() // called before each write
	arming   func() // called before each deadline in the future
}

func (a *abortable) Header() http.Header { return http.Header{} }

func (a *abortable) WriteHeader(int) {}

func (a *abortable) Flush() {}

func (a *abortable) SetWriteDeadline(t time.Time) error {
	if a.arming != nil && t.After(time.Now()) {
		a.arming()
	}
	a.deadline = t
	return nil
}

func (a *abortable) Write(p []byte) (int, error) {
	if a.before != nil {
		a.before()
	}
	if !a.deadline.IsZero() && !time.Now().Before(a.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	a.written += len(p)
	return len(p), nil
}

// TestAbortBetweenWrites: an abandoned stream ends at its next write, also if a deadline is set in between.
func TestAbortBetweenWrites(t *testing.T) {
	t.Run("gRPC", func(t *testing.T) {
		out := new(abortable)
		w := newGRPCWriter(out, time.Minute)
		s := &grpcSink{writer: w}
		out.arming = func() {
			if out.written == pieceSize { // between two pieces
				s.Abort()
			}
		}
		if n, err := w.Write(make([]byte, 3*pieceSize)); n != pieceSize || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes are written, %v", n, err)
		}
		if _, err := w.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the next write: %v", err)
		}
	})
	t.Run("server-sent events", func(t *testing.T) {
		out := new(abortable)
		w := sseproxy.NewWriter(out, sseproxy.Options{Heartbeat: time.Minute, Timeout: time.Minute})
		defer w.Close()
		out.arming = w.Abort
		w.Comment("x")
		if err := w.Flush(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Flush: %v", err)
		}
	})
}
