// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func prefixes(s ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(s))
	for i := range s {
		all[i] = netip.MustParsePrefix(s[i])
	}
	return all
}

// borders has both sides of every border between public addresses and others.
var borders = []struct {
	addr    string
	network string // the smallest special network; "" for public
}{
	{"0.0.0.0", "This host on this network"}, {"0.0.0.1", "This network"}, {"0.255.255.255", "This network"},
	{"1.0.0.0", ""},
	{"9.255.255.255", ""}, {"10.0.0.0", "Private-Use"}, {"10.255.255.255", "Private-Use"}, {"11.0.0.0", ""},
	{"100.63.255.255", ""}, {"100.64.0.0", "Shared Address Space"}, {"100.100.100.200", "Shared Address Space"},
	{"100.127.255.255", "Shared Address Space"}, {"100.128.0.0", ""},
	{"126.255.255.255", ""}, {"127.0.0.0", "Loopback"}, {"127.0.0.1", "Loopback"},
	{"127.255.255.255", "Loopback"}, {"128.0.0.0", ""},
	{"168.63.129.15", ""}, {"168.63.129.16", "Azure platform"}, {"168.63.129.17", ""},
	{"169.253.255.255", ""}, {"169.254.0.0", "Link Local"}, {"169.254.169.254", "Link Local"},
	{"169.254.255.255", "Link Local"}, {"169.255.0.0", ""},
	{"172.15.255.255", ""}, {"172.16.0.0", "Private-Use"}, {"172.31.255.255", "Private-Use"}, {"172.32.0.0", ""},
	{"191.255.255.255", ""}, {"192.0.0.0", "IPv4 Service Continuity Prefix"},
	{"192.0.0.7", "IPv4 Service Continuity Prefix"},
	{"192.0.0.8", "IPv4 dummy address"}, {"192.0.0.9", "Port Control Protocol Anycast"},
	{"192.0.0.10", "Traversal Using Relays around NAT Anycast"}, {"192.0.0.11", "IETF Protocol Assignments"},
	{"192.0.0.170", "NAT64/DNS64 Discovery"}, {"192.0.0.171", "NAT64/DNS64 Discovery"},
	{"192.0.0.192", "IETF Protocol Assignments"},
	{"192.0.0.255", "IETF Protocol Assignments"}, {"192.0.1.0", ""},
	{"192.0.1.255", ""}, {"192.0.2.0", "Documentation (TEST-NET-1)"},
	{"192.0.2.255", "Documentation (TEST-NET-1)"}, {"192.0.3.0", ""},
	{"192.31.195.255", ""}, {"192.31.196.0", "AS112-v4"}, {"192.31.196.255", "AS112-v4"}, {"192.31.197.0", ""},
	{"192.52.192.255", ""}, {"192.52.193.0", "AMT"}, {"192.52.193.255", "AMT"}, {"192.52.194.0", ""},
	{"192.88.98.255", ""}, {"192.88.99.0", "Deprecated (6to4 Relay Anycast)"},
	{"192.88.99.2", "6a44-relay anycast address"},
	{"192.88.99.255", "Deprecated (6to4 Relay Anycast)"}, {"192.88.100.0", ""},
	{"192.167.255.255", ""}, {"192.168.0.0", "Private-Use"}, {"192.168.255.255", "Private-Use"},
	{"192.169.0.0", ""},
	{"192.175.47.255", ""}, {"192.175.48.0", "Direct Delegation AS112 Service"},
	{"192.175.48.255", "Direct Delegation AS112 Service"}, {"192.175.49.0", ""},
	{"198.17.255.255", ""}, {"198.18.0.0", "Benchmarking"}, {"198.19.255.255", "Benchmarking"}, {"198.20.0.0", ""},
	{"198.51.99.255", ""}, {"198.51.100.0", "Documentation (TEST-NET-2)"},
	{"198.51.100.255", "Documentation (TEST-NET-2)"}, {"198.51.101.0", ""},
	{"203.0.112.255", ""}, {"203.0.113.0", "Documentation (TEST-NET-3)"},
	{"203.0.113.255", "Documentation (TEST-NET-3)"}, {"203.0.114.0", ""},
	{"223.255.255.255", ""}, {"224.0.0.0", "Multicast"}, {"239.255.255.255", "Multicast"},
	{"240.0.0.0", "Reserved"}, {"255.255.255.254", "Reserved"}, {"255.255.255.255", "Limited Broadcast"},
	{"8.8.8.8", ""}, {"1.1.1.1", ""},

	{"::", "Unspecified Address"}, {"::1", "Loopback Address"}, {"::2", "Deprecated (IPv4-compatible)"},
	{"::7f00:1", "Deprecated (IPv4-compatible)"}, {"::8.8.8.8", "Deprecated (IPv4-compatible)"},
	{"::1:0:0", "Global Unicast"},
	{"::fffe:ffff:ffff", "Global Unicast"}, {"::ffff:0.0.0.0", "This host on this network"},
	{"::ffff:127.0.0.1", "Loopback"},
	{"::ffff:8.8.8.8", ""}, {"::ffff:169.254.169.254", "Link Local"},
	{"::ffff:255.255.255.255", "Limited Broadcast"},
	{"::ffff:0:127.0.0.1", "Global Unicast"},
	{"64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", "Global Unicast"}, {"64:ff9b::", "IPv4-IPv6 Translat."},
	{"64:ff9b::8.8.8.8", "IPv4-IPv6 Translat."},
	{"64:ff9b::ffff:ffff", "IPv4-IPv6 Translat."}, {"64:ff9b::1:0:0", "Global Unicast"},
	{"64:ff9b:0:ffff:ffff:ffff:ffff:ffff", "Global Unicast"}, {"64:ff9b:1::", "IPv4-IPv6 Translat."},
	{"64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "IPv4-IPv6 Translat."}, {"64:ff9b:2::", "Global Unicast"},
	{"ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "Global Unicast"}, {"100::", "Discard-Only Address Block"},
	{"100::ffff:ffff:ffff:ffff", "Discard-Only Address Block"}, {"100:0:0:1::", "Dummy IPv6 Prefix"},
	{"100:0:0:1:ffff:ffff:ffff:ffff", "Dummy IPv6 Prefix"}, {"100:0:0:2::", "Global Unicast"},
	{"1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "Global Unicast"}, {"2000::", ""},
	{"2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""}, {"2001::", "TEREDO"},
	{"2001:0:ffff:ffff:ffff:ffff:ffff:ffff", "TEREDO"},
	{"2001:1::", "IETF Protocol Assignments"}, {"2001:1::1", "Port Control Protocol Anycast"},
	{"2001:1::2", "Traversal Using Relays around NAT Anycast"},
	{"2001:1::3", "DNS-SD Service Registration Protocol Anycast"},
	{"2001:1::4", "IETF Protocol Assignments"}, {"2001:2::", "Benchmarking"},
	{"2001:2:0:ffff:ffff:ffff:ffff:ffff", "Benchmarking"},
	{"2001:2:1::", "IETF Protocol Assignments"}, {"2001:3::", "AMT"},
	{"2001:3:ffff:ffff:ffff:ffff:ffff:ffff", "AMT"},
	{"2001:4::", "IETF Protocol Assignments"}, {"2001:4:112::", "AS112-v6"},
	{"2001:4:113::", "IETF Protocol Assignments"},
	{"2001:f:ffff:ffff:ffff:ffff:ffff:ffff", "IETF Protocol Assignments"},
	{"2001:10::", "Deprecated (previously ORCHID)"},
	{"2001:20::", "ORCHIDv2"}, {"2001:30::", "Drone Remote ID Protocol Entity Tags (DETs) Prefix"},
	{"2001:40::", "IETF Protocol Assignments"},
	{"2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "IETF Protocol Assignments"}, {"2001:200::", ""},
	{"2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", ""}, {"2001:db8::", "Documentation"},
	{"2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "Documentation"}, {"2001:db9::", ""},
	{"2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""}, {"2002::", "6to4"}, {"2002:7f00:1::", "6to4"},
	{"2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "6to4"}, {"2003::", ""},
	{"2620:4f:7fff:ffff:ffff:ffff:ffff:ffff", ""}, {"2620:4f:8000::", "Direct Delegation AS112 Service"},
	{"2620:4f:8000:ffff:ffff:ffff:ffff:ffff", "Direct Delegation AS112 Service"}, {"2620:4f:8001::", ""},
	{"2606:4700:4700::1111", ""},
	{"3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""}, {"3fff::", "Documentation"},
	{"3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "Documentation"}, {"3fff:1000::", ""},
	{"3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""}, {"4000::", "Global Unicast"},
	{"5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "Global Unicast"}, {"5f00::", "Segment Routing (SRv6) SIDs"},
	{"5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "Segment Routing (SRv6) SIDs"}, {"5f01::", "Global Unicast"},
	{"fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "Global Unicast"}, {"fc00::", "Unique-Local"},
	{"fd00:ec2::254", "Unique-Local"},
	{"fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "Unique-Local"}, {"fe00::", "Global Unicast"},
	{"fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "Global Unicast"}, {"fe80::", "Link-Local Unicast"},
	{"febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "Link-Local Unicast"}, {"fec0::", "Deprecated (Site-Local)"},
	{"feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "Deprecated (Site-Local)"}, {"ff00::", "Multicast"},
	{"ff02::1", "Multicast"},
	{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "Multicast"},
}

func TestCheck(t *testing.T) {
	named := map[string]bool{}
	for _, tt := range borders {
		addr := netip.MustParseAddr(tt.addr)
		err := new(Policy).judge(addr, false)
		if tt.network == "" {
			if err != nil {
				t.Errorf("%s is refused: %v", tt.addr, err)
			}
			continue
		}
		var refused *RefusedError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v, want a *RefusedError", tt.addr, err)
			continue
		}
		n, _ := specialNetwork(addr.Unmap())
		if n.name == "" {
			n = network{unicast, "Global Unicast"}
		}
		if diff := cmp.Diff(tt.network, n.name); diff != "" {
			t.Errorf("the network of %s (-want +got):\n%s", tt.addr, diff)
		}
		in := "in " + n.prefix.String() + ", "
		if n.prefix == unicast {
			in = "outside " + n.prefix.String() + ", "
		}
		want := RefusedError{Kind: NotPublic, Addr: addr, Reason: "the address is not public: it is " + in + tt.network}
		if diff := cmp.Diff(want, *refused, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.addr, diff)
		}
		named[n.name] = true
	}
	for _, n := range special {
		if !named[n.name] {
			t.Errorf("no address of %s, %s, is tested", n.prefix, n.name)
		}
	}
}

// Every row of the table is a whole network, and all of its addresses are refused.
func TestSpecialNetworksAreRefused(t *testing.T) {
	seen := map[netip.Prefix]bool{}
	for _, n := range special {
		if n.prefix != n.prefix.Masked() || seen[n.prefix] || n.name == "" {
			t.Errorf("the row of %s, %q, is not a network, is a duplicate, or has no name", n.prefix, n.name)
		}
		seen[n.prefix] = true
		first, last := n.prefix.Addr(), n.prefix.Addr().AsSlice()
		for bit := n.prefix.Bits(); bit < 8*len(last); bit++ {
			last[bit/8] |= 0x80 >> (bit % 8)
		}
		end, _ := netip.AddrFromSlice(last)
		for _, addr := range []netip.Addr{first, end} {
			if new(Policy).judge(addr, false) == nil {
				t.Errorf("%s, of %s, passes", addr, n.prefix)
			}
			if new(Policy).judge(addr, true) == nil {
				t.Errorf("%s, of %s, passes as plain http", addr, n.prefix)
			}
			allowed := &Policy{Allow: []netip.Prefix{n.prefix}}
			// Behind the translator there is one more address to judge.
			if err := allowed.judge(addr, true); (err != nil) != (n.prefix == nat64) {
				t.Errorf("%s, where %s is allowed: %v", addr, n.prefix, err)
			}
		}
	}
}

func TestCheckWithAllow(t *testing.T) {
	for _, tt := range []struct {
		allow        []string
		addr         string
		https, plain bool
	}{
		{nil, "8.8.8.8", true, false},
		{nil, "2606:4700:4700::1111", true, false},
		{[]string{"10.1.0.0/16"}, "8.8.8.8", true, false},
		{[]string{"10.1.0.0/16"}, "10.0.255.255", false, false},
		{[]string{"10.1.0.0/16"}, "10.1.0.0", true, true},
		{[]string{"10.1.0.0/16"}, "::ffff:10.1.2.3", true, true},
		{[]string{"10.1.0.0/16"}, "::10.1.2.3", false, false},
		{[]string{"10.1.0.0/16"}, "64:ff9b::10.1.2.3", false, false},
		{[]string{"10.1.0.0/16"}, "10.1.255.255", true, true},
		{[]string{"10.1.0.0/16"}, "10.2.0.0", false, false},
		{[]string{"8.8.8.0/24"}, "8.8.8.8", true, true},
		{[]string{"10.9.9.9/8"}, "10.1.2.3", true, true},
		{[]string{"::/0"}, "10.1.2.3", false, false},
		{[]string{"::/0"}, "::ffff:10.1.2.3", false, false},
		{[]string{"::ffff:0:0/96"}, "::ffff:10.1.2.3", false, false},
		{[]string{"fd00::/8", "127.0.0.1/32"}, "fd00:ec2::254", true, true},
		{[]string{"fd00::/8", "127.0.0.1/32"}, "127.0.0.1", true, true},
		{[]string{"fd00::/8", "127.0.0.1/32"}, "127.0.0.2", false, false},
		{[]string{"fe80::/10"}, "fe80::1", true, true},
		{[]string{"fe80::/10"}, "fe80::1%eth0", false, false},
		{[]string{"64:ff9b::/96"}, "64:ff9b::8.8.8.8", true, false},
		{[]string{"64:ff9b::/96"}, "64:ff9b::10.1.2.3", false, false},
		{[]string{"64:ff9b::/96", "10.0.0.0/8"}, "64:ff9b::10.1.2.3", true, true},
		{[]string{"64:ff9b::/96", "10.0.0.0/8"}, "64:ff9b::169.254.169.254", false, false},
	} {
		g := &Policy{Allow: prefixes(tt.allow...)}
		addr := netip.MustParseAddr(tt.addr)
		got := [2]bool{g.judge(addr, false) == nil, g.judge(addr, true) == nil}
		if diff := cmp.Diff([2]bool{tt.https, tt.plain}, got); diff != "" {
			t.Errorf("%s with %v, by https and plain http (-want +got):\n%s", tt.addr, tt.allow, diff)
		}
	}
}

func TestCheckNoAddress(t *testing.T) {
	everything := &Policy{Allow: prefixes("0.0.0.0/0", "::/0")}
	for _, addr := range []netip.Addr{
		{}, netip.MustParseAddr("2606:4700:4700::1111%eth0"), netip.MustParseAddr("::ffff:8.8.8.8%eth0"),
	} {
		var refused *RefusedError
		if err := everything.judge(addr, false); !errors.As(err, &refused) {
			t.Errorf("%v: %v, want a *RefusedError", addr, err)
		}
	}
}

func TestErrorText(t *testing.T) {
	addr := netip.MustParseAddr("10.0.0.1")
	for _, tt := range []struct {
		err  RefusedError
		want string
	}{
		{RefusedError{Reason: "no"}, "egress: connection refused: no"},
		{RefusedError{Host: "a.example", Reason: "no"}, "egress: connection refused to a.example: no"},
		{
			RefusedError{Host: "a.example", Addr: addr, Reason: "no"},
			"egress: connection refused to a.example at 10.0.0.1: no",
		},
		{RefusedError{Host: "10.0.0.1", Addr: addr, Reason: "no"}, "egress: connection refused to 10.0.0.1: no"},
		{RefusedError{Addr: addr, Reason: "no"}, "egress: connection refused at 10.0.0.1: no"},
	} {
		if diff := cmp.Diff(tt.want, tt.err.Error()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
