// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun/codes"
)

// Tokens are the result of a login.
type Tokens struct {
	Access, Refresh string
	Expires         time.Time // of Access; zero if the other end has not sent it
}

// readTokens reads the result of auth.aid_login2 and auth.refresh_token. Versions name the token differently.
func readTokens(result gjson.Result) (t Tokens, _ error) {
	if ok := result.Get("success"); ok.Exists() && !ok.Bool() {
		return t, errors.New("aun: the login was refused")
	}
	for _, name := range []string{"access_token", "token", "kite_token"} {
		if t.Access = result.Get(name).String(); t.Access != "" {
			break
		}
	}
	if t.Access == "" {
		return t, errors.New("aun: the login gave no token")
	}
	t.Refresh = result.Get("refresh_token").String()
	if s := result.Get("expires_in").Float(); s > 0 && s < 1e9 {
		t.Expires = time.Now().Add(time.Duration(s * float64(time.Second)))
	}
	return t, nil
}

// Login logs in by certificate, in two steps, on a served connection. Both ends sign. issuers gets the issuers of the
// other end's certificate, since the other end need not send them; nil for none.
func Login(
	ctx context.Context, c *Conn, id *Identity, roots *Roots,
	issuers func(context.Context) ([]*x509.Certificate, error),
) (Tokens, error) {
	ours := serviceNonce()
	step1, err := c.Call(ctx, "auth.aid_login1", mustJSON(map[string]any{
		"aid": id.AID, "cert": id.CertPEM(), "client_nonce": ours,
	}))
	if err != nil {
		return Tokens{}, fmt.Errorf("auth.aid_login1: %w", err)
	}
	chain, err := ParseChain(step1.Get("auth_cert").String())
	if err != nil {
		return Tokens{}, err
	}
	if len(id.Chain) > 1 { // the service sends its own certificate only, often with the same issuer
		chain = append(chain, id.Chain[1:]...)
	}
	signed := step1.Get("client_nonce_signature").String()
	err = roots.VerifyService(chain, ours, signed)
	if refused, ok := errors.AsType[*Error](err); ok && refused.Code == codes.CertificateInvalid && issuers != nil {
		if more, failed := issuers(ctx); failed == nil {
			err = roots.VerifyService(append(chain, more...), ours, signed)
		}
	}
	if err != nil {
		return Tokens{}, err
	}
	nonce := step1.Get("nonce").String()
	if !isNonce(nonce) {
		return Tokens{}, errors.New("aun: auth.aid_login1 gave no nonce that may be signed")
	}
	clientTime := strconv.FormatFloat(float64(time.Now().UnixMicro())/1e6, 'f', 6, 64)
	signature, err := id.Sign(nonce + ":" + clientTime)
	if err != nil {
		return Tokens{}, err
	}
	step2, err := c.Call(ctx, "auth.aid_login2", mustJSON(map[string]any{
		"aid": id.AID, "request_id": step1.Get("request_id").Value(), "nonce": nonce, "client_time": clientTime,
		"signature": signature, "cert": id.CertPEM(),
	}))
	if err != nil {
		return Tokens{}, fmt.Errorf("auth.aid_login2: %w", err)
	}
	return readTokens(step2)
}

// Refresh gets new tokens for old ones. An expired or invalid refresh token is an error; then Login is needed.
func Refresh(ctx context.Context, c *Conn, id *Identity, old Tokens) (Tokens, error) {
	result, err := c.Call(ctx, "auth.refresh_token", mustJSON(map[string]any{
		"aid": id.AID, "refresh_token": old.Refresh,
	}))
	if err != nil {
		return Tokens{}, fmt.Errorf("auth.refresh_token: %w", err)
	}
	t, err := readTokens(result)
	if t.Refresh == "" {
		t.Refresh = old.Refresh
	}
	return t, err
}

// Hello is the answer to auth.connect.
type Hello struct {
	Namespaces []string      // of the other end's methods; nil if it has not sent them
	Heartbeat  time.Duration // between pings; zero if the other end has not sent it
}

// Has reports whether the other end has the methods of a namespace.
func (h *Hello) Has(namespace string) bool {
	for _, n := range h.Namespaces {
		if n == namespace || n == namespace+".*" {
			return true
		}
	}
	return false
}

// Connect opens the session of a connection in gateway mode. nonce is from its challenge. device and slot distinguish
// connections of one AID.
func Connect(ctx context.Context, c *Conn, nonce string, t Tokens, device, slot string) (*Hello, error) {
	result, err := c.Call(ctx, "auth.connect", mustJSON(map[string]any{
		"nonce":    nonce,
		"auth":     map[string]string{"method": "kite_token", "token": t.Access},
		"protocol": map[string]string{"min": Version, "max": Version},
		"device":   map[string]string{"id": device, "type": "server"},
		"client":   map[string]string{"slot_id": slot, "sdk_lang": "go", "sdk_version": "aip-gateway"},
		// Each message is delivered to every connection of the AID, and kept for offline connections.
		"delivery_mode": map[string]string{"mode": "fanout"},
		"options":       map[string]string{"kind": "long"},
		"capabilities":  map[string]bool{"e2ee": false, "group_e2ee": false},
	}))
	if err != nil {
		return nil, fmt.Errorf("auth.connect: %w", err)
	}
	if result.Get("status").String() != "ok" {
		return nil, errors.New("aun: auth.connect was refused")
	}
	h := &Hello{Heartbeat: ReadHeartbeat(result)}
	for _, n := range result.Get("capabilities.namespaces").Array() {
		h.Namespaces = append(h.Namespaces, n.String())
	}
	return h, nil
}

// ReadHeartbeat returns the heartbeat_interval of a result of auth.connect or meta.ping, in seconds there. It is zero
// if there is none.
func ReadHeartbeat(result gjson.Result) time.Duration {
	if s := result.Get("heartbeat_interval").Float(); s >= 1 && s <= 3600 {
		return time.Duration(s * float64(time.Second))
	}
	return 0
}
