// SPDX-License-Identifier: Apache-2.0

package agentca

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// Storage is where the keys and certificates are kept. Gateways that share one share the certificates. An absent key is
// fs.ErrNotExist. A value is stored wholly, or not at all.
type Storage interface {
	Lock(ctx context.Context, name string) error
	Unlock(ctx context.Context, name string) error
	Load(ctx context.Context, key string) ([]byte, error)
	Store(ctx context.Context, key string, value []byte) error
	Delete(ctx context.Context, key string) error
}

// record is all that is kept of one agent at one authority. Each step is stored before the next one begins.
type record struct {
	AIC string `json:"aic"`
	// The key of the account. It is kept for ever: the account is bound to the AIC, and no other is made without an EAB.
	AccountKey string `json:"account_key,omitempty"`
	// The URL of the account.
	Account string `json:"account,omitempty"`
	// The ids of the EABs that the authority has refused.
	Refused []string `json:"refused_eabs,omitempty"`
	// Nothing is ordered any more, and what there is is revoked.
	Retired bool `json:"retired,omitempty"`
	// The certificates, by what they are for.
	Certificates map[Usage]*held `json:"certificates,omitempty"`
}

// held is the certificate for one usage, and the order of the next one.
type held struct {
	Chain string `json:"chain,omitempty"`
	Key   string `json:"key,omitempty"`
	// Whether a new one is ordered although this one lasts.
	Replace bool   `json:"replace,omitempty"`
	Order   *begun `json:"order,omitempty"`

	read *pair // chain and key, once pair has read them
}

// begun is an order that has not led to a certificate yet.
type begun struct {
	Key string `json:"key"`           // of the certificate
	URL string `json:"url,omitempty"` // of the order; empty before it is known
}

const maxRefused = 16 // EABs that are remembered

// refuse remembers that an EAB is spent.
func (r *record) refuse(keyID string) {
	r.Refused = append(r.Refused, keyID)
	r.Refused = slices.Clone(r.Refused[max(0, len(r.Refused)-maxRefused):])
}

// of returns what is held for a usage.
func (r *record) of(u Usage) *held {
	if r.Certificates == nil {
		r.Certificates = make(map[Usage]*held)
	}
	if r.Certificates[u] == nil {
		r.Certificates[u] = new(held)
	}
	return r.Certificates[u]
}

// readRecord reads a record. Its errors do not quote it.
func readRecord(body []byte) (*record, error) {
	r := new(record)
	if json.Unmarshal(body, r) != nil {
		return nil, errors.New("what the storage has of the certificates of an agent cannot be read")
	}
	for u, h := range r.Certificates {
		if h == nil {
			delete(r.Certificates, u)
		}
	}
	return r, nil
}

// pair is a certificate with its key, and its chain, which its leaf begins.
type pair struct {
	tls.Certificate
	chain []*x509.Certificate
}

func newPair(key *ecdsa.PrivateKey, chain []*x509.Certificate) *pair {
	p := &pair{tls.Certificate{PrivateKey: key, Leaf: chain[0]}, chain}
	for _, cert := range chain {
		p.Certificate.Certificate = append(p.Certificate.Certificate, cert.Raw)
	}
	return p
}

func (p *pair) serial() string { return p.Leaf.SerialNumber.Text(16) }

// renewal returns when the certificate is renewed: when a third of its life is left.
func (p *pair) renewal() time.Time {
	return p.Leaf.NotAfter.Add(-p.Leaf.NotAfter.Sub(p.Leaf.NotBefore) / 3)
}

// pem returns the chain in PEM.
func (p *pair) pem() string {
	var s strings.Builder
	for _, cert := range p.chain {
		_ = pem.Encode(&s, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}) // a Builder has no errors
	}
	return s.String()
}

// pair returns the certificate with its key; nil for none.
func (h *held) pair() (*pair, error) {
	if h.Chain == "" || h.read != nil {
		return h.read, nil
	}
	chain, err := readChain([]byte(h.Chain))
	if err != nil {
		return nil, err
	}
	key, err := readKey(h.Key)
	if err != nil {
		return nil, err
	}
	if !key.PublicKey.Equal(chain[0].PublicKey) {
		return nil, errors.New("the certificate that is kept has another key")
	}
	h.read = newPair(key, chain)
	return h.read, nil
}

// folder returns the beginning of the keys in the storage of what is kept for one authority.
func folder(directory string) string {
	sum := sha256.Sum256([]byte(directory))
	host := "ca"
	if u, err := url.Parse(directory); err == nil && u.Hostname() != "" {
		host = strings.ReplaceAll(u.Hostname(), ":", "_")
	}
	return path.Join("aip", "certificates", host+"-"+hex.EncodeToString(sum[:4]))
}

// load reads the record of the agent.
func (k *Keeper) load(ctx context.Context) (*record, error) {
	body, err := k.read(ctx)
	if err != nil {
		return nil, err
	}
	return k.parse(body)
}

// read reads what the storage has of the agent; nil for nothing.
func (k *Keeper) read(ctx context.Context) ([]byte, error) {
	body, err := k.Storage.Load(ctx, k.key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the storage cannot be read: %w", err)
	}
	return body, nil
}

// parse reads the record of the agent; an empty one if there is none.
func (k *Keeper) parse(body []byte) (*record, error) {
	if body == nil {
		return &record{AIC: k.AIC}, nil
	}
	return readRecord(body)
}

// save stores the record, and serves what is in it.
func (k *Keeper) save(ctx context.Context, r *record) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := k.Storage.Store(ctx, k.key, body); err != nil {
		return fmt.Errorf("the storage cannot be written: %w", err)
	}
	return k.publish(r)
}

// locked has f work on the record of the agent, while no other gateway does.
func (k *Keeper) locked(ctx context.Context, f func(*record) error) error {
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	if err := k.Storage.Lock(wait, k.key); err != nil {
		return fmt.Errorf("the lock of the storage was not had: %w", err)
	}
	defer func() { _ = k.Storage.Unlock(context.WithoutCancel(ctx), k.key) }() // one that is left behind ends by itself
	r, err := k.load(ctx)
	if err == nil {
		err = k.publish(r)
	}
	if err != nil {
		return err
	}
	return f(r)
}
