// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"net"
	"net/url"
	"strings"

	"github.com/aip-gateway/aip-gateway/translate"
)

// offer is an offer of the card, with its URL resolved.
type offer struct {
	translate.Offer
	url   string
	moved bool
}

func (o offer) found(why string) Found {
	if o.moved {
		why += "; the card names another host for the endpoint, which the configured one replaces"
	}
	return Found{Dialect: o.Dialect, URL: o.url, Why: why}
}

// endpoint returns the URL to use for that of an offer, empty for none. Agents in containers and behind proxies name
// hosts that mean nothing outside, or the wrong scheme, and the gateway's credentials are for the configured host
// alone: so only the path and the query are the card's, and the port of another server. moved reports that the rest was
// not the configured one.
func (d *discovery) endpoint(o translate.Offer) (endpoint string, moved bool) {
	if o.OwnPort {
		return d.ownPort(o.URL)
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", false
	}
	moved = u.Scheme != d.base.Scheme || !strings.EqualFold(u.Hostname(), d.base.Hostname()) || port(u) != port(d.base)
	u.Scheme, u.Host, u.Fragment, u.RawFragment = d.base.Scheme, d.base.Host, "", ""
	rooted(u)
	return u.String(), moved
}

// ownPort is endpoint for a server with a port of its own. TLS is never dropped: the agent has it if the configured URL
// or the card says so, or if the port is that of https.
func (d *discovery) ownPort(card string) (endpoint string, moved bool) {
	if !strings.Contains(card, "://") {
		card = d.base.Scheme + "://" + card
	}
	u, err := url.Parse(card)
	if err == nil && u.Scheme == "dns" { // as gRPC writes it: dns:///host:port
		u, err = url.Parse(d.base.Scheme + ":/" + u.Path)
	}
	if err != nil || u.Hostname() == "" || u.User != nil {
		return "", false
	}
	moved = !strings.EqualFold(u.Hostname(), d.base.Hostname())
	own := url.URL{Scheme: d.base.Scheme, Path: u.Path, RawPath: u.RawPath}
	if u.Scheme == "https" || u.Scheme == "grpcs" || u.Port() == "443" {
		own.Scheme = "https"
	}
	own.Host = net.JoinHostPort(d.base.Hostname(), cmp.Or(u.Port(), port(&own)))
	rooted(&own)
	return own.String(), moved
}

// rooted sets the path of a URL that has none.
func rooted(u *url.URL) {
	if u.Path == "" {
		u.Path = "/"
	}
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}
