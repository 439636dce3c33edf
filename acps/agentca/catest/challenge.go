// SPDX-License-Identifier: Apache-2.0

package catest

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
)

// Fetch gets the file at <ca-challenge-url>/<aic>/<token>, for which a challenge asks.
type Fetch func(aic, token string) ([]byte, error)

// AskForFiles makes it an authority of ACPs v01.00: it takes no EAB, issues one certificate for both usages, and asks
// for a file before.
func (ca *CA) AskForFiles(fetch Fetch) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	ca.fetch = fetch
}

// authorization answers with an authorization. When it was asked for twice after the challenge was to be met, it looks
// at the file.
func (ca *CA) authorization(q *request, rest string) *failure {
	o, n := ca.orderOf(q, rest)
	if o == nil || ca.fetch == nil {
		return fail(404, "AUTHORIZATION_NOT_FOUND", "Authorization not found")
	}
	status := o.status
	if status != "pending" && status != "invalid" {
		status = "valid"
	}
	ca.giveNonce(q.response)
	answer(q.response, http.StatusOK, map[string]any{"status": status, "challenges": []map[string]string{
		{"type": "dns-01", "url": "https://dns.example", "token": o.token},
		{"type": "http-01", "url": fmt.Sprintf("%s/acps-atr-v2/acme/challenge/%d", ca.URL, n), "token": o.token}}})
	if o.met > 0 && o.status == "pending" {
		if o.met++; o.met == 3 {
			o.status = "invalid"
			text, err := ca.fetch(o.aic, o.token)
			if err == nil && string(text) == o.token+"."+thumbprint(q.key) {
				o.status = "ready"
			}
		}
	}
	return nil
}

// challenge has it look at the file soon.
func (ca *CA) challenge(q *request, rest string) *failure {
	o, _ := ca.orderOf(q, rest)
	if o == nil || ca.fetch == nil || string(q.payload) != "{}" {
		return fail(404, "CHALLENGE_NOT_FOUND", "Challenge not found")
	}
	o.met = max(o.met, 1)
	ca.giveNonce(q.response)
	answer(q.response, http.StatusOK, map[string]any{"type": "http-01", "status": "processing", "token": o.token})
	return nil
}

// orderOf returns an order of the account by its number.
func (ca *CA) orderOf(q *request, number string) (*order, int) {
	n, _ := strconv.Atoi(number)
	if n < 1 || n > len(ca.orders) || ca.orders[n-1].account != q.account {
		return nil, 0
	}
	return ca.orders[n-1], n
}

// thumbprint returns the thumbprint of a key (RFC 7638).
func thumbprint(key *ecdsa.PublicKey) string {
	point, _ := key.Bytes() // of P-256
	b64 := base64.RawURLEncoding
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}`,
		b64.EncodeToString(point[1:33]), b64.EncodeToString(point[33:])))
	return b64.EncodeToString(sum[:])
}
