// SPDX-License-Identifier: Apache-2.0

package agentca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
)

// jwk is the public key of an account, in the form and the order of RFC 7638.
type jwk struct {
	Curve string `json:"crv"`
	Type  string `json:"kty"`
	X     string `json:"x"`
	Y     string `json:"y"`
}

// header is the protected header of a JWS. Either key or kid names who signs.
type header struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid,omitempty"`
	Key       *jwk   `json:"jwk,omitempty"`
	Nonce     string `json:"nonce,omitempty"`
	URL       string `json:"url"`
}

// signed is a JWS in the flattened form.
type signed struct {
	Protected string `json:"protected"`
	Payload   string `json:"payload"`
	Signature string `json:"signature"`
}

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// jwkOf returns the public key of an account.
func jwkOf(key *ecdsa.PrivateKey) (*jwk, error) {
	point, err := key.PublicKey.Bytes() // 4, x and y
	if err != nil {
		return nil, err
	}
	half := (len(point) - 1) / 2
	return &jwk{Curve: "P-256", Type: "EC", X: base64url(point[1 : 1+half]), Y: base64url(point[1+half:])}, nil
}

// thumbprint returns the thumbprint of a key (RFC 7638).
func thumbprint(key *ecdsa.PrivateKey) (string, error) {
	k, err := jwkOf(key)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(k) // its members are in the order of the alphabet
	sum := sha256.Sum256(text)
	return base64url(sum[:]), err
}

// sign signs a payload by ES256. A payload that is nil is empty: a POST-as-GET.
func sign(key *ecdsa.PrivateKey, h header, payload any) ([]byte, error) {
	s, err := parts(h, payload)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(s.Protected + "." + s.Payload))
	r, t, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return nil, err
	}
	raw := make([]byte, 64)
	r.FillBytes(raw[:32])
	t.FillBytes(raw[32:])
	s.Signature = base64url(raw)
	return json.Marshal(s)
}

// bind signs the key of an account by an EAB (RFC 8555 §7.3.4).
func bind(eab EAB, url string, key *jwk) (*signed, error) {
	s, err := parts(header{Algorithm: "HS256", KeyID: eab.KeyID, URL: url}, key)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, eab.mac)
	mac.Write([]byte(s.Protected + "." + s.Payload))
	s.Signature = base64url(mac.Sum(nil))
	return s, nil
}

func parts(h header, payload any) (*signed, error) {
	protected, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	s := &signed{Protected: base64url(protected)}
	if payload != nil {
		body, err := json.Marshal(payload)
		if err != nil {
			return nil, err
		}
		s.Payload = base64url(body)
	}
	return s, nil
}

// newKey makes a key, and its PEM.
func newKey() (key *ecdsa.PrivateKey, text string, err error) {
	if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), err
}

// readKey reads a key that newKey has made. Its errors do not quote it.
func readKey(text string) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the key that is kept is no PEM")
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := any.(*ecdsa.PrivateKey)
	if err != nil || !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("the key that is kept is none of P-256")
	}
	return key, nil
}
