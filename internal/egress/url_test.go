// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const secret = "s3cr3t"

const (
	scheme     = "the URL must begin with https://"
	characters = "the URL has a space, a control character or one outside ASCII; " +
		"percent-encode it, and write a host in its xn-- form"
	fragment    = "the URL must not have a fragment (#)"
	unreadable  = "the URL cannot be read"
	absolute    = "the URL must be absolute: https:// and a host"
	credentials = "the URL must not hold credentials"
	noHost      = "the URL has no host"
	number      = "the host looks like a number; an address is written as four decimal numbers"
	noName      = "the host is neither a name nor an address"
	notPublic   = "the host is not a name of the public DNS"
	port        = "the port must be a number from 1 to 65535"
	loopback    = "the address is not public: it is in 127.0.0.0/8, Loopback"
	plainHTTP   = "the URL must begin with https://, because its address is public"
	zone        = "the address has a zone, so it is not public"
)

func TestCheckURL(t *testing.T) {
	long := strings.Repeat("a", maxURL-len("https://a.example/"))
	label := strings.Repeat("a", maxLabel)
	for _, tt := range []struct {
		raw           string
		public, local string // the reasons of the zero Policy, and of one allowing 127.0.0.0/8; "" if it passes
	}{
		{"https://a.example", "", ""},
		{"https://a.example/hook?token=" + secret, "", ""},
		{"HTTPS://A.Example:8443/", "", ""},
		{"https://a.example.:443/", "", ""},
		{"https://a.example:65535/", "", ""},
		{"https://xn--bcher-kva.example/%20", "", ""},
		{"https://a_b.1.example/", "", ""},
		{"https://0x7f.example/", "", ""},
		{"https://a.0x7g/", "", ""},
		{"https://8.8.8.8/", "", ""},
		{"https://[2606:4700:4700::1111]:8443/", "", ""},
		{"https://[::ffff:8.8.8.8]/", "", ""},
		{"https://a.example/" + long, "", ""},
		{"https://" + label + ".example/", "", ""},

		{"", "the URL is empty", "the URL is empty"},
		{"https://a.example/" + long + "a", "the URL has 2049 bytes, but at most 2048 are allowed",
			"the URL has 2049 bytes, but at most 2048 are allowed"},
		{"https://a.example/\r\nHost: b", characters, characters},
		{"https://a.example/\n", characters, characters},
		{" https://a.example/", characters, characters},
		{"https://a.example/\x00", characters, characters},
		{"https://a.example/\x7f", characters, characters},
		{"https://a.example/é", characters, characters},
		{"https://a.example/\xff", characters, characters},
		{"https://１２７.０.０.１/", characters, characters},
		{"https://127。0。0。1/", characters, characters},
		{"https://a.example/#", fragment, fragment},
		{"https://a.example/#" + secret, fragment, fragment},
		{"https://a.example:port/", unreadable, unreadable},
		{"https://a.example/%zz" + secret, unreadable, unreadable},
		{"https://[::1/", unreadable, unreadable},
		{"https://a%00.example/", unreadable, unreadable},
		{"https://127.0.0.1\\@a.example/", unreadable, unreadable},
		{"a.example/hook", absolute, absolute},
		{"//a.example/hook", absolute, absolute},
		{"/hook", absolute, absolute},
		{"ftp://a.example/", scheme, scheme},
		{"file:///etc/passwd", scheme, scheme},
		{"gopher://127.0.0.1:6379/", scheme, scheme},
		{"javascript:alert(1)", scheme, scheme},
		{"https://user:" + secret + "@a.example/", credentials, credentials},
		{"https://" + secret + "@a.example/", credentials, credentials},
		{"https://@a.example/", credentials, credentials},
		{"https:a.example", noHost, noHost},
		{"https:///hook", noHost, noHost},
		{"https://:443/", noHost, noHost},
		{"https://a..example/", noName, noName},
		{"https://.a.example/", noName, noName},
		{"https://a.example../", noName, noName},
		{"https://./", noName, noName},
		{"https://a*.example/", noName, noName},
		{"https://a%c3%a9.example/", noName, noName},
		{"https://" + label + "a.example/", noName, noName},
		{"https://" + strings.Repeat(label+".", 4) + "example/", noName, noName},
		{"https://a.example:0/", port, port},
		{"https://a.example:00/", port, port},
		{"https://a.example:65536/", port, port},
		{"https://a.example:99999999999999999999/", port, port},
		{"https://a.example:/", port, port},

		{"http://a.example/", scheme, ""},
		{"http://8.8.8.8/", scheme, plainHTTP},
		{"http://127.0.0.1:8080/", scheme, ""},
		{"https://127.0.0.1/", loopback, ""},
		{"https://[::ffff:127.0.0.1]/", loopback, ""},
		{"https://[::ffff:7f00:1]/", loopback, ""},
		{"https://10.0.0.1/", "the address is not public: it is in 10.0.0.0/8, Private-Use",
			"the address is not public: it is in 10.0.0.0/8, Private-Use"},
		{"https://169.254.169.254/latest/meta-data", "the address is not public: it is in 169.254.0.0/16, Link Local",
			"the address is not public: it is in 169.254.0.0/16, Link Local"},
		{"https://[fd00:ec2::254]/", "the address is not public: it is in fc00::/7, Unique-Local",
			"the address is not public: it is in fc00::/7, Unique-Local"},
		{"https://[::]/", "the address is not public: it is in ::/128, Unspecified Address",
			"the address is not public: it is in ::/128, Unspecified Address"},
		{"https://[fe80::1%25eth0]/", zone, zone},
		{"https://[2606:4700:4700::1111%25eth0]/", zone, zone},

		{"https://127.1/", number, number},
		{"https://127.0.0.1./", number, number},
		{"https://0x7f000001/", number, number},
		{"https://0X7F000001/", number, number},
		{"https://0x7f.1/", number, number},
		{"https://0x7f.0x0.0x0.0x1/", number, number},
		{"https://2130706433/", number, number},
		{"https://017700000001/", number, number},
		{"https://0177.0.0.1/", number, number},
		{"https://127.0.0.01/", number, number},
		{"https://127.0.0.0x1/", number, number},
		{"https://1.2.3.4.5/", number, number},
		{"https://256.256.256.256/", number, number},
		{"https://0/", number, number},
		{"https://0x/", number, number},
		{"https://a.example.0x/", number, number},
		{"https://a.example.1/", number, number},

		{"https://localhost/", notPublic, ""},
		{"https://LocalHost.:8443/", notPublic, ""},
		{"https://a.localhost/", notPublic, ""},
		{"https://printer.local/", notPublic, ""},
		{"https://metadata.google.internal/", notPublic, ""},
		{"https://router.home.arpa/", notPublic, ""},
		{"https://receiver/", notPublic, ""},
		{"http://receiver:8080/", scheme, ""},
		{"https://notlocalhost.example/", "", ""},
		{"https://internal.example/", "", ""},
	} {
		for _, by := range []struct {
			policy Policy
			want   string
		}{{Policy{}, tt.public}, {Policy{Allow: prefixes("127.0.0.0/8")}, tt.local}} {
			u, err := by.policy.CheckURL(tt.raw)
			got := ""
			if err != nil {
				var refused *RefusedError
				if !errors.As(err, &refused) || u != nil {
					t.Errorf("%q: %v and %v, want a *RefusedError alone", tt.raw, u, err)
					continue
				}
				got = refused.Reason
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q: the error holds the secret: %v", tt.raw, err)
				}
			}
			if diff := cmp.Diff(by.want, got); diff != "" {
				t.Errorf("%q with %v (-want +got):\n%s", tt.raw, by.policy.Allow, diff)
			}
		}
	}
}

// Go refuses an IPv4 address in brackets today. Should that change, the policy still does.
func TestCheckHostInBrackets(t *testing.T) {
	for _, host := range []string{"[127.0.0.1]", "[8.8.8.8]", "[a.example]", "[]"} {
		if err := new(Policy).checkHost(&url.URL{Scheme: "https", Host: host}); err == nil {
			t.Errorf("%s passes", host)
		}
	}
}

func TestCheckURLNamesTheHost(t *testing.T) {
	for raw, want := range map[string]RefusedError{
		"https://127.0.0.1/" + secret: {
			Kind: NotPublic, Host: "127.0.0.1", Addr: netip.MustParseAddr("127.0.0.1"), Reason: loopback,
		},
		"https://localhost/?" + secret:   {Kind: NotPublic, Host: "localhost", Reason: notPublic},
		"https://a.example:0/?" + secret: {Host: "a.example", Reason: port},
		"https://a..example/?" + secret:  {Reason: noName},
	} {
		_, err := new(Policy).CheckURL(raw)
		var refused *RefusedError
		if !errors.As(err, &refused) {
			t.Errorf("%q: %v, want a *RefusedError", raw, err)
			continue
		}
		if diff := cmp.Diff(want, *refused, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
			t.Errorf("%q (-want +got):\n%s", raw, diff)
		}
	}
}

// aton reads an IPv4 address as inet_aton of C does: one to four numbers, each decimal, octal or hexadecimal. The last
// fills the rest.
func aton(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var all uint64
	for i, part := range parts {
		low := strings.ToLower(part)
		if strings.Contains(part, "_") || strings.HasPrefix(low, "0b") || strings.HasPrefix(low, "0o") {
			return netip.Addr{}, false // Go's own spellings
		}
		size := 8
		if i == len(parts)-1 {
			size = 8 * (5 - len(parts))
		}
		n, err := strconv.ParseUint(part, 0, size)
		if err != nil {
			return netip.Addr{}, false
		}
		all = all<<size | n
	}
	return netip.AddrFrom4([4]byte{byte(all >> 24), byte(all >> 16), byte(all >> 8), byte(all)}), true
}

func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{
		"https://a.example/hook?x=y", "https://8.8.8.8/", "https://[2606:4700:4700::1111]:8443/",
		"https://[::ffff:127.0.0.1]/", "https://127.1/", "https://0x7f000001/", "https://2130706433",
		"https://017700000001", "https://[fe80::1%25eth0]/", "https://user:pass@a.example/", "http://localhost:80/",
		"https://a.example:0/", "https://a\\b/", "https:a", "//a", "#", "%",
		"https://1.1.1.1.", "https://[::1]:", "https://a.example:/",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		local := &Policy{Allow: prefixes("127.0.0.0/8")}
		u, err := new(Policy).CheckURL(raw)
		if err != nil {
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Reason == "" {
				t.Fatalf("%q: %v, want a *RefusedError with a reason", raw, err)
			}
			return
		}
		if _, err := local.CheckURL(raw); err != nil {
			t.Errorf("%q passes, and no longer when something is allowed: %v", raw, err)
		}
		if u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Hostname() == "" || len(raw) > maxURL {
			t.Errorf("%q passes", raw)
		}
		if again, err := url.Parse(u.String()); err != nil || again.Host != u.Host || again.Scheme != u.Scheme {
			t.Errorf("%q is written as %q, which has another host: %v", raw, u, err)
		}
		host := strings.TrimSuffix(u.Hostname(), ".")
		addr, err := netip.ParseAddr(host)
		if odd, is := aton(host); is && (err != nil || odd != addr) {
			t.Errorf("%q passes, but its host can be read as %v", raw, odd)
		}
		if err == nil {
			if err := new(Policy).judge(addr, false); err != nil {
				t.Errorf("%q passes, but not its address: %v", raw, err)
			}
		}
	})
}
