// SPDX-License-Identifier: Apache-2.0

package egress

import "net/netip"

// network is a block of addresses not public, with its name.
type network struct {
	prefix netip.Prefix
	name   string
}

// special holds the whole of IANA's IPv4 and IPv6 Special-Purpose Address Registries, under their names there. Blocks
// called globally reachable by the registries are here too: they are anycast services and relays, and have no servers
// of callers. Networks missing from the registries follow, each with its source.
var special = []network{
	// IPv4 Special-Purpose Address Registry (RFC 6890)
	{netip.MustParsePrefix("0.0.0.0/8"), "This network"},
	{netip.MustParsePrefix("0.0.0.0/32"), "This host on this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "Private-Use"},
	{netip.MustParsePrefix("100.64.0.0/10"), "Shared Address Space"},
	{netip.MustParsePrefix("127.0.0.0/8"), "Loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "Link Local"}, // cloud metadata is at 169.254.169.254
	{netip.MustParsePrefix("172.16.0.0/12"), "Private-Use"},
	{netip.MustParsePrefix("192.0.0.0/24"), "IETF Protocol Assignments"},
	{netip.MustParsePrefix("192.0.0.0/29"), "IPv4 Service Continuity Prefix"},
	{netip.MustParsePrefix("192.0.0.8/32"), "IPv4 dummy address"},
	{netip.MustParsePrefix("192.0.0.9/32"), "Port Control Protocol Anycast"},
	{netip.MustParsePrefix("192.0.0.10/32"), "Traversal Using Relays around NAT Anycast"},
	{netip.MustParsePrefix("192.0.0.170/32"), "NAT64/DNS64 Discovery"},
	{netip.MustParsePrefix("192.0.0.171/32"), "NAT64/DNS64 Discovery"},
	{netip.MustParsePrefix("192.0.2.0/24"), "Documentation (TEST-NET-1)"},
	{netip.MustParsePrefix("192.31.196.0/24"), "AS112-v4"},
	{netip.MustParsePrefix("192.52.193.0/24"), "AMT"},
	{netip.MustParsePrefix("192.88.99.0/24"), "Deprecated (6to4 Relay Anycast)"},
	{netip.MustParsePrefix("192.88.99.2/32"), "6a44-relay anycast address"},
	{netip.MustParsePrefix("192.168.0.0/16"), "Private-Use"},
	{netip.MustParsePrefix("192.175.48.0/24"), "Direct Delegation AS112 Service"},
	{netip.MustParsePrefix("198.18.0.0/15"), "Benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "Documentation (TEST-NET-2)"},
	{netip.MustParsePrefix("203.0.113.0/24"), "Documentation (TEST-NET-3)"},
	{netip.MustParsePrefix("240.0.0.0/4"), "Reserved"},
	{netip.MustParsePrefix("255.255.255.255/32"), "Limited Broadcast"},

	// IPv6 Special-Purpose Address Registry (RFC 6890). IPv4-mapped addresses, ::ffff:0:0/96, are judged as IPv4
	// addresses.
	{netip.MustParsePrefix("::/128"), "Unspecified Address"},
	{netip.MustParsePrefix("::1/128"), "Loopback Address"},
	{nat64, "IPv4-IPv6 Translat."},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "IPv4-IPv6 Translat."},
	{netip.MustParsePrefix("100::/64"), "Discard-Only Address Block"},
	{netip.MustParsePrefix("100:0:0:1::/64"), "Dummy IPv6 Prefix"},
	{netip.MustParsePrefix("2001::/23"), "IETF Protocol Assignments"},
	{netip.MustParsePrefix("2001::/32"), "TEREDO"},
	{netip.MustParsePrefix("2001:1::1/128"), "Port Control Protocol Anycast"},
	{netip.MustParsePrefix("2001:1::2/128"), "Traversal Using Relays around NAT Anycast"},
	{netip.MustParsePrefix("2001:1::3/128"), "DNS-SD Service Registration Protocol Anycast"},
	{netip.MustParsePrefix("2001:2::/48"), "Benchmarking"},
	{netip.MustParsePrefix("2001:3::/32"), "AMT"},
	{netip.MustParsePrefix("2001:4:112::/48"), "AS112-v6"},
	{netip.MustParsePrefix("2001:10::/28"), "Deprecated (previously ORCHID)"},
	{netip.MustParsePrefix("2001:20::/28"), "ORCHIDv2"},
	{netip.MustParsePrefix("2001:30::/28"), "Drone Remote ID Protocol Entity Tags (DETs) Prefix"},
	{netip.MustParsePrefix("2001:db8::/32"), "Documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("2620:4f:8000::/48"), "Direct Delegation AS112 Service"},
	{netip.MustParsePrefix("3fff::/20"), "Documentation"},
	{netip.MustParsePrefix("5f00::/16"), "Segment Routing (SRv6) SIDs"},
	{netip.MustParsePrefix("fc00::/7"), "Unique-Local"}, // cloud metadata is at fd00:ec2::254
	{netip.MustParsePrefix("fe80::/10"), "Link-Local Unicast"},

	// Multicast (RFC 5771, RFC 4291 §2.7), and the blocks deprecated by RFC 4291.
	{netip.MustParsePrefix("224.0.0.0/4"), "Multicast"},
	{netip.MustParsePrefix("ff00::/8"), "Multicast"},
	{netip.MustParsePrefix("::/96"), "Deprecated (IPv4-compatible)"},
	{netip.MustParsePrefix("fec0::/10"), "Deprecated (Site-Local)"},

	// An ordinary address in the registries. Every Azure machine reaches its host there, and credentials.
	{netip.MustParsePrefix("168.63.129.16/32"), "Azure platform"},
}

// nat64 is the Well-Known Prefix of RFC 6052: the last 32 bits are the IPv4 address behind a translator.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// unicast is all of IPv6 assigned for use on the Internet (RFC 4291 §2.4).
var unicast = netip.MustParsePrefix("2000::/3")

// specialNetwork returns the smallest special network with addr in it, and false if addr is public. addr is neither
// IPv4-mapped nor has it a zone.
func specialNetwork(addr netip.Addr) (network, bool) {
	smallest, found := network{}, false
	for _, n := range special {
		if n.prefix.Contains(addr) && (!found || n.prefix.Bits() > smallest.prefix.Bits()) {
			smallest, found = n, true
		}
	}
	return smallest, found
}
