// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/translate"
)

// offer is an offer of the card, with its URL resolved.
type offer struct {
	translate.Offer
	url   string
	moved bool
}

// found returns the agent at the endpoint of an offer.
func (d *discovery) found(o offer, why string) Found {
	if o.moved {
		why += "; the card names another host for the endpoint, which the configured one replaces"
	}
	return Found{Dialect: o.Dialect, URL: cmp.Or(d.slashed[o.url], o.url), Why: why}
}

// behindPrefixes returns the possible places of endpoints not at the card's URLs, since a proxy has added to the
// agent's own paths, or cut off from them: below the base, with all of their path or the last segment.
//
// Lenient: agents do not know what their proxies do.
func (d *discovery) behindPrefixes(offers []offer) (all []offer) {
	for _, o := range offers {
		if d.takes(o.url) {
			continue
		}
		for _, u := range d.prefixed(o) {
			all = append(all, offer{url: u})
		}
	}
	return all
}

func (d *discovery) prefixed(o offer) (all []string) {
	u, err := url.Parse(o.url)
	if err != nil || o.OwnPort || o.URL == "" || strings.Trim(u.Path, "/") == "" {
		return nil
	}
	for _, p := range []string{u.Path, path.Base(u.Path)} {
		at := *d.base.JoinPath(p)
		if at.RawQuery = u.RawQuery; at.Path != u.Path {
			all = append(all, at.String())
		}
	}
	return all
}

// placeOf returns the endpoint of an offer: the card's, unless nothing takes requests there, and something does behind
// a prefix.
func (d *discovery) placeOf(o offer) string {
	if !d.takes(o.url) {
		for _, at := range d.prefixed(o) {
			if d.takes(at) {
				return at
			}
		}
	}
	return o.url
}

// takes reports whether an endpoint has answered a question like a real one, not like an empty place.
func (d *discovery) takes(endpoint string) bool {
	return slices.ContainsFunc(d.asked, func(q question) bool {
		a := &q.answer
		return q.endpoint == endpoint && (a.verdict != translate.Unsure || a.status >= 200 && a.status < 300 ||
			a.status == http.StatusBadRequest && a.object)
	})
}

// endpoint returns the URL to use in place of an offer's, empty for none. Agents in containers and behind proxies name
// hosts without a meaning outside, or the wrong scheme, and the gateway's credentials are for the configured host
// alone: so only the path and the query are the card's, and the port of another server. moved reports whether the rest
// was not the configured one.
func (d *discovery) endpoint(o translate.Offer) (endpoint string, moved bool) {
	if o.OwnPort {
		return d.ownPort(o.URL)
	}
	u, err := d.base.Parse(o.URL) // Lenient: some are relative
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", false
	}
	moved = !isAt(u, d.base)
	u.Scheme, u.Host, u.Fragment, u.RawFragment = d.base.Scheme, d.base.Host, "", ""
	rooted(u)
	return u.String(), moved
}

// ownPort is endpoint for a server with a port of its own. TLS is never dropped: the agent has it if the configured URL
// or the card says so, or if the port is the one of https.
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

// rooted sets the path of a URL without one.
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
