// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

type socketKey struct{}

// host is a server with a handler that sends a head, has the connection taken over, and hands it to the test.
type host struct {
	*httptest.Server
	t      *testing.T
	change func(http.ResponseWriter) http.ResponseWriter
	passes func(http.ResponseWriter) bool
	drain  context.Context // nil for never

	taken chan *Conn
	gone  chan struct{} // receives when a caller has left
	err   chan error    // of a connection not taken over
}

func serve(t *testing.T, start func(*httptest.Server)) *host {
	h := &host{
		t: t, taken: make(chan *Conn, 1), gone: make(chan struct{}, 1), err: make(chan error, 1),
		passes: func(http.ResponseWriter) bool { return true },
	}
	h.Server = httptest.NewUnstartedServer(h)
	h.Config.ConnContext = withSocket
	start(h.Server)
	t.Cleanup(h.Close)
	return h
}

// withSocket has the requests of a connection know its socket.
func withSocket(ctx context.Context, c net.Conn) context.Context {
	for {
		under, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = under.NetConn()
	}
	socket, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		panic(err) // a connection of TCP has one
	}
	return context.WithValue(ctx, socketKey{}, socket)
}

// plain and secure are the ways of serving a host.
func plain(s *httptest.Server) { s.Start() }

func secure(s *httptest.Server) {
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
}

var ways = map[string]func(*httptest.Server){"plain": plain, "TLS": secure}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		h.t.Error(err)
	}
	if r.URL.Path != "/stream" {
		_, _ = io.WriteString(w, "an answer")
		return
	}
	if h.change != nil {
		w = h.change(w)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(w).Flush(); err != nil {
		h.t.Error(err)
	}
	socket, _ := r.Context().Value(socketKey{}).(syscall.RawConn)
	c, err := Take(w, r, Options{
		Socket: socket, Passes: h.passes, Gone: func() { h.gone <- struct{}{} }, Timeout: 10 * time.Second,
		Drain: h.drain,
	})
	if err != nil {
		h.err <- err
		return
	}
	h.taken <- c
}

// certificate is the callers' certificate.
var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	made := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "caller"},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, made, made, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
})

// dial opens a caller's connection.
func (h *host) dial(keys io.Writer) net.Conn {
	h.t.Helper()
	c, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	if h.TLS == nil {
		return c
	}
	return tls.Client(c, &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{certificate()}, KeyLogWriter: keys,
	})
}

// send writes to a caller's connection.
func (h *host) send(c net.Conn, text string) {
	h.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		h.t.Fatal(err)
	}
}

const request = "POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"

// wantSilence wants a connection to stay open, with nothing sent on it, for some time.
func (h *host) wantSilence(c net.Conn, in *bufio.Reader, d time.Duration) {
	h.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
		h.t.Fatal(err)
	}
	if b, err := in.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		h.t.Fatalf("the connection gives %q, %v, and is to stay as it is for %v", b, err, d)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		h.t.Fatal(err)
	}
}

// write writes a chunk of a response.
func (h *host) write(c *Conn, text string) {
	h.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		h.t.Fatal(err)
	}
}

// descriptors returns the number of open descriptors of the process.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}
