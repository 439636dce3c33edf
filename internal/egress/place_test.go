// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"net"
	"strconv"
	"testing"
)

// TestClosedURL: the address of a closed server is refused as soon as it is given, in any form.
func TestClosedURL(t *testing.T) {
	p := &Policy{Allow: prefixes("127.0.0.0/8", "10.0.0.0/8", "::1/128"), Closed: []Place{
		{Host: "localhost", Port: 2019},
		{Host: "10.0.0.5", Port: 9101},
		{Host: "Agent.example.com", Port: 443},
		{Port: 8443, Names: []string{"gateway.example.com"}},
	}}
	for raw, closed := range map[string]bool{
		"http://127.0.0.1:2019/stop":         true,
		"http://127.0.0.2:2019/stop":         true, // the admin API may listen there, too
		"http://[::1]:2019/stop":             true,
		"http://[::ffff:127.0.0.1]:2019/":    true,
		"http://LocalHost.:2019/stop":        true,
		"http://localhost:2020/":             false,
		"http://10.0.0.5:9101/tasks":         true,
		"http://10.0.0.5:9102/":              false,
		"http://10.0.0.6:9101/":              false,
		"https://agent.example.com/":         true,
		"https://AGENT.example.com.:443/":    true,
		"https://agent.example.com:8443/":    false,
		"https://other.example.com/":         false,
		"https://gateway.example.com:8443/x": true,
		"https://hooks.example.com:8443/x":   false, // another site of the same server
		"https://127.0.0.1:8443/x":           true,
	} {
		_, err := p.CheckURL(raw)
		var refused *RefusedError
		if errors.As(err, &refused) && refused.Kind != Closed || (err != nil) != closed {
			t.Errorf("%s: %v, want closed: %t", raw, err, closed)
		}
	}
}

// TestClosedDial: a name leading to a closed server is refused when it is dialed, also if the server is given by
// another name, and if it is one of several at its address.
func TestClosedDial(t *testing.T) {
	dns := startDNS(t)
	l, text := listen(t)
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(number)
	dns.set("agent.example", "127.0.0.1")
	dns.set("alias.example", "127.0.0.1")
	for name, tc := range map[string]struct {
		at     Place
		host   string
		closed bool
	}{
		"its name":                       {Place{Host: "agent.example", Port: port}, "agent.example", true},
		"another name":                   {Place{Host: "agent.example", Port: port}, "alias.example", true},
		"its address":                    {Place{Host: "agent.example", Port: port}, "127.0.0.1", true},
		"another port":                   {Place{Host: "agent.example", Port: port + 1}, "alias.example", false},
		"an address that is given":       {Place{Host: "127.0.0.1", Port: port}, "alias.example", true},
		"all addresses here":             {Place{Port: port}, "alias.example", true},
		"a name that nobody knows":       {Place{Host: "unknown.example", Port: port}, "alias.example", false},
		"one of several, by its name":    {Place{Port: port, Names: []string{"agent.example"}}, "agent.example", true},
		"one of several, by its address": {Place{Port: port, Names: []string{"agent.example"}}, "127.0.0.1", true},
		"another one there":              {Place{Port: port, Names: []string{"agent.example"}}, "alias.example", false},
	} {
		d := &Dialer{Resolver: dns.resolver(), Policy: Policy{Allow: prefixes("127.0.0.0/8"), Closed: []Place{tc.at}}}
		address := net.JoinHostPort(tc.host, text)
		if tc.closed {
			if refused := refusal(t, d.DialPlain, address); refused.Kind != Closed {
				t.Errorf("%s: %v", name, refused)
			}
			continue
		}
		conn, err := d.DialPlain(t.Context(), "tcp", address)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = conn.Close()
		other, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = other.Close()
	}
	untouched(t, l)
}
