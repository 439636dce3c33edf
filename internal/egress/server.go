// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
)

// Server is the name and the port of a server of https, in the form for comparing them.
type Server string

// ParseServer reads host or host:port. The port is 443 if there is none. An IPv6 address stands in brackets.
func ParseServer(s string) (Server, error) {
	u, err := url.Parse("https://" + s)
	if err != nil || u.Host != s || u.Hostname() == "" {
		return "", errors.New("it must be a host or host:port, such as hooks.example.com")
	}
	if _, err := netip.ParseAddr(u.Hostname()); err != nil && !isName(normalHost(u.Hostname())) {
		return "", errors.New("the host is neither a name nor an address")
	}
	if _, err := portOf(u); err != nil {
		return "", errors.New("the port must be a number from 1 to 65535")
	}
	return ServerOf(u), nil
}

// ServerOf returns the server of an https URL, empty for other URLs.
func ServerOf(u *url.URL) Server {
	port, err := portOf(u)
	if u.Scheme != "https" || err != nil {
		return ""
	}
	return Server(net.JoinHostPort(normalHost(u.Hostname()), strconv.Itoa(int(port))))
}
