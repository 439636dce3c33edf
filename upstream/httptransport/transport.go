// SPDX-License-Identifier: Apache-2.0

// Package httptransport carries requests to an agent over HTTP: one request and one response each. The body of a
// response is one message or a stream of server-sent events.
package httptransport

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/aip-gateway/aip-gateway/internal/http1"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// Config is the configuration of a Transport. URL and Codec are required; zero means the default of everything else.
type Config struct {
	URL   string           // the agent's endpoint, http or https
	Codec translate.Client // the agent's dialect: its header fields, methods of HTTP and paths

	// Paths are the paths, on the host of the URL, of operations not sent to the URL; nil for none.
	Paths map[translate.Operation]string

	// Header is sent with every request: the gateway's credentials for the agent. It is never logged.
	Header http.Header
	TLS    *tls.Config // for https; default: the system's roots

	// Introducer names to the agent the caller behind a request; nil: it is not named. Header has none of its fields.
	Introducer upstream.Introducer

	MaxReply int // largest size of an answer, in bytes; default 16 MiB
	MaxEvent int // largest size of one event of a stream, in bytes; default MaxReply

	// Dial opens the connections; default: TCP, directly. The proxy settings of the environment are not used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// The defaults, and values not for an operator to choose.
const (
	defaultMaxReply = 16 << 20

	dialTimeout = 10 * time.Second // TLS included
	// Many agents close a connection after 5 s of idling. To send on one just being closed would leave it open whether the
	// agent has received the message, so the gateway closes it first.
	idleConnTimeout = 4 * time.Second
	maxIdleConns    = 1024
)

// Transport reaches an agent by HTTP/1.1. It implements upstream.Transport.
type Transport struct {
	config       Config
	facets       translate.Facets // of the codec
	url          *url.URL
	host         string
	unary, event fields // of requests for one answer, or for a stream
	dialer       dialer
	pool         *http1.Pool

	rpc, events *routes                                  // of operations answered once, and by a stream
	elsewhere   map[translate.Operation][]upstream.Route // by Config.Paths
}

var _ upstream.Transport = (*Transport)(nil)

// New returns a transport to the agent at config.URL. Nothing is sent before it is used. An error to be corrected by an
// operator in the configuration is an *upstream.Error.
func New(config Config) (*Transport, error) {
	u, err := ParseURL(config.URL)
	switch {
	case err != nil:
		return nil, err
	case config.Codec == nil:
		return nil, errors.New("the agent's dialect is missing")
	}
	for name, values := range config.Header {
		for _, v := range values {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v) {
				return nil, invalid(upstream.InvalidHeader,
					"the header field %q has a name or a value that HTTP does not allow", name)
			}
		}
	}
	if config.MaxReply <= 0 {
		config.MaxReply = defaultMaxReply
	}
	if config.MaxEvent <= 0 {
		config.MaxEvent = config.MaxReply
	}
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	t := &Transport{config: config, facets: translate.FacetsOf(config.Codec), url: u,
		pool: http1.NewPool(maxIdleConns, idleConnTimeout)}
	if t.dialer, err = newDialer(&t.config, u); err == nil {
		t.host, err = hostField(cmp.Or(config.Header.Get("Host"), u.Host))
	}
	if err != nil {
		return nil, invalid(upstream.InvalidURL, "the agent's host is invalid: %w", err)
	}
	t.rpc, t.events = t.newRoutes(u)
	if t.elsewhere, err = t.routesElsewhere(u, config.Paths); err != nil {
		return nil, err
	}
	t.unary, t.event = t.fields("application/json"), t.fields("text/event-stream")
	return t, nil
}

// Close implements upstream.Transport.
func (t *Transport) Close() { t.pool.Close() }

// ParseURL reads an agent's URL, without its fragment. An error is an *upstream.Error. It does not quote the URL: that
// may hold a password.
func ParseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, invalid(upstream.InvalidURL, "the agent's URL cannot be read")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, invalid(upstream.InvalidURL, "the agent's URL must begin with http:// or https:// and a host")
	case u.User != nil:
		return nil, invalid(upstream.URLHasCredentials, "the agent's URL must not hold credentials")
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// invalid is an error of a configuration.
func invalid(r upstream.Reason, format string, args ...any) error {
	return &upstream.Error{Reason: r, Err: fmt.Errorf(format, args...)}
}
