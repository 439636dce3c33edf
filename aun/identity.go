// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/internal/pemtext"
)

// Identity is an AID of our own: its private key, and its certificate once the issuer has given it one.
type Identity struct {
	AID   AID
	Key   *ecdsa.PrivateKey
	Chain []*x509.Certificate // its certificate first, then those of its issuers; empty while it has none
}

// NewIdentity returns an identity with a new key of the curve P-256, and without a certificate.
func NewIdentity(aid AID) (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return &Identity{AID: aid, Key: key}, nil
}

// aidHeader is the PEM header with the AID of a key.
const aidHeader = "AID"

// LoadIdentity reads the file of an identity: its private key in PEM (PKCS #8 or SEC 1), and its chain of certificates.
// The file must not be readable by other users.
func LoadIdentity(path string) (*Identity, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); !private(mode) {
		return nil, fmt.Errorf("%s holds a private key, and other users may read it (mode %04o); set its mode to 0600",
			path, mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxPEM+1))
	if err != nil {
		return nil, err
	}
	id, err := ParseIdentity(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return id, nil
}

// ParseIdentity reads the content of the file of an identity.
func ParseIdentity(text []byte) (*Identity, error) {
	if len(text) > maxPEM {
		return nil, errors.New("it is too large for PEM")
	}
	id := new(Identity)
	for block, err := range pemtext.Blocks(text, "PRIVATE KEY", "EC PRIVATE KEY") {
		switch {
		case err != nil:
			return nil, err
		case id.Key != nil:
			return nil, errors.New("it holds more than one private key")
		}
		if id.Key, err = parseKey(block); err != nil {
			return nil, err
		}
		id.AID = AID(block.Headers[aidHeader])
	}
	if id.Key == nil {
		return nil, errors.New(`it has no PEM block "PRIVATE KEY"`)
	}
	switch chain, err := parseCerts(text, maxChain); {
	case err == nil:
		if !id.Key.PublicKey.Equal(chain[0].PublicKey) {
			return nil, errors.New("its first certificate is not that of its key")
		}
		if id.AID, err = aidOf(chain[0]); err != nil {
			return nil, fmt.Errorf("its certificate: %w", err)
		}
		id.Chain = chain
		return id, nil
	case !errors.Is(err, pemtext.ErrNone):
		return nil, err
	}
	var err error
	if id.AID, err = ParseAID(string(id.AID)); err != nil {
		return nil, errors.New("it has neither a certificate nor an AID")
	}
	return id, nil
}

func parseKey(block *pem.Block) (*ecdsa.PrivateKey, error) {
	var parsed any
	var err error
	if parsed, err = x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
		if parsed, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
			return nil, errors.New("its private key cannot be read")
		}
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() && key.Curve != elliptic.P384() {
		return nil, errors.New("its private key is neither of the curve P-256 nor of P-384")
	}
	return key, nil
}

// Save writes the file of an identity, readable by its owner only. Unless replace is set, there must be no such file.
func (id *Identity) Save(path string, replace bool) error {
	der, err := x509.MarshalPKCS8PrivateKey(id.Key)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "PRIVATE KEY", Bytes: der, Headers: map[string]string{aidHeader: string(id.AID)}}
	text := append(pem.EncodeToMemory(block), EncodeCerts(id.Chain...)...)
	if !replace {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		return writeAll(f, text)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".aun-") // mode 0600
	if err != nil {
		return err
	}
	if err := writeAll(f, text); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}

func writeAll(f *os.File, text []byte) error {
	_, err := f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// CertPEM returns the chain of certificates in PEM.
func (id *Identity) CertPEM() string { return string(EncodeCerts(id.Chain...)) }

// PublicKey returns the public key as auth.create_aid takes it: SubjectPublicKeyInfo in base64.
func (id *Identity) PublicKey() string {
	return base64.StdEncoding.EncodeToString(publicInfo(&id.Key.PublicKey))
}

// publicInfo returns a public key as SubjectPublicKeyInfo in DER.
func publicInfo(key *ecdsa.PublicKey) []byte {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		panic(err) // of a key with a nameless curve: ParseIdentity refuses it, and TokenKey does not make it
	}
	return der
}

// Curve returns the name of the key's curve: P-256 or P-384.
func (id *Identity) Curve() string { return id.Key.Curve.Params().Name }

// TokenKey returns the key for signing the tokens of the identity's issuer. It is derived from the private key, so
// tokens outlive the process, and it is another one: a signature of the private key for others is never a token.
func (id *Identity) TokenKey() (*ecdsa.PrivateKey, error) {
	secret, err := id.Key.Bytes()
	if err != nil {
		return nil, err
	}
	for n := range 256 {
		scalar, err := hkdf.Key(sha256.New, secret, nil, "aip-gateway: key of AUN tokens, "+strconv.Itoa(n), 32)
		if err != nil {
			return nil, err
		}
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar); err == nil { // all but 2^-32 of them
			return key, nil
		}
	}
	return nil, errors.New("no key of tokens can be derived from the private key")
}

// clientAID returns the AID claimed by a client in the params of a login.
func (id *Identity) clientAID(params gjson.Result) (AID, error) {
	aid, err := ParseAID(params.Get("aid").String())
	if err != nil {
		return "", Errorf(codes.InvalidParams, "aid: %v", err)
	}
	return aid, id.refuse(aid)
}

// refuse returns an error for a client with this end's own AID. This end has no reason to log in at itself.
func (id *Identity) refuse(aid AID) error {
	if aid != id.AID {
		return nil
	}
	return Errorf(codes.AuthFailed, "%s is this gateway's own AID, which no client may log in as; use an AID of your own",
		aid)
}

// Sign returns the identity's signature of a message.
func (id *Identity) Sign(message string) (string, error) { return Sign(id.Key, message) }

// isIssuedBy reports whether the identity has a certificate of an issuer, by its name in DER.
func (id *Identity) isIssuedBy(issuer []byte) bool {
	return len(id.Chain) > 0 && bytes.Equal(id.Chain[0].RawIssuer, issuer)
}
