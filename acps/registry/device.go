// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// Device is a user of a registry of ACPs 2.2. The user logs in at a provider of OpenID Connect in a browser, by the
// device authorization grant (RFC 8628). The session goes on by refresh tokens.
type Device struct {
	Provider *Client // its URL is the issuer's
	ClientID string
	// Secret returns the client's secret; nil for a public client.
	Secret func() (string, error)
}

func (d *Device) name() string { return "device\n" + d.Provider.base + "\n" + d.ClientID }

// asked is a login requested of a person.
type asked struct {
	URL    string        `json:"url"`
	User   string        `json:"user_code"`
	Device string        `json:"device_code"`
	Until  time.Time     `json:"until"`
	Every  time.Duration `json:"every"` // between two questions whether it is done
	Next   time.Time     `json:"next"`  // when to ask
}

func (a *asked) error() error { return &LoginError{URL: a.URL, Code: a.User, Until: a.Until} }

// The names of errors of OAuth 2.0 (RFC 6749 §5.2, RFC 8628 §3.5).
const (
	oauthPending      = "authorization_pending"
	oauthSlowDown     = "slow_down"
	oauthInvalidGrant = "invalid_grant"
	oauthInvalidScope = "invalid_scope"
)

const (
	defaultInterval = 5 * time.Second
	slowDown        = 5 * time.Second // is added to the interval
	maxInterval     = time.Minute
	maxAsked        = 30 * time.Minute
	// offline has the session outlive the browser's, if the provider allows it.
	offline = "openid offline_access"
	online  = "openid"
)

// endpoints are the provider's words about itself.
type endpoints struct {
	Issuer string `json:"issuer"`
	Device string `json:"device_authorization_endpoint"`
	Token  string `json:"token_endpoint"`
}

func (d *Device) discover(ctx context.Context) (e endpoints, err error) {
	err = d.Provider.do(ctx, call{method: http.MethodGet, path: "/.well-known/openid-configuration"}, &e)
	if err != nil {
		return e, err
	}
	if e.Issuer != d.Provider.base && e.Issuer != d.Provider.base+"/" {
		return e, &Error{Kind: Malformed, Detail: "the provider of OpenID Connect names another issuer: " +
			printable(e.Issuer)}
	}
	for what, at := range map[string]string{"device authorization": e.Device, "tokens": e.Token} {
		if _, err := CheckURL(at); err != nil {
			return e, &Error{Kind: Malformed, Detail: "the provider of OpenID Connect has no endpoint for " + what, Cause: err}
		}
	}
	return e, nil
}

// form returns the parameters of a request, with those of the client.
func (d *Device) form(more url.Values) (url.Values, error) {
	more.Set("client_id", d.ClientID)
	if d.Secret != nil {
		secret, err := d.Secret()
		if err != nil {
			return nil, err
		}
		more.Set("client_secret", secret)
	}
	return more, nil
}

// renew gets a token by the refresh token, or by the login requested of a person. Without either it asks.
func (d *Device) renew(ctx context.Context, s *session, ask bool, kept func() error) error {
	at, err := d.discover(ctx)
	if err != nil {
		return err
	}
	if s.Refresh != "" {
		err := d.redeem(ctx, at, s, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {s.Refresh}})
		if !named(err, oauthInvalidGrant) {
			return err
		}
		s.Refresh = "" // it has ended
		if err := kept(); err != nil {
			return err
		}
	}
	if s.Asked != nil {
		if err := d.ask(ctx, at, s, kept); !errors.Is(err, errEnded) {
			return err
		}
	}
	if !ask {
		return new(LoginError)
	}
	if err := d.begin(ctx, at, s); err != nil {
		return err
	}
	if err := kept(); err != nil { // a process after a crash asks no second time
		return err
	}
	return s.Asked.error()
}

// begin asks a person to log in.
func (d *Device) begin(ctx context.Context, at endpoints, s *session) error {
	var got struct {
		Device   string `json:"device_code"`
		User     string `json:"user_code"`
		URL      string `json:"verification_uri"`
		Complete string `json:"verification_uri_complete"`
		Expires  int    `json:"expires_in"`
		Interval int    `json:"interval"`
	}
	request := func(scope string) error {
		form, err := d.form(url.Values{"scope": {scope}})
		if err != nil {
			return err
		}
		return d.Provider.do(ctx, call{method: http.MethodPost, path: at.Device, body: form}, &got)
	}
	err := request(offline)
	if named(err, oauthInvalidScope) {
		err = request(online)
	}
	if err != nil {
		return err
	}
	page, err := pageOf(got.URL, got.Complete)
	if err != nil || got.Device == "" || got.User == "" {
		return &Error{Kind: Malformed, Detail: "the provider of OpenID Connect asks for no login", Cause: err}
	}
	now, every := time.Now(), time.Duration(got.Interval)*time.Second
	if every <= 0 {
		every = defaultInterval
	}
	every = min(every, maxInterval)
	s.Asked = &asked{URL: printable(page), User: printable(got.User), Device: got.Device, Every: every,
		Next: now.Add(every), Until: now.Add(min(max(time.Duration(got.Expires)*time.Second, every), maxAsked))}
	return nil
}

// pageOf returns the URL of the page for a person to open (RFC 8628 §3.2): the complete one, with the code, unless it
// is missing or not safe. Unlike endpoints, both may have a query.
func pageOf(plain, complete string) (string, error) {
	safe := func(s string) error {
		u, err := url.Parse(s)
		if err != nil {
			return err
		}
		u.RawQuery = ""
		_, err = CheckURL(u.String())
		return err
	}
	if err := safe(plain); err != nil {
		return "", err
	}
	if safe(complete) != nil {
		return plain, nil
	}
	return complete, nil
}

// errEnded is the error of a login not made in time, or refused.
var errEnded = errors.New("the login has ended")

// ask asks whether the person has logged in, as often as the provider allows.
func (d *Device) ask(ctx context.Context, at endpoints, s *session, kept func() error) error {
	now := time.Now()
	if !now.Before(s.Asked.Until) {
		s.Asked = nil
		return errEnded
	}
	if now.Before(s.Asked.Next) {
		return s.Asked.error()
	}
	err := d.redeem(ctx, at, s, url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"},
		"device_code": {s.Asked.Device}})
	switch {
	case named(err, oauthPending), named(err, oauthSlowDown):
		if named(err, oauthSlowDown) {
			s.Asked.Every = min(s.Asked.Every+slowDown, maxInterval)
		}
		s.Asked.Next = now.Add(s.Asked.Every)
		if err := kept(); err != nil {
			return err
		}
		return s.Asked.error()
	case Is(err, Refused) || Is(err, Forbidden): // access_denied, expired_token, or a used code
		s.Asked = nil
		if err := kept(); err != nil {
			return err
		}
		return errEnded
	}
	return err
}

// redeem gets a token.
func (d *Device) redeem(ctx context.Context, at endpoints, s *session, form url.Values) error {
	form, err := d.form(form)
	if err != nil {
		return err
	}
	var got struct {
		Token   string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Expires int    `json:"expires_in"`
	}
	if err := d.Provider.do(ctx, call{method: http.MethodPost, path: at.Token, body: form}, &got); err != nil {
		return err
	}
	if got.Token == "" {
		return &Error{Kind: Malformed, Detail: "the provider of OpenID Connect gives no token"}
	}
	life := time.Duration(got.Expires) * time.Second
	if life <= 0 {
		life = defaultLife
	}
	*s = session{Token: got.Token, Expires: time.Now().Add(life), Refresh: cmp.Or(got.Refresh, s.Refresh)}
	return nil
}

// named reports whether an error is one of OAuth with a name.
func named(err error, name string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Name == name
}
