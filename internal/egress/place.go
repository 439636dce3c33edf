// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// Place is the place of a server closed to callers of the gateway, since the server trusts the gateway, or every
// process on its machine.
type Place struct {
	Host string // a name or an address; empty for all addresses of this machine
	Port uint16
	// Names are the only names by which the server is reached there, in lower case: other servers share its address, and
	// have other names. None stands for any. An address is taken for each of them.
	Names []string
}

// closedReason is the reason for refusing a connection to a Place.
const closedReason = "the address is one of the gateway's own, or of an agent"

// closesURL reports whether a host and a port, as they stand in a URL, are those of a closed Place. Nothing is looked
// up.
func (p *Policy) closesURL(host string, port uint16) bool {
	return slices.ContainsFunc(p.Closed, func(at Place) bool {
		if at.Port != port {
			return false
		}
		addr, isAddr := addrOf(host)
		if named, decided := at.named(host); decided {
			return named
		}
		own, known := addrOf(at.Host)
		return isAddr && known && samePlace(own, addr)
	})
}

// closes reports whether a connection about to be made for a host leads to a closed Place.
func (d *Dialer) closes(ctx context.Context, host string, to netip.AddrPort) (bool, error) {
	addr := to.Addr().Unmap()
	if nat64.Contains(addr) {
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, at := range d.Policy.Closed {
		if at.Port != to.Port() {
			continue
		}
		if named, decided := at.named(host); named {
			return true, nil
		} else if decided {
			continue
		}
		all, err := d.addrsOf(ctx, at.Host)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(all, func(own netip.Addr) bool { return samePlace(own, addr) }) {
			return true, nil
		}
	}
	return false, nil
}

// named reports whether a host of a URL is a name of the Place. It is decided if the address says nothing more.
func (at *Place) named(host string) (named, decided bool) {
	name := normalHost(host)
	if _, err := netip.ParseAddr(name); err == nil {
		return false, false
	}
	if len(at.Names) > 0 {
		return slices.Contains(at.Names, name), true
	}
	named = name == normalHost(at.Host)
	return named, named
}

// addrsOf returns the addresses of a Place. A name unknown to DNS has no address.
func (d *Dialer) addrsOf(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, known := addrOf(host); known {
		return []netip.Addr{addr}, nil
	}
	resolver := d.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	all, err := resolver.LookupNetIP(ctx, "ip", host)
	var unknown *net.DNSError
	switch {
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("egress: look up a place that is closed: %w", err)
	}
	return all, nil
}

// addrOf returns the address of a host, and false if it must be looked up.
func addrOf(host string) (addr netip.Addr, known bool) {
	switch host = normalHost(host); {
	case host == "":
		return netip.IPv6Unspecified(), true
	case isLocalhost(host):
		return netip.IPv6Loopback(), true
	}
	addr, err := netip.ParseAddr(host)
	return addr.Unmap().WithZone(""), err == nil
}

// normalHost returns a host in the form for comparing hosts.
func normalHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// isLocalhost reports whether a name is of the machine itself (RFC 6761 §6.3).
func isLocalhost(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// samePlace reports whether two addresses lead to the same machine. A server listening at one address of this machine
// mostly listens at all of them.
func samePlace(a, b netip.Addr) bool {
	a, b = a.Unmap().WithZone(""), b.Unmap().WithZone("")
	return a == b || isOwn(a) && isOwn(b)
}

// isOwn reports whether an address is one of this machine.
func isOwn(addr netip.Addr) bool {
	if addr.IsLoopback() || addr.IsUnspecified() {
		return true
	}
	all, _ := net.InterfaceAddrs() // without them, the loopback is known
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		network, ok := a.(*net.IPNet)
		if !ok {
			return false
		}
		own, ok := netip.AddrFromSlice(network.IP)
		return ok && own.Unmap() == addr
	})
}
