// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// ProbeError is that the Partner cannot be tested. Exit is the status with which the command ends.
type ProbeError struct {
	Exit   int
	Reason string
}

func (e *ProbeError) Error() string { return e.Reason }

// The statuses of the command, beside 0, 1 and 2.
const (
	ExitUnreachable   = 3
	ExitNotAuthorized = 4
	ExitTimeOut       = 5
)

const probeTime = 15 * time.Second

// probe finds the URLs of the Partner's methods, and the protocols that it speaks.
func (r *Runner) probe(ctx context.Context) error {
	all := r.options.Protocols
	if wanted := r.profile.Protocols; len(wanted) > 0 {
		all = slices.DeleteFunc(slices.Clone(all), func(p *acts.Protocol) bool { return !slices.Contains(wanted, p.ID) })
		if len(all) == 0 {
			return fmt.Errorf("there is no protocol %s", strings.Join(wanted, ", "))
		}
	}
	maps.Copy(r.urls, r.profile.URLs)
	if r.options.Card != "" {
		if err := r.readCard(ctx); err != nil {
			return err
		}
	} else {
		e := r.ask(ctx, r.base.String(), "rpc")
		if err := cmp.Or(ctx.Err(), reachable(e)); err != nil {
			return err
		}
		r.partner = cmp.Or(r.profile.Partner.AIC, e.PeerAIC)
	}
	for _, p := range all {
		for _, o := range p.Operations {
			if o.HTTP == "" {
				r.find(ctx, o.URL)
			} else {
				r.look(ctx, o)
			}
		}
	}
	if len(r.profile.Protocols) > 0 {
		r.protocols = all
		return nil
	}
	for _, p := range all {
		speaks, err := r.speaks(ctx, p)
		if err != nil {
			return err
		}
		if speaks {
			r.protocols = append(r.protocols, p)
		}
	}
	if len(r.protocols) == 0 {
		r.protocols = all[:1] // its tests will say what is wrong
	}
	return nil
}

func reachable(e *wire.Exchange) error {
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return &ProbeError{ExitNotAuthorized, fmt.Sprintf("the Partner answers %d to the Leader", e.Status)}
	case e.Err == nil:
		return nil
	case wire.TimedOut(e.Err):
		return &ProbeError{ExitTimeOut, e.Err.Error()}
	case wire.Unreachable(e.Err):
		return &ProbeError{ExitUnreachable, e.Err.Error()}
	case e.Status == 0 && strings.HasPrefix(e.Request.URL, "https:") && wire.Refused(e.Err):
		return &ProbeError{ExitNotAuthorized, "the Partner refuses the handshake: " + e.Err.Error()}
	case e.Status == 0:
		return &ProbeError{ExitUnreachable, e.Err.Error()}
	}
	return nil
}

// ask sends a request without a meaning, to see who answers.
func (r *Runner) ask(ctx context.Context, url, method string) *wire.Exchange {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"probe","method":%q,"params":{}}`, method)
	headers := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
	maps.Copy(headers, r.profile.Headers)
	e := r.clients["leader"].Do(ctx, wire.Request{Method: "POST", URL: url, Headers: headers, Body: []byte(body)},
		probeTime)
	if e.Stream != nil {
		e.Stream.Cut()
	}
	return e
}

// find finds the URL of a method: that of its name beside or below the Partner's, or the Partner's own.
func (r *Runner) find(ctx context.Context, name string) {
	if r.urls[name] != "" {
		return
	}
	base := r.base.String()
	r.urls[name] = base
	below := strings.TrimSuffix(base, "/rpc") + "/" + name
	if below == base {
		return
	}
	e := r.ask(ctx, below, name)
	object, _ := decode(e.Body).(map[string]any)
	if e.Stream != nil || object["jsonrpc"] != nil || object["error"] != nil {
		r.urls[name] = below
	}
}

// look finds the URL of what is no JSON-RPC.
func (r *Runner) look(ctx context.Context, o acts.Operation) {
	if r.urls[o.URL] != "" || o.Path == "" {
		return
	}
	url := strings.TrimSuffix(r.base.String(), "/rpc") + o.Path
	e := r.clients["leader"].Do(ctx, wire.Request{Method: o.HTTP, URL: url, Headers: r.profile.Headers}, probeTime)
	if e.Stream != nil {
		e.Stream.Cut()
	}
	if e.Err == nil && e.Status == http.StatusOK {
		r.urls[o.URL] = url
	}
}

// url returns the URL of a name.
func (r *Runner) url(name string) (string, error) {
	if u := r.urls[name]; u != "" {
		return u, nil
	}
	if name == "base" || name == "" {
		return r.base.String(), nil
	}
	return "", fmt.Errorf("the profile has no url %s", name)
}

// rawURL returns that of a raw step: the path is a URL, a name of the profile's, or what stands behind the Partner's.
func (r *Runner) rawURL(path string) (string, error) {
	if strings.HasPrefix(path, "http://") || strings.HasPrefix(path, "https://") {
		return path, nil
	}
	if r.options.Card != "" && !strings.HasPrefix(path, "/.well-known/") {
		endpoint := strings.TrimSuffix(cmp.Or(r.urls["rest"], r.urls["rpc"]), "/")
		return endpoint + strings.TrimSuffix(path, "/"), nil
	}
	name := strings.TrimPrefix(path, "/")
	if u, err := r.url(name); err == nil {
		return u, nil
	}
	return strings.TrimSuffix(r.base.String(), "/rpc") + "/" + name, nil
}

// speaks asks for a task that there is not. A Partner that speaks the protocol says so, in place of complaining about
// the request.
func (r *Runner) speaks(ctx context.Context, p *acts.Protocol) (bool, error) {
	t := &scenario{runner: r, test: &acts.Test{}, scope: newScope(r, p, &acts.Document{})}
	s := &acts.Step{ID: "probe", Operation: "get", Params: map[string]any{"{{name.command}}": map[string]any{
		"taskId": "probe-" + uuid()}}}
	v := verifier{p, t.scope.vars(t.identity(s))}
	request, o, err := t.request(s, v)
	if err != nil {
		return false, err
	}
	o.exchange = r.clients["leader"].Do(ctx, request, probeTime)
	if o.exchange.Stream != nil {
		o.exchange.Stream.Cut()
	}
	o.settle()
	code, _ := at(o.failure, "code")
	for _, name := range []string{"AuthenticationRequiredError", "AuthorizationFailedError"} {
		if number, known := p.Errors[name]; known && acts.Equal(code, number) {
			return false, &ProbeError{ExitNotAuthorized, "the Partner answers the Leader with " + brief(o.failure)}
		}
	}
	for _, name := range []string{"ParseError", "InvalidParams", "InvalidRequest", "MethodNotFound"} {
		if acts.Equal(code, p.Errors[name]) {
			return false, nil
		}
	}
	return o.exchange.Err == nil && (o.failure != nil || o.hasRoot), nil
}
