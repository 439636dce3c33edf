// SPDX-License-Identifier: Apache-2.0

// Package egress decides about the gateway's connections to addresses given by callers, such as the URL of a webhook.
// The gateway stands in another place than its callers: beside private services and cloud metadata.
//
// Some servers are closed to callers although their networks are allowed (Place): those of the gateway itself, and its
// agents. These take requests from the gateway's machine, or with its credentials, for the gateway's own.
//
// CheckURL refuses early a URL never to be reached, so the caller giving the URL gets an error. The decision is made by
// Dialer, on the address dialed, at every dial, because the addresses of a name can change at any time. So redirects,
// and names that change their address, gain nothing.
//
// An http.Transport with a Dialer must leave its Proxy nil: behind a proxy only the proxy's address would be seen.
package egress

import (
	"fmt"
	"net/netip"
	"strings"
)

// Policy decides about the addresses of the gateway's connections. The zero Policy allows public addresses, by https.
// It may be used by any number of goroutines at once, and is not changed after its first use.
type Policy struct {
	// Allow lists networks allowed although they are not public. They are also allowed by plain http, and only they are.
	// An IPv4 network is written as IPv4. A network of 64:ff9b::/96 allows the translator there; the IPv4 address behind
	// it is then judged by itself.
	Allow []netip.Prefix
	// Closed lists places refused whatever Allow has.
	Closed []Place
}

// Kind is the kind of a RefusedError.
type Kind uint8

// The kinds.
const (
	InvalidURL   Kind = iota // the URL, or its address, can never be reached
	NotPublic                // the name or the address is not public, and not in Policy.Allow
	NotEncrypted             // plain http to a public address
	Closed                   // the URL, or its address, is that of a Policy.Closed
)

// RefusedError is a refusal of a connection by the policy. With any other error of this package's dial functions, the
// address could not be reached. That may change by itself; a refusal does not.
type RefusedError struct {
	Kind Kind
	Host string // as it was given; empty if there is none to be shown
	// Addr is the refused address; the zero Addr if the URL itself was refused. If Host is a name, Addr may be logged but
	// not shown to a caller: it would reveal the operator's network.
	Addr   netip.Addr
	Reason string // for the caller; it holds nothing of the URL's path and query
}

// Error implements error. Like Addr, it may be logged but not shown to a caller.
func (e *RefusedError) Error() string {
	var s strings.Builder
	s.WriteString("egress: connection refused")
	if e.Host != "" {
		s.WriteString(" to " + e.Host)
	}
	if e.Addr.IsValid() && e.Addr.String() != e.Host {
		s.WriteString(" at " + e.Addr.String())
	}
	return s.String() + ": " + e.Reason
}

func invalid(format string, args ...any) *RefusedError {
	return &RefusedError{Kind: InvalidURL, Reason: fmt.Sprintf(format, args...)}
}

// judge decides about an address to be reached by https, or by plain http: then it must be in Allow. Its errors are of
// type *RefusedError.
func (p *Policy) judge(addr netip.Addr, plain bool) error {
	refuse := func(kind Kind, format string, args ...any) error {
		return &RefusedError{Kind: kind, Addr: addr, Reason: fmt.Sprintf(format, args...)}
	}
	if !addr.IsValid() {
		return refuse(InvalidURL, "there is no address")
	}
	if addr.Zone() != "" {
		return refuse(NotPublic, "the address has a zone, so it is not public")
	}
	bare := addr.Unmap()
	allowed := p.allows(bare)
	switch {
	case allowed && nat64.Contains(bare):
		// An operator allowing the translator wants the Internet behind it, and neither 64:ff9b::10.0.0.1 nor plain http to
		// all of it.
		b := bare.As16()
		if err := p.judge(netip.AddrFrom4([4]byte(b[12:])), plain); err != nil {
			behind := err.(*RefusedError)
			return refuse(behind.Kind, "%s", behind.Reason)
		}
		return nil
	case allowed:
		return nil
	}
	if n, is := specialNetwork(bare); is {
		return refuse(NotPublic, "the address is not public: it is in %s, %s", n.prefix, n.name)
	}
	if bare.Is6() && !unicast.Contains(bare) {
		return refuse(NotPublic, "the address is not public: it is outside %s, Global Unicast", unicast)
	}
	if plain {
		return refuse(NotEncrypted, "the URL must begin with https://, because its address is public")
	}
	return nil
}

func (p *Policy) allows(addr netip.Addr) bool {
	for _, network := range p.Allow {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}
