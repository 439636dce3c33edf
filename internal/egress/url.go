// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// The limits of a URL, in bytes. Those of names are DNS's (RFC 1035 §2.3.4).
const (
	maxURL   = 2048
	maxName  = 253
	maxLabel = 63
)

// CheckURL reads a URL and refuses it if it could never be reached, without a lookup. Its errors are of type
// *RefusedError.
//
// Names outside the public DNS pass if Allow is not empty: their addresses are judged at the dial.
func (p *Policy) CheckURL(raw string) (*url.URL, error) {
	switch {
	case raw == "":
		return nil, invalid("the URL is empty")
	case len(raw) > maxURL:
		return nil, invalid("the URL has %d bytes, but at most %d are allowed", len(raw), maxURL)
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		// A URL is made of printable ASCII (RFC 3986 §2). Some other characters would be mapped to ASCII on their way,
		// such as full-width digits.
		return nil, invalid("the URL has a space, a control character or one outside ASCII; " +
			"percent-encode it, and write a host in its xn-- form")
	case strings.Contains(raw, "#"):
		return nil, invalid("the URL must not have a fragment (#)")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil: // err quotes the URL, which may hold a secret
		return nil, invalid("the URL cannot be read")
	case u.Scheme == "":
		return nil, invalid("the URL must be absolute: https:// and a host")
	case u.Scheme == "http" && len(p.Allow) == 0, u.Scheme != "http" && u.Scheme != "https":
		return nil, invalid("the URL must begin with https://")
	case u.User != nil:
		return nil, invalid("the URL must not hold credentials")
	case u.Hostname() == "":
		return nil, invalid("the URL has no host")
	}
	if err := p.checkHost(u); err != nil {
		return nil, err
	}
	port, err := portOf(u)
	if err != nil {
		return nil, err
	}
	if p.closesURL(u.Hostname(), port) {
		return nil, &RefusedError{Kind: Closed, Host: u.Hostname(), Reason: closedReason}
	}
	return u, nil
}

func (p *Policy) checkHost(u *url.URL) error {
	host := u.Hostname()
	addr, err := netip.ParseAddr(host)
	bracketed := strings.HasPrefix(u.Host, "[")
	switch {
	case err == nil && bracketed == addr.Is6():
		if err := p.judge(addr, u.Scheme == "http"); err != nil {
			refused := err.(*RefusedError)
			refused.Host = host
			return refused
		}
		return nil
	case err == nil || bracketed:
		return invalid("the host is not an address: only IPv6 is written in brackets")
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if !isName(name) {
		return invalid("the host is neither a name nor an address")
	}
	labels := strings.Split(name, ".")
	if isNumber(labels[len(labels)-1]) {
		err := invalid("the host looks like a number; an address is written as four decimal numbers")
		err.Host = host
		return err
	}
	if len(p.Allow) == 0 && !isPublicName(name) {
		return &RefusedError{Kind: NotPublic, Host: host, Reason: "the host is not a name of the public DNS"}
	}
	return nil
}

// isName reports whether s is made of labels of letters, digits, hyphens and underscores. DNS and certificates
// allow no underscore in names of hosts, but private networks do.
func isName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > maxLabel {
			return false
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return true
}

// isNumber reports whether a name with the last label s could be taken for an IPv4 address: resolvers of C read
// 127.1, 0x7f000001, 017700000001 and 2130706433 as 127.0.0.1. No name of the public DNS ends so.
func isNumber(s string) bool {
	digits, hex := "0123456789", false
	if s, hex = strings.CutPrefix(s, "0x"); hex {
		digits += "abcdef"
	}
	return strings.Trim(s, digits) == ""
}

// privateNames are the domains of the machine itself or the network around it (RFC 6761, RFC 6762, RFC 8375, and
// .internal, kept by ICANN for this use).
var privateNames = []string{"localhost", "local", "internal", "home.arpa"}

func isPublicName(name string) bool {
	for _, private := range privateNames {
		if name == private || strings.HasSuffix(name, "."+private) {
			return false
		}
	}
	return strings.Contains(name, ".")
}

// portOf returns the port of an http or https URL.
func portOf(u *url.URL) (uint16, error) {
	port := u.Port()
	if port == "" && !strings.HasSuffix(u.Host, ":") {
		return map[string]uint16{"http": 80, "https": 443}[u.Scheme], nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		refused := invalid("the port must be a number from 1 to 65535")
		refused.Host = u.Hostname()
		return 0, refused
	}
	return uint16(n), nil
}
