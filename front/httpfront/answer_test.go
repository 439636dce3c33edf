// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// dated is a response with a visible deadline.
type dated struct {
	*httptest.ResponseRecorder
	deadline time.Time
	unbound  int // writes without a deadline
}

func (d *dated) SetWriteDeadline(at time.Time) error {
	d.deadline = at
	return nil
}

func (d *dated) Write(b []byte) (int, error) {
	if d.deadline.IsZero() {
		d.unbound++
	}
	return d.ResponseRecorder.Write(b)
}

// TestAnswersHaveADeadline: from HTTP/2 on, a caller taking nothing in holds no answer for ever, large or small. Over
// HTTP/1.1 no deadline is left for the next request of the connection.
func TestAnswersHaveADeadline(t *testing.T) {
	g := open(t, func(h *setup) { h.Limits.Bytes = 1 << 20 })
	for major, bound := range map[int]bool{1: false, 2: true, 3: true} {
		for id, size := range map[string]int{"small": 10, "large": 2 * pieceSize} {
			r := httptest.NewRequest("POST", "/agents/one/rpc", strings.NewReader(message("rpc", "start", id,
				strings.Repeat("x", size))))
			r.ProtoMajor = major
			w := &dated{ResponseRecorder: httptest.NewRecorder()}
			g.ServeHTTP(w, r)
			if w.Body.Len() < size {
				t.Errorf("HTTP/%d, %s: the answer is %.300s", major, id, w.Body)
			}
			if left := !w.deadline.IsZero(); left != bound || bound && w.unbound > 0 {
				t.Errorf("HTTP/%d, %s: a deadline is left: %v, want %v; %d writes had none", major, id, left, bound,
					w.unbound)
			}
		}
	}
}
