// SPDX-License-Identifier: Apache-2.0

package auntest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/coder/websocket"
)

// Network is a network in memory, usable in a bubble of testing/synctest: HTTP servers by their names. All of it is
// plain, also if a client asks for TLS.
type Network struct {
	t       testing.TB
	mu      sync.Mutex
	servers map[string]*listener
}

// NewNetwork returns a network without servers. Added servers are closed at the end of the test.
func NewNetwork(t testing.TB) *Network {
	n := &Network{t: t, servers: make(map[string]*listener)}
	return n
}

// Serve adds a server, and returns a function for removing it and breaking all of its connections.
func (n *Network) Serve(host string, h http.Handler) (stop func()) {
	l := &listener{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: h}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	n.mu.Lock()
	n.servers[host] = l
	n.mu.Unlock()
	stop = sync.OnceFunc(func() {
		n.mu.Lock()
		if n.servers[host] == l {
			delete(n.servers, host)
		}
		n.mu.Unlock()
		_ = server.Close()
		l.cut()
		<-served
	})
	n.t.Cleanup(stop)
	return stop
}

// Cut breaks all connections to a server, without a close frame.
func (n *Network) Cut(host string) {
	n.mu.Lock()
	l := n.servers[host]
	n.mu.Unlock()
	l.cut()
}

// Dial connects to a server.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	n.mu.Lock()
	l := n.servers[host]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: fmt.Errorf("there is no server %s", host)}
	}
	near, far := net.Pipe()
	select {
	case l.conns <- l.keep(far):
		return near, nil
	case <-l.done:
	case <-ctx.Done():
	}
	_ = near.Close()
	return nil, &net.OpError{Op: "dial", Net: "memory", Err: net.ErrClosed}
}

// Client returns an HTTP client of the network.
func (n *Network) Client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: n.Dial, DialTLSContext: n.Dial, DisableKeepAlives: true}}
}

// Pipe returns the two ends of a WebSocket connection.
func Pipe(t testing.TB) (client, server *websocket.Conn) {
	t.Helper()
	n := NewNetwork(t)
	accepted := make(chan *websocket.Conn, 1)
	n.Serve("pipe", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- ws
	}))
	client, _, err := websocket.Dial(context.Background(), "ws://pipe/",
		&websocket.DialOptions{HTTPClient: n.Client()})
	if err != nil {
		t.Fatal(err)
	}
	return client, <-accepted
}

// listener is the listener of one server.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once

	mu   sync.Mutex
	kept []net.Conn
}

func (l *listener) keep(c net.Conn) net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, c)
	return c
}

func (l *listener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.kept {
		_ = c.Close()
	}
	l.kept = nil
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }
