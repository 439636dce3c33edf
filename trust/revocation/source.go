// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/registry"
)

// Kind is the kind of a source.
type Kind string

// The kinds.
const (
	// CRL is a list of revoked certificates (RFC 5280 §5), complete or a delta. It proves itself by its signature, so
	// http is as good as https.
	CRL Kind = "crl"
	// OCSP asks a responder (RFC 6960). Its answers are signed by the issuer, or by a responder certified for it by the
	// issuer.
	OCSP Kind = "ocsp"
	// ACPS asks a certificate authority of ACPs v2.1 for the status as JSON. The status is not signed.
	ACPS Kind = "acps"
	// Registry follows the active agents of a registry of ACPs v2.1. The list is not signed.
	Registry Kind = "registry"
)

// Source is a source of knowledge about revoked certificates.
type Source struct {
	Kind Kind
	// Location is the absolute path of a file or the URL of a list; the URL of an OCSP responder, default: the one named
	// by a certificate; or the URL of an authority or a registry of ACPs. That URL must be https with Config.Roots, or on
	// this host.
	Location string
	// Staples makes a source of OCSP send no requests: it takes only the responses brought by callers.
	Staples bool
	// Feed is the feed of a Registry. The Checker starts it and does not close it.
	Feed *registry.Feed
}

// name returns the name of the source, as in the configuration.
func (s *Source) name() string {
	if s.Kind == CRL {
		return s.Location
	}
	return strings.TrimSpace(string(s.Kind) + " " + s.Location)
}

// check checks a source. rooted says whether there are Config.Roots.
func (s *Source) check(rooted bool) error {
	if s.Staples && (s.Kind != OCSP || s.Location != "") {
		return errors.New("staples have no URL, and are of OCSP")
	}
	switch s.Kind {
	case CRL:
		return s.checkList()
	case OCSP:
		if s.Location == "" {
			return nil
		}
	case ACPS, Registry:
	default:
		return fmt.Errorf("%q is no kind of a source", s.Kind)
	}
	u, err := url.Parse(s.Location)
	switch {
	case err != nil:
		return fmt.Errorf("the URL of %s cannot be read", s.Kind) // err may show a password
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return fmt.Errorf("the URL of %s must be http or https, with a host, and without a user, a query or a #", s.Kind)
	case s.Kind != OCSP && (u.Scheme != "https" || !rooted) && !loopback(u.Hostname()):
		return fmt.Errorf("the answers of %s are not signed: the URL must be https, and the root of its certificate "+
			"must be given; on this host neither is needed", u.Redacted())
	}
	s.Location = strings.TrimSuffix(s.Location, "/")
	return nil
}

func (s *Source) checkList() error {
	if !isURL(s.Location) {
		if !filepath.IsAbs(s.Location) {
			return fmt.Errorf("the list %s is no absolute path", s.Location)
		}
		return nil
	}
	u, err := url.Parse(s.Location)
	switch {
	case err != nil:
		return errors.New("the URL of a list cannot be read")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return fmt.Errorf("the list %s must be http or https", u.Redacted())
	case u.User != nil:
		return fmt.Errorf("the list %s must have no user and password", u.Redacted())
	}
	return nil
}

func isURL(location string) bool { return strings.Contains(location, "://") }

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// add adds a checked source, behind the others.
func (c *Checker) add(s Source, place int) {
	switch s.Kind {
	case CRL:
		l := &location{place: place, name: s.Location, url: isURL(s.Location), kept: make(map[int]*list)}
		if l.url && c.config.Dir != "" {
			l.cache = cacheName(c.config.Dir, l.name)
		}
		c.locations = append(c.locations, l)
	case Registry:
		c.registries = append(c.registries, &follower{place, s.name(), s.Location, s.Feed})
	default:
		q := &querier{Source: s, place: place, client: c.client, refuseUnknown: c.config.RefuseUnknown,
			times: make([]time.Time, c.config.Rate)}
		c.queriers = append(c.queriers, q)
		if s.Kind == OCSP && c.responder == nil {
			c.responder = q
		}
	}
}
