// SPDX-License-Identifier: Apache-2.0

// Package egress decides which addresses a webhook may reach. Whoever sets a webhook makes the gateway open
// connections, and the gateway stands where its callers do not: beside private services and cloud metadata.
//
// CheckURL refuses at once what can never be reached, so that the one who sets the URL is told. It is a
// courtesy: what a name stands for can change at any time. The decision is made by Dialer, on the address
// that is dialled, at every dial; redirects and names that change their address gain nothing.
//
// An http.Transport that uses Dialer must leave its Proxy nil: behind a proxy only the proxy's address would be seen.
package egress

import (
	"fmt"
	"net/netip"
	"strings"
)

// Guard decides which addresses a webhook may reach. The zero Guard allows what is public, by https. It may be
// used by any number of goroutines at once, and is not changed after its first use.
type Policy struct {
	// Allow lists networks that may be reached although they are special. They may also be reached by plain
	// http, and only they. An IPv4 network is written as IPv4. Of 64:ff9b::/96 it opens the translator: the
	// IPv4 address behind it is then judged by itself.
	Allow []netip.Prefix
}

// Error says that the guard has refused something. Any other error of this package's dial functions means that
// a receiver could not be reached, which may change by itself; a refusal does not.
type RefusedError struct {
	Host string // the host as it was asked for; empty where there is none that can be named
	// Addr is the address that was refused; the zero Addr where it was the URL. Where Host is a name, Addr is
	// for the log only: it would tell a caller about the operator's network.
	Addr   netip.Addr
	Reason string // a sentence for the one who set the URL. It holds nothing of the URL's path and query
}

// Error implements error. Like Addr, it is for the log.
func (e *RefusedError) Error() string {
	var s strings.Builder
	s.WriteString("the guard of webhooks refuses")
	if e.Host != "" {
		s.WriteString(" " + e.Host)
	}
	if e.Addr.IsValid() && e.Addr.String() != e.Host {
		s.WriteString(" at " + e.Addr.String())
	}
	return s.String() + ": " + e.Reason
}

// Check decides about an address that is to be reached by https. Errors are *Error.
func (g *Policy) Check(addr netip.Addr) error { return g.judge(addr, false) }

// CheckPlain decides about an address that is to be reached by plain http: it must be in Allow. Errors are *Error.
func (g *Policy) CheckPlain(addr netip.Addr) error { return g.judge(addr, true) }

func (g *Policy) judge(addr netip.Addr, plain bool) error {
	refuse := func(format string, args ...any) error {
		return &RefusedError{Addr: addr, Reason: fmt.Sprintf(format, args...)}
	}
	if !addr.IsValid() {
		return refuse("The webhook has no address.")
	}
	if addr.Zone() != "" {
		return refuse("The address of the webhook has a zone, so it is not public.")
	}
	bare := addr.Unmap()
	allowed := g.allows(bare)
	switch {
	case allowed && nat64.Contains(bare):
		// Whoever opens the translator wants the Internet behind it, and neither 64:ff9b::10.0.0.1 nor plain http
		// to everybody.
		b := bare.As16()
		if err := g.judge(netip.AddrFrom4([4]byte(b[12:])), plain); err != nil {
			return refuse("%s", err.(*RefusedError).Reason)
		}
		return nil
	case allowed:
		return nil
	}
	if n, is := specialNetwork(bare); is {
		return refuse("The address of the webhook is not public: it is in %s, %s.", n.prefix, n.name)
	}
	if bare.Is6() && !unicast.Contains(bare) {
		return refuse("The address of the webhook is not public: it is outside %s, Global Unicast.", unicast)
	}
	if plain {
		return refuse("The webhook must begin with https://, because its address is public.")
	}
	return nil
}

func (g *Policy) allows(addr netip.Addr) bool {
	for _, p := range g.Allow {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
