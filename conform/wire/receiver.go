// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Hook is a request that a Receiver got.
type Hook struct {
	Method, Path string
	Headers      http.Header
	Body         []byte
	Status       int // that it was answered with
	At           time.Time
}

// Receiver is a server for webhooks. The caller must close it. The path of its URL is used once: what an earlier test
// left to be delivered may arrive late, at the port of this one.
type Receiver struct {
	URL string

	server  *http.Server
	respond []int
	delay   time.Duration
	serving sync.WaitGroup

	mu    sync.Mutex
	hooks []Hook
	news  chan struct{}
}

// Listening says where receivers are.
type Listening struct {
	// Address is a host, and a port or 0: 127.0.0.1:0 if empty.
	Address string
	// Host is the host in the URL, if it is not that of Address.
	Host string
	// Certificate is that of receivers by HTTPS; nil for HTTP.
	Certificate *tls.Certificate
}

// Receive starts a Receiver. It answers with the statuses in turn, and with the last one from then on; with 200 if
// there are none; each after the delay.
func Receive(at Listening, respond []int, delay time.Duration) (*Receiver, error) {
	if at.Address == "" {
		at.Address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", at.Address)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	if at.Host != "" {
		host = at.Host
	}
	scheme := "http"
	if at.Certificate != nil {
		scheme = "https"
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*at.Certificate}})
	}
	path := "/hook/" + rand.Text()
	r := &Receiver{URL: scheme + "://" + net.JoinHostPort(host, port) + path, respond: respond, delay: delay,
		news: make(chan struct{})}
	mux := http.NewServeMux()
	mux.Handle(path, r)
	r.server = &http.Server{Handler: mux, ReadTimeout: 30 * time.Second, MaxHeaderBytes: maxHeaders}
	r.serving.Go(func() { r.server.Serve(listener) })
	return r, nil
}

// Close ends the server and its connections.
func (r *Receiver) Close() error {
	err := r.server.Close()
	r.serving.Wait()
	return err
}

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxHook+1))
	if err != nil || len(body) > maxHook {
		http.Error(w, fmt.Sprintf("the body must be complete, and have at most %d bytes", maxHook), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	status := http.StatusOK
	if n := len(r.respond); n > 0 {
		status = r.respond[min(len(r.hooks), n-1)]
	}
	if len(r.hooks) < maxHooks {
		r.hooks = append(r.hooks, Hook{req.Method, req.URL.Path, req.Header, body, status, time.Now()})
	}
	close(r.news)
	r.news = make(chan struct{})
	r.mu.Unlock()
	if r.delay > 0 {
		select {
		case <-time.After(r.delay):
		case <-req.Context().Done():
		}
	}
	w.WriteHeader(status)
}

// Hooks returns the requests so far, and a channel that is closed at the next one.
func (r *Receiver) Hooks() ([]Hook, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hooks, r.news
}
