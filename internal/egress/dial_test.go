// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// listen returns a listener on 127.0.0.1 and its port.
func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return l, port
}

// untouched checks that no connection was made to l: connections are accepted in their order, and the first one is
// the test's own.
func untouched(t *testing.T, l net.Listener) {
	t.Helper()
	own, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if diff := cmp.Diff(own.LocalAddr().String(), first.RemoteAddr().String()); diff != "" {
		t.Errorf("another connection was made before (-want +got):\n%s", diff)
	}
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

func refusal(t *testing.T, dial dialFunc, address string) *RefusedError {
	t.Helper()
	conn, err := dial(t.Context(), "tcp", address)
	if conn != nil {
		_ = conn.Close()
	}
	var refused *RefusedError
	if conn != nil || !errors.As(err, &refused) {
		t.Fatalf("%s: a connection %v and error %v, want a *RefusedError alone", address, conn != nil, err)
	}
	return refused
}

func TestDialAfterRebinding(t *testing.T) {
	dns := startDNS(t)
	l, port := listen(t)
	d := &Dialer{Resolver: dns.resolver()}

	// When the webhook is set, all is well.
	dns.set("rebind.example", "8.8.8.8")
	u, err := d.Policy.CheckURL("https://rebind.example:" + port + "/")
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := d.Resolver.LookupNetIP(t.Context(), "ip4", u.Hostname())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"8.8.8.8"}, []string{addrs[0].String()}); diff != "" {
		t.Fatalf("the first answer (-want +got):\n%s", diff)
	}
	if err := d.Policy.judge(addrs[0], false); err != nil {
		t.Fatal(err)
	}

	// When it is delivered, it is not.
	dns.set("rebind.example", "127.0.0.1")
	want := RefusedError{
		Kind: NotPublic, Host: "rebind.example", Addr: netip.MustParseAddr("127.0.0.1"), Reason: loopback,
	}
	for _, dial := range []dialFunc{d.DialTLS, d.DialPlain} {
		before := dns.count("rebind.example")
		got := refusal(t, dial, u.Host)
		if diff := cmp.Diff(want, *got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if dns.count("rebind.example") == before {
			t.Error("the dial has not asked for the name")
		}
	}
	untouched(t, l)
}

func TestDialRefused(t *testing.T) {
	dns := startDNS(t)
	l, port := listen(t)
	d := &Dialer{Resolver: dns.resolver()}
	dns.set("many.example", "127.0.0.1", "127.0.0.2", "10.0.0.1", "169.254.169.254")
	for _, address := range []string{
		"127.0.0.1:" + port, "[::ffff:127.0.0.1]:" + port, "0.0.0.0:" + port, ":" + port, "localhost:" + port,
		"many.example:" + port, "127.0.0.1", "",
	} {
		for _, dial := range []dialFunc{d.DialTLS, d.DialPlain} {
			if got := refusal(t, dial, address); got.Reason == "" {
				t.Errorf("%q: no reason", address)
			}
		}
	}
	// A public address is no place for plain http. It is refused before anything is sent there.
	if diff := cmp.Diff(plainHTTP, refusal(t, d.DialPlain, "8.8.8.8:80").Reason); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	untouched(t, l)
}

// A name may stand for good and bad addresses at once. Only the good ones are tried.
func TestDialMixedName(t *testing.T) {
	for _, order := range [][]string{{"127.0.0.1", "127.0.0.2"}, {"127.0.0.2", "127.0.0.1"}} {
		dns := startDNS(t)
		dns.set("mixed.example", order...)
		l, port := listen(t)

		// No server answers at the good one. This may change, so the dial has failed and is not refused.
		d := &Dialer{Policy: Policy{Allow: prefixes("127.0.0.2/32")}, Resolver: dns.resolver()}
		conn, err := d.DialPlain(t.Context(), "tcp", "mixed.example:"+port)
		if refused := (*RefusedError)(nil); err == nil || errors.As(err, &refused) {
			t.Errorf("%v: %v and %v, want an error that is no *RefusedError", order, conn, err)
		}
		untouched(t, l)

		d = &Dialer{Policy: Policy{Allow: prefixes("127.0.0.1/32")}, Resolver: dns.resolver()}
		conn, err = d.DialPlain(t.Context(), "tcp", "mixed.example:"+port)
		if err != nil {
			t.Fatalf("%v: %v", order, err)
		}
		if diff := cmp.Diff(l.Addr().String(), conn.RemoteAddr().String()); diff != "" {
			t.Errorf("%v (-want +got):\n%s", order, diff)
		}
		_ = conn.Close()
	}
}

func TestDialUnreachable(t *testing.T) {
	dns := startDNS(t)
	_, port := listen(t)
	dns.set("down.example", "127.0.0.2") // without a listening server
	d := &Dialer{Policy: Policy{Allow: prefixes("127.0.0.0/8")}, Resolver: dns.resolver()}
	for _, address := range []string{"down.example:" + port, "unknown.example:" + port} {
		for _, dial := range []dialFunc{d.DialTLS, d.DialPlain} {
			conn, err := dial(t.Context(), "tcp", address)
			if refused := (*RefusedError)(nil); err == nil || errors.As(err, &refused) {
				t.Errorf("%s: %v and %v, want an error that is no *RefusedError", address, conn, err)
			}
		}
	}
}

// The dial functions as a deliverer uses them.
func TestDialUnderTransport(t *testing.T) {
	dns := startDNS(t)
	hello := func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, r.Proto)
	}
	plain := httptest.NewServer(http.HandlerFunc(hello))
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.HandlerFunc(hello))
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	portOf := func(l net.Listener) string {
		return netip.MustParseAddrPort(l.Addr().String()).String()[len("127.0.0.1"):]
	}

	dns.set("example.com", "127.0.0.1") // the name in httptest's certificate
	dns.set("other.example", "127.0.0.1")
	dns.set("public.example", "8.8.8.8")
	dns.set("private.example", "10.0.0.1")

	for _, tt := range []struct {
		name   string
		allow  []string
		protos []string
		url    string
		want   string // the answer, or the reason of the refusal; "" for any other error
	}{
		{"https", []string{"127.0.0.0/8"}, nil, "https://example.com" + portOf(secure.Listener), "HTTP/1.1"},
		{"https, the last dot", []string{"127.0.0.0/8"}, nil,
			"https://example.com." + portOf(secure.Listener), "HTTP/1.1"},
		{"https, HTTP/2", []string{"127.0.0.0/8"}, []string{"h2", "http/1.1"},
			"https://example.com" + portOf(secure.Listener), "HTTP/2.0"},
		{"https, the wrong certificate", []string{"127.0.0.0/8"}, nil,
			"https://other.example" + portOf(secure.Listener), ""},
		{"https to a port of http", []string{"127.0.0.0/8"}, nil, "https://example.com" + portOf(plain.Listener), ""},
		{"https, refused", nil, nil, "https://example.com" + portOf(secure.Listener), loopback},
		{"http", []string{"127.0.0.0/8"}, nil, "http://other.example" + portOf(plain.Listener), "HTTP/1.1"},
		{"http, refused", nil, nil, "http://other.example" + portOf(plain.Listener), loopback},
		{"http to a public address", []string{"127.0.0.0/8"}, nil, "http://public.example", plainHTTP},
		{"redirect to a private address", []string{"127.0.0.0/8"}, nil,
			"https://example.com" + portOf(secure.Listener) + "/?to=https://private.example/",
			"the address is not public: it is in 10.0.0.0/8, Private-Use"},
		{"redirect to metadata", []string{"127.0.0.0/8"}, nil,
			"http://example.com" + portOf(plain.Listener) + "/?to=http://169.254.169.254/latest/",
			"the address is not public: it is in 169.254.0.0/16, Link Local"},
	} {
		d := &Dialer{
			Policy: Policy{Allow: prefixes(tt.allow...)}, Resolver: dns.resolver(),
			TLS: &tls.Config{RootCAs: roots, NextProtos: tt.protos},
		}
		transport := &http.Transport{DialContext: d.DialPlain, DialTLSContext: d.DialTLS, ForceAttemptHTTP2: true}
		got, err := get(transport, tt.url)
		var refused *RefusedError
		switch {
		case errors.As(err, &refused):
			got = refused.Reason
		case err != nil && tt.want != "":
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		transport.CloseIdleConnections()
	}
}

func get(transport *http.Transport, url string) (string, error) {
	answer, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// The caller's context ends a handshake never begun by the other end.
func TestDialTLSCanceled(t *testing.T) {
	l, _ := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	accepted := make(chan net.Conn, 1)
	go func() {
		conn, _ := l.Accept()
		accepted <- conn
		cancel()
	}()
	d := &Dialer{Policy: Policy{Allow: prefixes("127.0.0.0/8")}, Timeout: time.Hour}
	conn, err := d.DialTLS(ctx, "tcp", l.Addr().String())
	if conn != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v and %v, want %v", conn, err, context.Canceled)
	}
	other := <-accepted
	if other == nil {
		t.Fatal("nothing was accepted")
	}
	defer other.Close()
	// The connection was closed, and not left to the other end.
	if _, err := io.Copy(io.Discard, other); err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("after the cancelation: %v", err)
	}
}

func TestDialTimeout(t *testing.T) {
	// Package net reads the system's DNS configuration once, and keeps a channel with it that must not belong to a
	// bubble.
	if _, err := startDNS(t).resolver().LookupNetIP(t.Context(), "ip4", "unknown.example"); err == nil {
		t.Error("an unknown name was found")
	}
	bubble.Test(t, func(t *testing.T) {
		silent := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		for _, timeout := range []time.Duration{time.Second, 3 * time.Second} {
			d := &Dialer{Resolver: silent, Timeout: timeout}
			for _, dial := range []dialFunc{d.DialTLS, d.DialPlain} {
				began := time.Now()
				conn, err := dial(t.Context(), "tcp", "silent.example:443")
				if refused := (*RefusedError)(nil); err == nil || errors.As(err, &refused) {
					t.Errorf("%v and %v, want an error that is no *RefusedError", conn, err)
				}
				if diff := cmp.Diff(timeout, time.Since(began)); diff != "" {
					t.Errorf("it took (-want +got):\n%s", diff)
				}
			}
		}
	})
	if diff := cmp.Diff(defaultTimeout, new(Dialer).timeout()); diff != "" {
		t.Errorf("the default (-want +got):\n%s", diff)
	}
}

func TestControl(t *testing.T) {
	for _, tt := range []struct {
		network, address string
		passes           bool
	}{
		{"tcp4", "8.8.8.8:443", true},
		{"tcp6", "[2606:4700:4700::1111]:443", true},
		{"tcp", "8.8.8.8:443", true},
		{"udp4", "8.8.8.8:443", false},
		{"unix", "/run/docker.sock", false},
		{"ip4:icmp", "8.8.8.8", false},
		{"tcp6", "[::1]:443", false},
		{"tcp6", "[::ffff:127.0.0.1]:443", false},
		{"tcp6", "[fe80::1%eth0]:443", false},
		{"tcp6", "[64:ff9b::7f00:1]:443", false},
		{"tcp4", "169.254.169.254:443", false},
		{"tcp4", "8.8.8.8", false},
		{"tcp", "receiver.example:443", false},
		{"tcp", ":443", false},
		{"tcp", "", false},
	} {
		err := new(Dialer).control(t.Context(), "", tt.network, tt.address, false)
		if diff := cmp.Diff(tt.passes, err == nil); diff != "" {
			t.Errorf("%s %s: %v (-want +got):\n%s", tt.network, tt.address, err, diff)
		}
	}
}
