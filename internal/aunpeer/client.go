// SPDX-License-Identifier: Apache-2.0

package aunpeer

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Client is an AUN client, as SDKs of AUN are.
type Client struct {
	ID     *Identity
	PKI    *PKI         // its root is trusted
	HTTP   *http.Client // for discovery, for the endpoints of the gateway, and for WebSocket
	URL    string       // of the gateway's WebSocket; empty to find it by discovery
	Device string       // empty for none
	Slot   string
}

// To returns an HTTP client. It connects to one address, whatever the host is, and trusts these certificates. Without
// any certificate it trusts no server, and so must use plain HTTP.
func To(address string, roots ...*x509.Certificate) *http.Client {
	pool := x509.NewCertPool()
	for _, c := range roots {
		pool.AddCert(c)
	}
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		},
		TLSClientConfig: &tls.Config{RootCAs: pool},
	}}
}

// Get gets a page of HTTP.
func (c *Client) Get(ctx context.Context, url string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// Discover asks gateway.{issuer} for its URLs, and returns the one with the lowest priority.
func (c *Client) Discover(ctx context.Context) (string, error) {
	status, body, err := c.Get(ctx, "https://gateway."+c.PKI.Name+"/.well-known/aun-gateway")
	if err != nil {
		return "", err
	}
	var found struct {
		Gateways []struct {
			URL      string
			Priority int
		}
	}
	if err := json.Unmarshal([]byte(body), &found); status != http.StatusOK || err != nil || len(found.Gateways) == 0 {
		return "", fmt.Errorf("discovery answers %d %s", status, body)
	}
	first := slices.MinFunc(found.Gateways, func(a, b struct {
		URL      string
		Priority int
	}) int {
		return cmp.Compare(cmp.Or(a.Priority, 999), cmp.Or(b.Priority, 999))
	})
	return first.URL, nil
}

// Open opens a connection to the gateway, and waits for its challenge.
func (c *Client) Open(ctx context.Context) (*Conn, Challenge, error) {
	var challenge Challenge
	if c.URL == "" {
		url, err := c.Discover(ctx)
		if err != nil {
			return nil, challenge, err
		}
		c.URL = url
	}
	conn, err := Dial(ctx, c.HTTP, c.URL, nil)
	if err != nil {
		return nil, challenge, err
	}
	f, err := conn.Event(ctx, nil)
	if err == nil && f.Method != "challenge" {
		err = fmt.Errorf("the first frame is %s", f.Method)
	}
	if err == nil {
		err = json.Unmarshal(f.Params, &challenge)
	}
	if err == nil && challenge.Nonce == "" {
		err = errors.New("the challenge has no nonce")
	}
	if err != nil {
		conn.Cut()
		return nil, challenge, err
	}
	return conn, challenge, nil
}

// Challenge is the first message of a gateway.
type Challenge struct {
	Nonce       string
	Protocol    struct{ Min, Max string }
	AuthMethods []string `json:"auth_methods"`
}

// once makes one call on a socket of its own, as SDKs do before auth.connect.
func (c *Client) once(ctx context.Context, method string, params any) (json.RawMessage, error) {
	conn, _, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Cut()
	return conn.CallID(ctx, strconv.Quote("pre-"+method), method, params)
}

// Login1 is the result of auth.aid_login1.
type Login1 struct {
	RequestID string `json:"request_id"`
	Nonce     string
	Signature string `json:"client_nonce_signature"`
	Cert      string `json:"auth_cert"`
}

// Login1 makes the first step of the login, and verifies the signature of the gateway.
func (c *Client) Login1(ctx context.Context) (Login1, error) {
	var l Login1
	nonce := rand.Text()
	result, err := c.once(ctx, "auth.aid_login1", map[string]any{
		"aid": c.ID.AID, "cert": c.ID.CertPEM(), "client_nonce": nonce,
	})
	if err != nil {
		return l, err
	}
	if err := json.Unmarshal(result, &l); err != nil {
		return l, err
	}
	between, err := c.issuers(ctx)
	if err != nil {
		return l, err
	}
	cert, err := c.PKI.check(l.Cert, "", between...)
	if err != nil {
		return l, fmt.Errorf("the certificate of the gateway: %w", err)
	}
	return l, verify(cert, nonce, l.Signature)
}

// issuers gets the certificates of issuers from the host of the gateway. Its last one must be the root.
func (c *Client) issuers(ctx context.Context) ([]*x509.Certificate, error) {
	scheme, rest, _ := strings.Cut(c.URL, "://")
	host, _, _ := strings.Cut(rest, "/")
	url := "https://" + host + "/pki/chain"
	if scheme == "ws" {
		url = "http://" + host + "/pki/chain"
	}
	status, body, err := c.Get(ctx, url)
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("%s answers %d", url, status)
	}
	certs, err := parseCerts(body)
	if err != nil {
		return nil, err
	}
	if !certs[len(certs)-1].Equal(c.PKI.Root.Chain[0]) {
		return nil, errors.New("the chain does not end with the root")
	}
	return certs, nil
}

// Login2 returns the parameters of the second step.
func (c *Client) Login2(l Login1) (map[string]any, error) {
	now := time.Now()
	at := fmt.Sprintf("%d.%06d", now.Unix(), now.Nanosecond()/1000)
	signature, err := c.ID.Sign(l.Nonce + ":" + at)
	return map[string]any{
		"aid": c.ID.AID, "request_id": l.RequestID, "nonce": l.Nonce, "client_time": at, "signature": signature,
	}, err
}

// Token is the result of a login.
type Token struct {
	Access, Refresh string
	ExpiresIn       int
}

// SecondStep sends the second step, on a socket of its own.
func (c *Client) SecondStep(ctx context.Context, params map[string]any) (Token, error) {
	result, err := c.once(ctx, "auth.aid_login2", params)
	if err != nil {
		return Token{}, err
	}
	return readToken(result)
}

// readToken reads a token as SDKs do.
func readToken(result json.RawMessage) (Token, error) {
	var r struct {
		Access    string `json:"access_token"`
		Token     string `json:"token"`
		Kite      string `json:"kite_token"`
		Refresh   string `json:"refresh_token"`
		ExpiresIn int    `json:"expires_in"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return Token{}, err
	}
	t := Token{cmp.Or(r.Access, r.Token, r.Kite), r.Refresh, r.ExpiresIn}
	if t.Access == "" {
		return Token{}, fmt.Errorf("there is no token in %s", result)
	}
	return t, nil
}

// Login logs in, in two steps.
func (c *Client) Login(ctx context.Context) (Token, error) {
	l, err := c.Login1(ctx)
	if err != nil {
		return Token{}, err
	}
	params, err := c.Login2(l)
	if err != nil {
		return Token{}, err
	}
	return c.SecondStep(ctx, params)
}

// RefreshToken takes a new token for a refresh token.
func (c *Client) RefreshToken(ctx context.Context, refresh string) (Token, error) {
	result, err := c.once(ctx, "auth.refresh_token", map[string]any{"refresh_token": refresh, "aid": c.ID.AID})
	if err != nil {
		return Token{}, err
	}
	return readToken(result)
}

// Connected is the result of auth.connect.
type Connected struct {
	Status     string
	Protocol   any
	Identity   struct{ AID string }
	Connection struct {
		ID       string
		DeviceID string `json:"device_id"`
	}
	Capabilities struct{ Namespaces []string }
}

// ConnectParams returns the parameters of auth.connect with a token. change replaces some of them.
func (c *Client) ConnectParams(challenge Challenge, token string, change map[string]any) map[string]any {
	params := map[string]any{
		"nonce": challenge.Nonce, "auth": map[string]any{"method": "kite_token", "token": token},
		"protocol":      map[string]any{"min": "1.0", "max": "1.0"},
		"device":        map[string]any{"id": c.Device, "type": "sdk"},
		"client":        map[string]any{"slot_id": c.Slot, "sdk_lang": "go", "sdk_version": "0.5.4"},
		"delivery_mode": map[string]any{"mode": "fanout"},
		"capabilities":  map[string]any{"e2ee": true, "group_e2ee": true},
	}
	maps.Copy(params, change)
	return params
}

// Connect opens a connection and authenticates it by a token.
func (c *Client) Connect(ctx context.Context, token string, change map[string]any) (*Conn, Connected, error) {
	var got Connected
	conn, challenge, err := c.Open(ctx)
	if err != nil {
		return nil, got, err
	}
	result, err := conn.CallID(ctx, `"rpc-connect"`, "auth.connect", c.ConnectParams(challenge, token, change))
	if err == nil {
		err = json.Unmarshal(result, &got)
	}
	if err == nil && got.Status != "ok" {
		err = fmt.Errorf("auth.connect answers %s", result)
	}
	if err != nil {
		if conn.Err() == nil && Code(err) == 0 {
			conn.Cut()
		}
		return conn, got, err // open after an error of JSON-RPC, to see its end
	}
	return conn, got, nil
}

// Online logs in and connects.
func (c *Client) Online(ctx context.Context) (*Conn, error) {
	token, err := c.Login(ctx)
	if err != nil {
		return nil, err
	}
	conn, _, err := c.Connect(ctx, token.Access, nil)
	return conn, err
}

// Peer opens a connection in peer mode: both sides authenticate each other by their certificates. want is the expected
// AID of the other side.
func (c *Client) Peer(ctx context.Context, url, want string) (*Conn, error) {
	conn, err := Dial(ctx, c.HTTP, url, nil)
	if err != nil {
		return nil, err
	}
	if err := c.hello(ctx, conn, want); err != nil {
		conn.Cut()
		return nil, err
	}
	return conn, nil
}

func (c *Client) hello(ctx context.Context, conn *Conn, want string) error {
	if _, err := conn.Call(ctx, "initialize", map[string]any{
		"mode": "peer", "protocol": map[string]any{"min": "1.0", "max": "1.0"},
		"clientInfo": map[string]any{"name": "aunpeer", "version": "1"},
	}); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	nonce := rand.Text()
	result, err := conn.Call(ctx, "peer.hello", map[string]any{
		"aid": c.ID.AID, "cert": c.ID.CertPEM(), "nonce": nonce, "protocol": "1.0",
	})
	if err != nil {
		return fmt.Errorf("peer.hello: %w", err)
	}
	var theirs struct {
		AID, Cert, Nonce string
		Signature        string `json:"nonce_signature"`
	}
	if err := json.Unmarshal(result, &theirs); err != nil {
		return err
	}
	cert, err := c.PKI.check(theirs.Cert, want, c.PKI.Issuer.Chain...)
	if err != nil {
		return fmt.Errorf("the certificate of the peer: %w", err)
	}
	if err := verify(cert, nonce, theirs.Signature); err != nil {
		return fmt.Errorf("the signature of the peer: %w", err)
	}
	signature, err := c.ID.Sign(theirs.Nonce)
	if err != nil {
		return err
	}
	if _, err := conn.Call(ctx, "peer.confirm", map[string]any{"nonce_signature": signature}); err != nil {
		return fmt.Errorf("peer.confirm: %w", err)
	}
	return conn.Notify(ctx, "notification/initialized", nil)
}
