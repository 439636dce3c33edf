// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bufio"
	"io"
	"net"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
)

// TestReadsThatWait has more reads of streams wait than there are readers. Meanwhile the callers of other streams
// leave, and are noticed, and a caller on a resting connection makes its next call.
func TestReadsThatWait(t *testing.T) {
	h := serve(t, plain)
	stream := func() (net.Conn, *Conn) {
		t.Helper()
		c := h.dial(nil)
		h.send(c, request)
		return c, <-h.taken
	}
	rests, ended := stream()
	ended.End(true, true)
	r := bufio.NewReader(rests)
	if _, err := io.Copy(io.Discard, answer(t, r).Body); err != nil {
		t.Fatal(err)
	}
	var waiting []*Conn
	for range maxReaders + 10 {
		c, taken := stream()
		taken.reading.Lock() // as the read of a caller not reading TLS's answers
		waiting = append(waiting, taken)
		h.send(c, "x")
	}
	asynctest.Eventually(t, "all readers read", func() bool {
		streams.mu.Lock()
		defer streams.mu.Unlock()
		return streams.running == maxReaders && len(streams.waiting) == 10
	})
	for range 10 {
		c, taken := stream()
		waiting = append(waiting, taken)
		c.Close()
		<-h.gone
	}
	h.send(rests, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if body, err := io.ReadAll(answer(t, r).Body); string(body) != "an answer" || err != nil {
		t.Errorf("the next call is answered %q, %v", body, err)
	}
	for _, taken := range waiting[:maxReaders+10] {
		taken.reading.Unlock()
	}
	for _, taken := range waiting {
		taken.End(false, false)
	}
	asynctest.Eventually(t, "no reader is left", func() bool {
		streams.mu.Lock()
		defer streams.mu.Unlock()
		return streams.running == 0
	})
}
