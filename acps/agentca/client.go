// SPDX-License-Identifier: Apache-2.0

package agentca

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	maxAnswer      = 1 << 20 // bytes of an answer
	requestTimeout = 30 * time.Second
	nonceTries     = 3 // of one request, each with a new nonce
	keptNonces     = 16
)

// Client speaks ACME (RFC 8555) with an authority, in the way that authorities of ACPs speak it.
type Client struct {
	// Directory is the URL of the directory: https, or http on this host.
	Directory string
	// HTTP sends the requests. It must not follow redirects.
	HTTP *http.Client

	mu     sync.Mutex
	dir    *directory // nil before it was read
	nonces []string
}

// directory are the URLs of an authority.
type directory struct {
	NewNonce   string `json:"newNonce"`
	NewAccount string `json:"newAccount"`
	NewOrder   string `json:"newOrder"`
	RevokeCert string `json:"revokeCert"`
}

// signer is the key of an account, and the account's URL; without one the key itself is sent.
type signer struct {
	key *ecdsa.PrivateKey
	kid string
}

// answer is what the authority has answered with success.
type answer struct {
	header http.Header
	body   []byte
}

// get gets a URL without an account.
func (c *Client) get(ctx context.Context, url string) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return c.do(req)
}

// do sends a request. An answer that is no success is a *Problem.
func (c *Client) do(req *http.Request) (*answer, error) {
	ctx, cancel := context.WithTimeout(req.Context(), requestTimeout)
	defer cancel()
	res, err := c.HTTP.Do(req.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("an answer of the authority is larger than %d bytes", maxAnswer)
	case res.StatusCode < 200 || res.StatusCode > 299:
		return nil, readProblem(res.StatusCode, res.Header, body)
	}
	c.keep(res.Header.Get("Replay-Nonce"))
	return &answer{res.Header, body}, nil
}

// keep keeps a nonce for the next request.
func (c *Client) keep(nonce string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if nonce != "" && len(c.nonces) < keptNonces {
		c.nonces = append(c.nonces, nonce)
	}
}

// nonce returns a nonce for a request: one that is kept, or a new one.
func (c *Client) nonce(ctx context.Context, dir *directory) (string, error) {
	c.mu.Lock()
	if n := len(c.nonces); n > 0 {
		nonce := c.nonces[n-1]
		c.nonces = c.nonces[:n-1]
		c.mu.Unlock()
		return nonce, nil
	}
	c.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, dir.NewNonce, nil)
	if err != nil {
		return "", err
	}
	if _, err := c.do(req); err != nil { // which keeps it
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.nonces)
	if n == 0 {
		return "", errors.New("the authority has given no nonce")
	}
	nonce := c.nonces[n-1]
	c.nonces = c.nonces[:n-1]
	return nonce, nil
}

// forget forgets the nonces that are kept: one of them was refused, and the others are older.
func (c *Client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nonces = nil
}

// urls returns the directory, which is read once.
func (c *Client) urls(ctx context.Context) (*directory, error) {
	c.mu.Lock()
	dir := c.dir
	c.mu.Unlock()
	if dir != nil {
		return dir, nil
	}
	got, err := c.get(ctx, c.Directory)
	if err != nil {
		return nil, err
	}
	if dir, err = readDirectory(got.body); err != nil {
		return nil, err
	}
	for _, one := range []string{dir.NewNonce, dir.NewAccount, dir.NewOrder, dir.RevokeCert} {
		if err := c.own(one); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dir = dir
	return dir, nil
}

// own refuses a URL that does not belong to the authority: one of another host, or without the TLS that the directory
// has. What is sent there is signed.
func (c *Client) own(to string) error {
	base, err := url.Parse(c.Directory)
	if err != nil {
		return err
	}
	u, err := url.Parse(to)
	if err != nil || u.Scheme != base.Scheme || !strings.EqualFold(u.Host, base.Host) || u.User != nil {
		return fmt.Errorf("the authority names the URL %q, which is not below %s://%s", cut(to, 100), base.Scheme, base.Host)
	}
	return nil
}

// post sends a signed request. A nonce that was refused is replaced by a new one: errors bring none, and a nonce may
// have ended before it could be used.
func (c *Client) post(ctx context.Context, s signer, to string, payload any) (*answer, error) {
	if err := c.own(to); err != nil {
		return nil, err
	}
	dir, err := c.urls(ctx)
	if err != nil {
		return nil, err
	}
	h := header{Algorithm: "ES256", KeyID: s.kid, URL: to}
	if s.kid == "" {
		if h.Key, err = jwkOf(s.key); err != nil {
			return nil, err
		}
	}
	for try := 1; ; try++ {
		if h.Nonce, err = c.nonce(ctx, dir); err != nil {
			return nil, err
		}
		body, err := sign(s.key, h, payload)
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/jose+json")
		got, err := c.do(req)
		if !isKind(err, badNonce) || try == nonceTries {
			return got, err
		}
		c.forget()
	}
}

// find finds the account of a key, and returns its URL.
func (c *Client) find(ctx context.Context, key *ecdsa.PrivateKey) (kid string, err error) {
	return c.account(ctx, key, map[string]any{"onlyReturnExisting": true})
}

// register makes the account of a key, and returns its URL. Authorities of v01.00 take no EAB.
func (c *Client) register(ctx context.Context, key *ecdsa.PrivateKey, contact []string, eab *EAB,
) (kid string, err error) {
	payload := map[string]any{"termsOfServiceAgreed": true}
	if len(contact) > 0 {
		payload["contact"] = contact
	}
	if eab != nil {
		dir, err := c.urls(ctx)
		if err != nil {
			return "", err
		}
		own, err := jwkOf(key)
		if err != nil {
			return "", err
		}
		if payload["externalAccountBinding"], err = bind(*eab, dir.NewAccount, own); err != nil {
			return "", err
		}
	}
	return c.account(ctx, key, payload)
}

func (c *Client) account(ctx context.Context, key *ecdsa.PrivateKey, payload any) (kid string, err error) {
	dir, err := c.urls(ctx)
	if err != nil {
		return "", err
	}
	got, err := c.post(ctx, signer{key: key}, dir.NewAccount, payload)
	if err != nil {
		return "", err
	}
	var account struct{ Status string }
	switch kid = got.header.Get("Location"); {
	case json.Unmarshal(got.body, &account) != nil || kid == "":
		return "", errors.New("the authority has answered no account")
	case account.Status != "" && account.Status != "valid":
		return "", fmt.Errorf("the account %s is %s", cut(kid, 100), cut(account.Status, 20))
	}
	return kid, c.own(kid)
}

// place orders a certificate, and returns the order and its URL.
func (c *Client) place(ctx context.Context, s signer, id identifier) (o *order, to string, err error) {
	dir, err := c.urls(ctx)
	if err != nil {
		return nil, "", err
	}
	got, err := c.post(ctx, s, dir.NewOrder, map[string]any{"identifiers": []identifier{id}})
	if err != nil {
		return nil, "", err
	}
	to = got.header.Get("Location")
	if o, err = readOrder(got.body, id); err == nil {
		err = c.own(to)
	}
	return o, to, err
}

// order gets an order.
func (c *Client) order(ctx context.Context, s signer, to string, id identifier) (*order, error) {
	got, err := c.post(ctx, s, to, nil)
	if err != nil {
		return nil, err
	}
	return readOrder(got.body, id)
}

// challenge gets the challenge of an authorization that is not met yet; nil if it is valid.
func (c *Client) challenge(ctx context.Context, s signer, to string) (*challenge, error) {
	got, err := c.post(ctx, s, to, nil)
	if err != nil {
		return nil, err
	}
	return readAuthorization(got.body)
}

// finalize sends the request for the certificate of an order.
func (c *Client) finalize(ctx context.Context, s signer, o *order, id identifier, csr []byte) (*order, error) {
	got, err := c.post(ctx, s, o.Finalize, map[string]string{"csr": base64url(csr)})
	if err != nil {
		return nil, err
	}
	return readOrder(got.body, id)
}

// revoke revokes a certificate. One that is revoked already is none the worse.
func (c *Client) revoke(ctx context.Context, s signer, der []byte, reason int) error {
	dir, err := c.urls(ctx)
	if err != nil {
		return err
	}
	_, err = c.post(ctx, s, dir.RevokeCert, map[string]any{"certificate": base64url(der), "reason": reason})
	if isKind(err, alreadyRevoked) {
		return nil
	}
	return err
}
