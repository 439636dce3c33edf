// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/gunzip"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// Limits of a search.
const (
	maxQuestions    = 20
	questionTimeout = 10 * time.Second // for each, connection and body included
	maxCard         = 1 << 20          // size of any answer, in bytes
	maxHeaderBytes  = 64 << 10
)

// asker asks an agent a few questions. It follows no redirects: they would carry the gateway's credentials away.
type asker struct {
	ctx       context.Context
	transport *http.Transport
	header    http.Header
	host      string
	origin    *url.URL        // as it is configured; it alone gets the header, and the certificate of transport
	strange   *http.Transport // to all others
	remaining int             // the number of questions left
	troubled  bool            // its server has failed at a question, or has put it off
}

func newAsker(ctx context.Context, config Config, origin *url.URL) asker {
	dial := config.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	k := asker{
		ctx: ctx, origin: origin, remaining: maxQuestions, header: http.Header{"User-Agent": {"aip-gateway"}},
		host: config.Header.Get("Host"), // net/http wants it apart
		transport: &http.Transport{
			DialContext:            dial,
			TLSClientConfig:        config.TLS.Clone(),
			DisableCompression:     true,
			DisableKeepAlives:      true, // so no question is lost on a connection just being closed
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
	}
	k.strange = k.transport.Clone()
	k.strange.TLSClientConfig = nil
	for name, values := range config.Header {
		if name = http.CanonicalHeaderKey(name); name != "Host" {
			k.header[name] = values
		}
	}
	return k
}

// answer is the answer to a question; the zero answer is for a question not asked.
type answer struct {
	status   int
	body     []byte
	tooLarge bool
	verdict  translate.Verdict
	object   bool   // the body is a JSON object
	location string // of a redirect
}

// slashed returns the asked URL with a slash at the end of its path, or without it, if the agent redirects there. It
// stays at the asked host, scheme and port: they have the credentials. nil is for any other answer.
//
// Lenient: frameworks redirect so, and clients follow.
func (a answer) slashed(u *url.URL) *url.URL {
	to, err := url.Parse(a.location)
	if a.location == "" || err != nil {
		return nil
	}
	at, other := *u, u.Path+"/"
	if cut, is := strings.CutSuffix(u.Path, "/"); is {
		other = cut
	}
	to = u.ResolveReference(to)
	if !strings.EqualFold(to.Hostname(), u.Hostname()) || to.Path != other || other == "" {
		return nil
	}
	at.Path, at.RawPath = other, ""
	return &at
}

// unauthorized reports whether the agent answers only callers known to it.
func (a answer) unauthorized() bool {
	return a.verdict == translate.Unsure && (a.status == http.StatusUnauthorized || a.status == http.StatusForbidden)
}

// problem describes the fault of an answer. It holds nothing written by the agent.
func (a answer) problem() string {
	what := "HTTP " + strconv.Itoa(a.status)
	switch {
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		return what + ": the agent refuses the gateway's credentials"
	case a.status >= 300 && a.status < 400:
		return what + ": the agent redirects, which is not followed"
	case a.tooLarge:
		return what + " and more than " + strconv.Itoa(maxCard) + " bytes"
	}
	if a.status == http.StatusOK {
		what += ", but nothing that is understood"
	}
	return what
}

// ask sends one request and reads the whole answer. No answer of the agent is an error; an unreachable or silent agent
// is one.
func (k *asker) ask(method string, u *url.URL, fields []translate.Field, body []byte) (answer, error) {
	k.remaining--
	ctx, cancel := context.WithTimeout(k.ctx, questionTimeout)
	defer cancel()
	transport, header, host := k.transport, k.header.Clone(), k.host
	if !isAt(u, k.origin) {
		transport, header, host = k.strange, http.Header{"User-Agent": k.header["User-Agent"]}, ""
	}
	header.Set("Accept", "application/json")
	for _, f := range fields {
		header.Set(f.Name, f.Value)
	}
	req := (&http.Request{Method: method, URL: u, Host: host, Header: header}).WithContext(ctx)
	if body != nil {
		header.Set("Content-Type", "application/json")
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	res, err := gunzip.Transport{Transport: transport}.RoundTrip(req)
	if err != nil {
		return answer{}, k.broken(ctx, err)
	}
	defer res.Body.Close()
	a := answer{status: res.StatusCode}
	k.troubled = k.troubled || a.status >= http.StatusInternalServerError || a.status == http.StatusTooManyRequests
	switch res.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		a.location = res.Header.Get("Location")
	case http.StatusMovedPermanently, http.StatusFound:
		if method == http.MethodGet { // these are followed by GET
			a.location = res.Header.Get("Location")
		}
	}
	if a.body, err = io.ReadAll(io.LimitReader(res.Body, maxCard+1)); err != nil {
		return answer{}, k.broken(ctx, err)
	}
	if len(a.body) > maxCard {
		a.body, a.tooLarge = nil, true
	}
	return a, nil
}

// isAt reports whether a URL is at the scheme, host and port of another one.
func isAt(u, origin *url.URL) bool {
	return u.Scheme == origin.Scheme && strings.EqualFold(u.Hostname(), origin.Hostname()) && port(u) == port(origin)
}

// broken returns an error of the connection as an error for the caller.
func (k *asker) broken(ctx context.Context, err error) error {
	switch {
	case k.ctx.Err() != nil:
		return upstream.Ended(k.ctx)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return task.Errorf(task.AgentTimeout, "the agent did not answer within %v; start it, or correct its URL",
			questionTimeout).WithCause(err)
	}
	return httptransport.DialFailed(err, "the agent cannot be reached; start it, or correct its URL")
}
