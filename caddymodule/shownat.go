// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
)

// A connection shows one certificate, and Leaders compare the AIC in it. So the Partners at the port and the name of a
// handshake decide which one that is.

// partnersAt returns the AICs of the Partners that are reached by a handshake, of those whose certificates are
// obtained; none where that is not known.
func (a *App) partnersAt(hello *tls.ClientHelloInfo) (aics []string) {
	if hello.Conn == nil {
		return nil
	}
	_, port, err := net.SplitHostPort(hello.Conn.LocalAddr().String())
	if err != nil { // a socket has no port
		return nil
	}
	for _, g := range a.members {
		if g.server == nil || !a.Certificates.Obtains(g.AIC) || slices.Contains(aics, g.AIC) {
			continue
		}
		if listensAt(g.server, port) && pki.Serves(g.hosts(), hello.ServerName) {
			aics = append(aics, g.AIC)
		}
	}
	return aics
}

// listensAt reports whether a server listens at a port.
func listensAt(server *caddyhttp.Server, port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && slices.ContainsFunc(server.Listen, func(address string) bool {
		at, err := caddy.ParseNetworkAddress(address)
		return err == nil && at.StartPort <= uint(n) && uint(n) <= at.EndPort
	})
}

// checkShown finds sites of several Partners that get_certificate aip is to choose for, although a connection does not
// say which of them it is for.
func (a *App) checkShown() error {
	app, err := a.pki.Sites()
	if app == nil {
		return err
	}
	for _, one := range a.members {
		for _, two := range a.members {
			switch {
			case one.server == nil || one.server != two.server || one.AIC >= two.AIC:
			case !a.Certificates.Obtains(one.AIC) || !a.Certificates.Obtains(two.AIC):
			default:
				host, both := commonHost(one.hosts(), two.hosts())
				if getter := pki.GetterFor(app, host); both && getter != nil && getter.Partner == "" {
					return fmt.Errorf("get_certificate aip: the Partners %s and %s are at one address (%s), and a connection shows "+
						"one certificate: give each a host name or a port of its own, or write get_certificate aip <AIC> for the "+
						"one whose certificate is to be shown", one.AIC, two.AIC, strings.TrimSpace(host+" "+
						strings.Join(one.server.Listen, " ")))
				}
			}
		}
	}
	return nil
}

// commonHost returns a name that two sites take, which is empty for every name, and whether there is one.
func commonHost(one, two []string) (host string, both bool) {
	switch {
	case len(one) == 0 && len(two) == 0:
		return "", true
	case len(one) == 0:
		one, two = two, one
	}
	for _, name := range one {
		if pki.Serves(two, name) {
			return name, true
		}
	}
	return "", false
}
