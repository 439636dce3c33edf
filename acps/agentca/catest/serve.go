// SPDX-License-Identifier: Apache-2.0

package catest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/openapitest"
)

// request is a JWS that was read.
type request struct {
	header struct {
		Alg, Nonce, URL, Kid string
		JWK                  *struct{ Kty, Crv, X, Y string }
	}
	payload  json.RawMessage
	key      *ecdsa.PublicKey
	account  int // 0 for none
	response http.ResponseWriter
}

// failure is a problem that it answers.
type failure struct {
	status             int
	kind, code, detail string
}

func fail(status int, code, detail string) *failure {
	return &failure{status, "urn:acps:error:acme:" + strings.ToLower(code), code, detail}
}

func (f *failure) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json") // and no nonce
	w.WriteHeader(f.status)
	words := strings.Split(strings.ToLower(f.code), "_")
	for i := range words {
		words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"type": f.kind, "status": f.status, "title": strings.Join(words, " "),
		"detail": f.detail, "error_name": f.code, "error_group": "acme", "input_params": struct{}{}, "code": f.code})
}

// ServeHTTP implements http.Handler.
func (ca *CA) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/acps-dsp-v2/") {
		ca.sync(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller has broken off
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if server := openapitest.CA(); server.Knows(r.URL.Path) {
		if err := server.Check(r, body); err != nil {
			fail(http.StatusUnprocessableEntity, "VALIDATION_FAILED", err.Error()).write(w)
			return
		}
	}
	ca.mu.Lock()
	defer ca.mu.Unlock()
	path, _ := strings.CutPrefix(r.URL.Path, "/acps-atr-v2")
	switch {
	case path == "/acme/directory":
		base := ca.URL + "/acps-atr-v2/acme/"
		answer(w, http.StatusOK, map[string]any{"newNonce": base + "new-nonce", "newAccount": base + "new-account",
			"newOrder": base + "new-order", "newAuthz": nil, "revokeCert": base + "revoke-cert",
			"keyChange": base + "key-change", "meta": map[string]any{"externalAccountRequired": true}})
	case path == "/acme/new-nonce":
		ca.giveNonce(w)
	case strings.HasPrefix(path, "/acme/"):
		ca.acme(w, r, strings.TrimPrefix(path, "/acme/"))
	case path == "/ca/trust-bundle":
		w.Header().Set("Content-Type", "application/x-pem-file")
		for _, cert := range []*x509.Certificate{ca.root.cert, ca.between.cert} {
			_ = pem.Encode(w, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
		}
	case strings.HasPrefix(path, "/ocsp/certificate/") && !ca.noStatus:
		ca.status(w, strings.TrimPrefix(path, "/ocsp/certificate/"))
	case path == "/crl/current" && ca.crl != nil:
		w.Header().Set("Content-Type", "application/pkix-crl")
		_, _ = w.Write(ca.crl)
	case path == "/crl/current":
		(&failure{http.StatusNotFound, "urn:acps:error:application:crl-not-found", "CRL_NOT_FOUND",
			"No current CRL available."}).write(w)
	case strings.HasPrefix(path, "/acs/"):
		switch a := ca.agents[strings.TrimPrefix(path, "/acs/")]; {
		case a == nil:
			w.WriteHeader(http.StatusNotFound)
		case !a.Active:
			answer(w, http.StatusForbidden, map[string]any{"status": "error", "error": map[string]any{"code": 40310,
				"message": "Agent status is not active"}})
		default:
			answer(w, http.StatusOK, map[string]any{"aic": strings.TrimPrefix(path, "/acs/"), "active": true})
		}
	default:
		answer(w, http.StatusNotFound, map[string]any{"detail": "Not Found"})
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (ca *CA) giveNonce(w http.ResponseWriter) {
	nonce := random(16)
	w.Header().Set("Replay-Nonce", nonce)
	w.Header().Set("Cache-Control", "no-store")
	if ca.dead > 0 {
		ca.dead--
		return
	}
	ca.nonces[nonce] = true
}

func (ca *CA) status(w http.ResponseWriter, serial string) {
	state := "unknown"
	for _, o := range ca.orders {
		if o.serial == serial {
			state = "good"
		}
	}
	if ca.revoked[serial] {
		state = "revoked"
	}
	answer(w, http.StatusOK, map[string]any{"serial_number": serial, "serialNumber": serial, "certificateStatus": state,
		"thisUpdate": time.Now(), "nextUpdate": time.Now().Add(24 * time.Hour)})
}

// acme answers a signed request.
func (ca *CA) acme(w http.ResponseWriter, r *http.Request, path string) {
	q, bad := ca.read(r)
	if bad != nil {
		bad.write(w)
		return
	}
	q.response = w
	kind, rest, _ := strings.Cut(path, "/")
	switch {
	case kind == "new-account":
		bad = ca.newAccount(q)
	case q.account == 0:
		bad = fail(http.StatusNotFound, "ACCOUNT_NOT_FOUND", "Account not found")
	case kind == "new-order":
		bad = ca.newOrder(q)
	case kind == "order":
		bad = ca.order(q, rest)
	case kind == "authz":
		bad = ca.authorization(q, rest)
	case kind == "challenge":
		bad = ca.challenge(q, rest)
	case kind == "cert":
		bad = ca.certificate(q, rest)
	case kind == "revoke-cert":
		bad = ca.revoke(q)
	default:
		answer(w, http.StatusNotFound, map[string]any{"detail": "Not Found"})
	}
	if bad != nil {
		bad.write(w)
	}
}

// read reads a JWS, and checks its nonce, its URL and its signature.
func (ca *CA) read(r *http.Request) (*request, *failure) {
	var s struct{ Protected, Payload, Signature string }
	q := new(request)
	if json.NewDecoder(r.Body).Decode(&s) != nil || json.Unmarshal(decode(s.Protected), &q.header) != nil {
		return nil, fail(422, "VALIDATION_FAILED", "Request body, query, or path parameters failed validation.")
	}
	q.payload = decode(s.Payload)
	if !ca.nonces[q.header.Nonce] {
		return nil, fail(400, "BAD_NONCE", "Invalid or expired nonce")
	}
	delete(ca.nonces, q.header.Nonce)
	if want := ca.URL + r.URL.Path; q.header.URL != want {
		return nil, fail(400, "MALFORMED_REQUEST", "URL mismatch: expected "+want+", got "+q.header.URL)
	}
	if jwk := q.header.JWK; jwk != nil {
		point := slices.Concat([]byte{4}, decode(jwk.X), decode(jwk.Y)) // uncompressed
		key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
		if err != nil {
			return nil, fail(400, "MALFORMED_REQUEST", "Invalid JWK")
		}
		q.key = key
	} else {
		n, _ := strconv.Atoi(q.header.Kid[strings.LastIndexByte(q.header.Kid, '/')+1:])
		if n < 1 || n > len(ca.accounts) {
			return nil, fail(404, "ACCOUNT_NOT_FOUND", "Account not found")
		}
		q.account, q.key = n, ca.accounts[n-1].key
	}
	sum, raw := sha256.Sum256([]byte(s.Protected+"."+s.Payload)), decode(s.Signature)
	if q.header.Alg != "ES256" || len(raw) != 64 || !ecdsa.Verify(q.key, sum[:],
		new(big.Int).SetBytes(raw[:32]), new(big.Int).SetBytes(raw[32:])) {
		return nil, fail(400, "BAD_SIGNATURE", "Invalid signature: Invalid EC signature format: ")
	}
	return q, nil
}

func decode(s string) []byte {
	b, _ := base64.RawURLEncoding.DecodeString(s)
	return b
}

func (ca *CA) newAccount(q *request) *failure {
	var p struct {
		OnlyReturnExisting     bool
		ExternalAccountBinding *struct{ Protected, Payload, Signature string }
	}
	_ = json.Unmarshal(q.payload, &p)
	for i, a := range ca.accounts {
		if p.OnlyReturnExisting && a.key.Equal(q.key) {
			return ca.giveAccount(q, i+1)
		}
	}
	switch b := p.ExternalAccountBinding; {
	case p.OnlyReturnExisting:
		return fail(404, "ACCOUNT_NOT_FOUND", "Account does not exist")
	case ca.fetch != nil:
		return ca.addAccount(q, "")
	case b == nil:
		return fail(400, "EXTERNAL_ACCOUNT_REQUIRED", "externalAccountBinding is required for new account")
	default:
		var h struct{ Alg, Kid, URL string }
		_ = json.Unmarshal(decode(b.Protected), &h)
		if h.URL != q.header.URL {
			return fail(400, "MALFORMED_REQUEST", "externalAccountBinding URL mismatch")
		}
		e := ca.eabs[h.Kid]
		if e == nil || e.spent {
			return fail(400, "EXTERNAL_ACCOUNT_REQUIRED", "Failed to consume external account binding credential")
		}
		e.spent = true // before its MAC is looked at
		ca.counts.EABs++
		mac := hmac.New(sha256.New, e.mac)
		mac.Write([]byte(b.Protected + "." + b.Payload))
		if h.Alg != "HS256" || !hmac.Equal(mac.Sum(nil), decode(b.Signature)) {
			return fail(400, "BAD_SIGNATURE", "Invalid externalAccountBinding signature")
		}
		return ca.addAccount(q, e.aic)
	}
}

func (ca *CA) addAccount(q *request, aic string) *failure {
	ca.accounts = append(ca.accounts, &account{key: q.key, aic: aic})
	ca.counts.Accounts++
	return ca.giveAccount(q, len(ca.accounts))
}

func (ca *CA) giveAccount(q *request, n int) *failure {
	kid := fmt.Sprintf("%s/acps-atr-v2/acme/acct/%d", ca.URL, n)
	ca.giveNonce(q.response)
	q.response.Header().Set("Location", kid)
	answer(q.response, http.StatusCreated, map[string]any{"status": "valid", "contact": []string{},
		"termsOfServiceAgreed": true, "orders": kid + "/orders"})
	return nil
}

func (ca *CA) newOrder(q *request) *failure {
	var p struct {
		Identifiers []struct{ Type, Value, Usage string }
	}
	_ = json.Unmarshal(q.payload, &p)
	if len(p.Identifiers) == 0 {
		return fail(400, "MALFORMED_REQUEST", "Missing identifiers")
	}
	id := p.Identifiers[0]
	switch aic := strings.ToUpper(id.Value); {
	case id.Type != "agent":
		return fail(400, "UNSUPPORTED_IDENTIFIER", "Unsupported identifier type: "+id.Type)
	case aic != ca.accounts[q.account-1].aic && ca.fetch == nil:
		return fail(400, "INVALID_IDENTIFIER", "Order identifier does not match account-bound AIC")
	case ca.agents[aic] == nil || !ca.agents[aic].Active:
		return fail(400, "INVALID_IDENTIFIER", "Invalid or inactive agent: "+aic)
	}
	o := &order{account: q.account, aic: strings.ToUpper(id.Value), usage: id.Usage, status: "ready", token: random(16)}
	if ca.fetch != nil {
		o.status = "pending"
	}
	ca.orders = append(ca.orders, o)
	ca.counts.Orders++
	return ca.giveOrder(q, len(ca.orders), http.StatusCreated)
}

func (ca *CA) giveOrder(q *request, n, status int) *failure {
	o, base := ca.orders[n-1], ca.URL+"/acps-atr-v2/acme/"
	to := fmt.Sprintf("%sorder/%d", base, n)
	body := map[string]any{"status": o.status, "expires": time.Now().Add(24 * time.Hour).Format(time.RFC3339Nano),
		"identifiers":    []map[string]string{{"type": "agent", "value": o.aic, "usage": o.usage}},
		"authorizations": []string{fmt.Sprintf("%sauthz/%d", base, n)}, "finalize": to + "/finalize"}
	if o.status == "valid" {
		body["certificate"] = fmt.Sprintf("%scert/%d", base, n)
	}
	ca.giveNonce(q.response)
	q.response.Header().Set("Location", to)
	answer(q.response, status, body)
	return nil
}

func (ca *CA) order(q *request, rest string) *failure {
	number, finalize := strings.CutSuffix(rest, "/finalize")
	o, n := ca.orderOf(q, number)
	if o == nil {
		return fail(404, "ORDER_NOT_FOUND", "Order not found")
	}
	if !finalize {
		return ca.giveOrder(q, n, http.StatusOK)
	}
	var p struct{ CSR string }
	_ = json.Unmarshal(q.payload, &p)
	csr, err := x509.ParseCertificateRequest(decode(p.CSR))
	switch {
	case o.status != "ready":
		return fail(400, "ORDER_NOT_READY", "Order is not ready for finalization")
	case err != nil:
		return &failure{500, "urn:ietf:params:acme:error:SERVER_INTERNAL", "SERVER_INTERNAL", "Internal server error"}
	case csr.Subject.CommonName != ca.nameOf(o):
		return fail(400, "INVALID_CERTIFICATE_FORMAT",
			"CSR Common Name '"+csr.Subject.CommonName+"' does not match any ordered identifiers")
	}
	if err := ca.issue(o, csr); err != nil {
		return fail(500, "SERVER_INTERNAL", "Certificate signing failed for agent "+o.aic)
	}
	return ca.giveOrder(q, n, http.StatusOK)
}

// nameOf returns the common name in the certificate of an order.
func (ca *CA) nameOf(o *order) string {
	if ca.fetch != nil {
		return o.aic + ".acps.pub"
	}
	return o.aic
}

// issue issues the certificate of an order.
func (ca *CA) issue(o *order, csr *x509.CertificateRequest) error {
	agent := ca.agents[o.aic]
	lifetime := agent.Lifetime
	if lifetime == 0 {
		lifetime = 49 * 24 * time.Hour
	}
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 152))
	if err != nil {
		return err
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	switch o.usage {
	case "serverAuth":
		usages = usages[:1]
	case "clientAuth":
		usages = usages[1:]
	}
	template := &x509.Certificate{SerialNumber: number, NotBefore: time.Now(), NotAfter: time.Now().Add(lifetime),
		Subject:  pkix.Name{CommonName: ca.nameOf(o), Organization: []string{"Test Org"}, Country: []string{"CN"}},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usages, BasicConstraintsValid: true,
		DNSNames: agent.DNS, URIs: []*url.URL{{Scheme: "acps", Host: o.aic}},
		CRLDistributionPoints: []string{ca.URL + "/acps-atr-v2/crl/current"}}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.between.cert, csr.PublicKey, ca.between.key)
	if err != nil {
		return err
	}
	var chain bytes.Buffer
	for _, one := range [][]byte{der, ca.between.cert.Raw} {
		_ = pem.Encode(&chain, &pem.Block{Type: "CERTIFICATE", Bytes: one})
	}
	o.status, o.chain, o.serial = "valid", chain.Bytes(), strings.ToUpper(number.Text(16))
	ca.counts.Issued[o.usage]++
	return nil
}

func (ca *CA) certificate(q *request, rest string) *failure {
	o, _ := ca.orderOf(q, rest)
	if o == nil || o.status != "valid" {
		return fail(404, "CERTIFICATE_NOT_FOUND", "Certificate not found")
	}
	ca.giveNonce(q.response)
	q.response.Header().Set("Content-Type", "application/pem-certificate-chain")
	_, _ = q.response.Write(o.chain)
	return nil
}

func (ca *CA) revoke(q *request) *failure {
	var p struct {
		Certificate string
		Reason      int
	}
	_ = json.Unmarshal(q.payload, &p)
	cert, err := x509.ParseCertificate(decode(p.Certificate))
	switch {
	case err != nil || p.Reason < 0 || p.Reason > 6:
		return fail(400, "MALFORMED_REQUEST", "Invalid revocation reason code")
	case cert.Subject.CommonName != ca.accounts[q.account-1].aic:
		return fail(403, "UNAUTHORIZED", "Certificate does not belong to this account")
	case ca.revoked[serialOf(cert)]:
		return fail(400, "ALREADY_REVOKED", "Certificate is already revoked")
	}
	ca.revoked[serialOf(cert)] = true
	ca.counts.Revoked++
	ca.giveNonce(q.response)
	q.response.WriteHeader(http.StatusOK)
	return nil
}
