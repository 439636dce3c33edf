// SPDX-License-Identifier: Apache-2.0

package group

import (
	"errors"
	"net"
	"strconv"
	"strings"
)

// Broker is a pattern for the brokers of a Partner's connections.
type Broker struct {
	host string // in lower case; with a dot at its beginning, every name below a domain
	port int    // 0 for any
	tls  bool   // connections have TLS, whatever the port and the token are
}

// ParseBroker reads a pattern: host, host:port or *.domain, and before it amqp:// or amqps:// or nothing. An IPv6
// address stands in brackets.
func ParseBroker(pattern string) (Broker, error) {
	rest, b := pattern, Broker{}
	if scheme, after, ok := strings.Cut(pattern, "://"); ok {
		switch strings.ToLower(scheme) {
		case "amqps":
			b.tls = true
		case "amqp":
		default:
			return Broker{}, errors.New("the scheme must be amqp or amqps")
		}
		rest = after
	}
	host := rest
	if h, port, err := net.SplitHostPort(rest); err == nil {
		if b.port, err = strconv.Atoi(port); err != nil || b.port < 1 || b.port > 65535 {
			return Broker{}, errors.New("the port must be a number from 1 to 65535")
		}
		host = h
	} else if inner, ok := strings.CutPrefix(rest, "["); ok {
		if host, ok = strings.CutSuffix(inner, "]"); !ok {
			return Broker{}, errors.New("an IPv6 address stands in brackets")
		}
	} else if strings.Contains(rest, ":") {
		return Broker{}, errors.New("an IPv6 address stands in brackets")
	}
	if below, ok := strings.CutPrefix(host, "*"); ok {
		if len(below) < 2 || below[0] != '.' {
			return Broker{}, errors.New("a star stands only before a dot and a domain, as in *.example.com")
		}
		host = below
	} else if strings.HasPrefix(host, ".") {
		return Broker{}, errors.New("the names below a domain are written with a star, as in *.example.com")
	}
	if host == "" || strings.ContainsAny(host, "*/@? ") {
		return Broker{}, errors.New("it must be a host, host:port or *.domain")
	}
	b.host = normaliseHost(host)
	return b, nil
}

// normaliseHost returns a host in the form for comparing hosts.
func normaliseHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// matches reports whether the pattern has a broker.
func (b Broker) matches(host string, port int) bool {
	host = normaliseHost(host)
	if b.port != 0 && b.port != port {
		return false
	}
	if strings.HasPrefix(b.host, ".") {
		return len(host) > len(b.host) && strings.HasSuffix(host, b.host)
	}
	return host == b.host
}

// allowed reports whether one of the patterns has a broker, and whether one of those asks for TLS.
func allowed(patterns []Broker, host string, port int) (ok, tls bool) {
	for _, b := range patterns {
		if b.matches(host, port) {
			ok, tls = true, tls || b.tls
		}
	}
	return ok, tls
}

// Address returns the address of the broker of a pattern, and whether it is reached by TLS. It is empty for the names
// below a domain. Without a port, it has the port of AMQP, or of AMQP over TLS.
func (b Broker) Address() (address string, tls bool) {
	if strings.HasPrefix(b.host, ".") {
		return "", false
	}
	tls = b.tls || b.port == portTLS
	port := b.port
	switch {
	case port != 0:
	case tls:
		port = portTLS
	default:
		port = portPlain
	}
	return net.JoinHostPort(b.host, strconv.Itoa(port)), tls
}
