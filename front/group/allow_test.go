// SPDX-License-Identifier: Apache-2.0

package group

import (
	"bytes"
	"fmt"
	"testing"
)

func TestParseBroker(t *testing.T) {
	for pattern, want := range map[string]Broker{
		"mq.example.com":             {host: "mq.example.com"},
		"MQ.Example.com.":            {host: "mq.example.com"},
		"mq.example.com:5672":        {host: "mq.example.com", port: 5672},
		"amqps://mq.example.com":     {host: "mq.example.com", tls: true},
		"amqp://mq.example.com:1":    {host: "mq.example.com", port: 1},
		"AMQPS://*.example.com:5671": {host: ".example.com", port: 5671, tls: true},
		"*.example.com":              {host: ".example.com"},
		"192.0.2.1":                  {host: "192.0.2.1"},
		"[2001:db8::1]":              {host: "2001:db8::1"},
		"[2001:db8::1]:5671":         {host: "2001:db8::1", port: 5671},
	} {
		if got, err := ParseBroker(pattern); err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", pattern, got, err, want)
		}
	}
	for _, pattern := range []string{"", "*", "*.", "*example.com", ".example.com", ".", "a.*.example.com", "http://mq",
		"mq:0", "mq:x", "mq:65536", "2001:db8::1", "[2001:db8::1", "user@mq", "mq/vhost", "amqps://", "mq example", "mq?x"} {
		if b, err := ParseBroker(pattern); err == nil {
			t.Errorf("%q is taken as %+v", pattern, b)
		}
	}
}

func TestAllowed(t *testing.T) {
	patterns := []Broker{
		mustParse("mq.example.com"), mustParse("*.cluster.example.com:5672"), mustParse("amqps://*.cluster.example.com"),
	}
	for _, tc := range []struct {
		host    string
		port    int
		ok, tls bool
	}{
		{"mq.example.com", 5672, true, false},
		{"MQ.EXAMPLE.COM.", 1, true, false},
		{"x.mq.example.com", 5672, false, false},
		{"a.cluster.example.com", 5672, true, true},
		{"a.b.cluster.example.com", 9, true, true},
		{"cluster.example.com", 5672, false, false},
		{".cluster.example.com", 5672, false, false},
		{"evilcluster.example.com", 5672, false, false},
		{"127.0.0.1", 5672, false, false},
		{"", 5672, false, false},
	} {
		if ok, tls := allowed(patterns, tc.host, tc.port); ok != tc.ok || tls != tc.tls {
			t.Errorf("%s:%d is allowed: %v, with TLS: %v", tc.host, tc.port, ok, tls)
		}
	}
}

// TestSealer seals tokens of brokers for the store, and opens them.
//
// Promise: access tokens of brokers
func TestSealer(t *testing.T) {
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, KeySize) }
	s, err := newSealer(key(1))
	if err != nil {
		t.Fatal(err)
	}
	other, err := newSealer(key(2))
	if err != nil {
		t.Fatal(err)
	}
	sealed := s.seal("user:secret", "log")
	if bytes.Contains(sealed, []byte("secret")) || bytes.Equal(sealed, s.seal("user:secret", "log")) {
		t.Error("a sealed token can be read, or is the same each time")
	}
	if token, ok := s.open(sealed, "log"); !ok || token != "user:secret" {
		t.Errorf("it is opened as %q, %v", token, ok)
	}
	sealed[len(sealed)-1] ^= 1
	damaged := bytes.Clone(sealed)
	sealed[len(sealed)-1] ^= 1
	for name, open := range map[string]func() (string, bool){
		"for another log":  func() (string, bool) { return s.open(sealed, "other") },
		"by another key":   func() (string, bool) { return other.open(sealed, "log") },
		"without a key":    func() (string, bool) { return (*sealer)(nil).open(sealed, "log") },
		"when it is empty": func() (string, bool) { return s.open(nil, "log") },
		"when it is short": func() (string, bool) { return s.open(sealed[:5], "log") },
		"when it is wrong": func() (string, bool) { return s.open(damaged, "log") },
	} {
		if token, ok := open(); ok || token != "" {
			t.Errorf("%s, it is opened as %q", name, token)
		}
	}
	if s.seal("", "log") != nil || (*sealer)(nil).seal("x", "log") != nil {
		t.Error("something is sealed without a token, or without a key")
	}
	if none, err := newSealer(nil); none != nil || err != nil {
		t.Errorf("without a key there is %v, %v", none, err)
	}
	if _, err := newSealer(key(1)[:16]); err == nil {
		t.Error("a short key is taken")
	}
}

func TestBrokerAddress(t *testing.T) {
	for pattern, want := range map[string]string{
		"mq.example.com": "mq.example.com:5672 false", "amqps://mq.example.com": "mq.example.com:5671 true",
		"mq.example.com:5671": "mq.example.com:5671 true", "amqps://[::1]:7": "[::1]:7 true", "*.example.com": " false",
	} {
		b, err := ParseBroker(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if address, tls := b.Address(); fmt.Sprint(address, " ", tls) != want {
			t.Errorf("%s: %s %t, want %s", pattern, address, tls, want)
		}
	}
}
