// SPDX-License-Identifier: Apache-2.0

// Package grpctransport carries requests to an agent over gRPC: each is a call of a method, answered by one message or
// by a stream of messages. All calls share a few connections of HTTP/2.
package grpctransport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/net/http/httpguts"

	"github.com/aip-gateway/aip-gateway/internal/protobytes"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// Config is the configuration of a Transport. URL and Codec are required; zero means the default of everything else.
type Config struct {
	URL   string           // http for HTTP/2 without TLS, or https; the paths of the methods are below its path
	Codec translate.Client // the agent's dialect, a translate.StatusReader

	// Header is sent with every call, as metadata: the gateway's credentials for the agent. It is never logged.
	Header http.Header
	TLS    *tls.Config // for https; default: the system's roots

	// Introducer names to the agent the caller behind a request, in metadata; nil: it is not named. Header has none of its
	// fields.
	Introducer upstream.Introducer

	MaxMessage int // largest size of a message of the agent, in bytes; default 16 MiB

	// Dial opens the connections; default: TCP, directly. The proxy settings of the environment are not used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// The defaults, and values not for an operator to choose.
const (
	defaultMaxMessage = 16 << 20

	dialTimeout     = 10 * time.Second // TLS included
	idleConnTimeout = 2 * time.Minute

	// A connection silent for pingAfter is asked whether it is still there, and has pingTimeout to answer. Servers of gRPC
	// close a connection if they are asked on it more often than every 5 minutes.
	pingAfter    = 5*time.Minute + 10*time.Second
	pingTimeout  = 15 * time.Second
	writeTimeout = 30 * time.Second

	// streamWindow is the most a stream may send before it is read, in bytes.
	streamWindow = 256 << 10
)

// Transport reaches an agent by gRPC. It implements upstream.Transport.
type Transport struct {
	config Config
	codec  translate.StatusReader
	url    *url.URL
	header http.Header // of every call
	hides  *upstream.Secrets
	host   string // in place of the URL's; empty for the URL's
	dialer dialer
	http   *http.Transport
	routes map[translate.Operation][]upstream.Route
}

var _ upstream.Transport = (*Transport)(nil)

// operations are the operations that may have a method.
var operations = []translate.Operation{translate.Send, translate.SendStream, translate.Get, translate.Cancel,
	translate.Resubscribe, translate.Describe}

// New returns a transport to the agent at config.URL. Nothing is sent before it is used. An error to be corrected by an
// operator in the configuration is an *upstream.Error.
func New(config Config) (*Transport, error) {
	u, err := httptransport.ParseURL(config.URL)
	if err != nil {
		return nil, err
	}
	codec := translate.FacetsOf(config.Codec).StatusReader
	if codec == nil {
		return nil, errors.New("the agent's dialect has no gRPC")
	}
	t := &Transport{config: config, codec: codec, url: u, header: http.Header{"User-Agent": {"aip-gateway"}},
		hides: upstream.NewSecrets(config.Header)}
	for name, values := range config.Header {
		for _, v := range values {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(v) {
				return nil, &upstream.Error{Reason: upstream.InvalidHeader, Err: fmt.Errorf(
					"the header field %q has a name or a value that HTTP does not allow", name)}
			}
		}
		switch name = http.CanonicalHeaderKey(name); {
		case name == "Host":
			t.host = config.Header.Get(name)
		case !isReserved(name):
			t.header[name] = values
		}
	}
	for _, f := range config.Codec.Header() {
		t.header.Set(f.Name, f.Value)
	}
	if t.config.MaxMessage <= 0 {
		t.config.MaxMessage = defaultMaxMessage
	}
	if t.config.Dial == nil {
		t.config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	}
	t.http = t.newHTTP()
	t.routes = make(map[translate.Operation][]upstream.Route)
	base := strings.TrimSuffix((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String(), "/")
	gunzip, gzip := protobytes.Gunzip(t.config.MaxMessage)
	for _, op := range operations {
		_, path := codec.Bind(op, agent.Ref{})
		t.routes[op] = []upstream.Route{&route{
			transport: t, method: path,
			client: connect.NewClient[protobytes.Message, protobytes.Message](t, base+path, connect.WithGRPC(),
				connect.WithCodec(protobytes.Codec{}), connect.WithReadMaxBytes(t.config.MaxMessage),
				connect.WithAcceptCompression(protobytes.Gzip, gunzip, gzip)),
		}}
	}
	return t, nil
}

// isReserved reports whether a header field belongs to gRPC or to HTTP.
func isReserved(name string) bool {
	return strings.HasPrefix(name, "Grpc-") || slices.Contains([]string{
		"Content-Type", "Content-Length", "Transfer-Encoding", "Trailer", "Te", "Connection", "Accept-Encoding",
	}, name)
}

// newHTTP returns a transport of HTTP/2.
func (t *Transport) newHTTP() *http.Transport {
	d := &t.dialer
	d.dial, d.tls = t.config.Dial, t.config.TLS
	protocols := new(http.Protocols)
	protocols.SetHTTP2(t.url.Scheme == "https")
	protocols.SetUnencryptedHTTP2(t.url.Scheme == "http")
	return &http.Transport{
		DialContext: d.plain, DialTLSContext: d.secure, Protocols: protocols,
		IdleConnTimeout: idleConnTimeout, DisableCompression: true,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: pingAfter, PingTimeout: pingTimeout, WriteByteTimeout: writeTimeout,
			MaxReceiveBufferPerStream: streamWindow,
		},
	}
}

// Routes implements upstream.Transport.
func (t *Transport) Routes(op translate.Operation) []upstream.Route { return t.routes[op] }

// Close implements upstream.Transport.
func (t *Transport) Close() { t.http.CloseIdleConnections() }

// Do implements connect.HTTPClient. It follows no redirects: they would carry the gateway's credentials away.
func (t *Transport) Do(r *http.Request) (*http.Response, error) {
	for name, values := range t.header {
		r.Header[name] = values
	}
	if t.host != "" {
		r.Host = t.host
	}
	x := r.Context().Value(exchangeKey{}).(*exchange)
	for name, values := range x.traced {
		r.Header[name] = values
	}
	for _, f := range x.introduction {
		r.Header.Set(f.Name, f.Value)
	}
	for _, f := range x.fields {
		r.Header.Add(f.Name, f.Value)
	}
	res, err := t.http.RoundTrip(r)
	if err == nil {
		x.status, x.media, x.retryAfter = res.StatusCode, res.Header.Get("Content-Type"), res.Header.Get("Retry-After")
	}
	return res, err
}

// route is a method. It implements upstream.Route.
type route struct {
	transport *Transport
	method    string // its path, with a slash before it
	client    *connect.Client[protobytes.Message, protobytes.Message]
}

// Confirm implements upstream.Route: there is one way to call a method.
func (*route) Confirm() {}
