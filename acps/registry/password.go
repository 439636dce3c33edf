// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// Password is a user of a registry of ACPs 2.1, with the password of the registry's own.
type Password struct {
	Client *Client
	User   string
	// Secret returns the password, perhaps from a changing file.
	Secret func() (string, error)
}

func (p *Password) name() string { return "password\n" + p.User }

// defaultLife is the time for which a token is used if its end is unknown.
const defaultLife = time.Hour

// renew logs in. A login ends each other session of the user.
func (p *Password) renew(ctx context.Context, s *session, _ bool, _ func() error) error {
	secret, err := p.Secret()
	if err != nil {
		return err
	}
	var got struct {
		Token   string    `json:"access_token"`
		Expires time.Time `json:"expires_at"`
	}
	err = p.Client.do(ctx, call{method: http.MethodPost, path: "/api/v1/auth/login",
		body: url.Values{"username": {p.User}, "password": {secret}}}, &got)
	switch e, _ := errors.AsType[*Error](err); {
	case e != nil && e.Kind == Gone:
		e.Detail = "it is one of ACPs 2.2, where users log in by OpenID Connect"
		return e
	case err != nil:
		return err
	case got.Token == "":
		return &Error{Kind: Malformed, Detail: "a login has no token"}
	}
	if got.Expires.IsZero() {
		got.Expires = time.Now().Add(defaultLife)
	}
	*s = session{Token: got.Token, Expires: got.Expires}
	return nil
}
