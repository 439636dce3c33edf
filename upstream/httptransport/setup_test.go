// SPDX-License-Identifier: Apache-2.0

package httptransport_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// rawAgent is an agent with its connections handled by serve. serve knows the number of the connection, from 0. It
// reads HTTP, and is free to write anything.
type rawAgent struct {
	httptransport.Config
	conns   atomic.Int64
	refuses atomic.Bool // certificates of clients, and none, by an alert of TLS
	serving sync.WaitGroup
}

// schemes are the ways to reach a rawAgent.
var schemes = []string{"http", "https"}

func newRawAgent(t testing.TB, scheme string, serve func(conn net.Conn, in *bufio.Reader, n int)) *rawAgent {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &rawAgent{Config: httptransport.Config{URL: scheme + "://" + l.Addr().String() + "/", Codec: a2a.Legacy()}}
	if scheme == "https" {
		srv := httptest.NewUnstartedServer(nil)
		srv.StartTLS()
		srv.Close()
		roots := x509.NewCertPool()
		roots.AddCert(srv.Certificate())
		a.TLS = &tls.Config{RootCAs: roots}
		l = tls.NewListener(l, &tls.Config{
			Certificates: srv.TLS.Certificates,
			GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				if !a.refuses.Load() {
					return nil, nil
				}
				return &tls.Config{Certificates: srv.TLS.Certificates, ClientAuth: tls.RequireAnyClientCert}, nil
			},
		})
	}
	a.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n := int(a.conns.Add(1)) - 1
			a.serving.Go(func() {
				defer conn.Close()
				serve(conn, bufio.NewReader(conn), n)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		a.serving.Wait()
	})
	return a
}

// transport returns a transport to the agent.
func (a *rawAgent) transport(t testing.TB) *httptransport.Transport {
	t.Helper()
	transport, err := httptransport.New(a.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(transport.Close)
	return transport
}

// readRequest reads a request, and returns its body.
func readRequest(in *bufio.Reader) (string, error) {
	req, err := http.ReadRequest(in)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(req.Body)
	return string(body), err
}

// answered is an answer of HTTP.
func answered(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body),
		body)
}

// requestOf is a request with a body.
func requestOf(body string) *upstream.Request {
	return &upstream.Request{Operation: translate.Send, Body: []byte(body), IdleTimeout: time.Minute}
}

// send sends a request and reads the answer.
func send(ctx context.Context, t upstream.Transport, r *upstream.Request) (string, error) {
	x, err := t.Routes(r.Operation)[0].Open(ctx, r)
	if err != nil {
		return "", err
	}
	var m upstream.Message
	if err = x.Begin(); err == nil {
		m, err = x.Next()
	}
	answer := string(m.Data)
	x.Close(err)
	return answer, err
}
