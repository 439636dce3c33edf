// SPDX-License-Identifier: Apache-2.0

package agentca

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"
)

const (
	maxSteps    = 20              // of one order
	processWait = 2 * time.Second // before an order that is in process is asked for again
)

// errNoEAB says that only a person can go on.
var errNoEAB = errors.New("there is no account at the authority yet, and no EAB for one")

// work carries out what is due: it makes the account, and orders certificates. It may be cut off between any two steps;
// what is there is kept, and the next call goes on from it.
func (k *Keeper) work(ctx context.Context, r *record) error {
	if r.Retired {
		return k.revokeAll(ctx, r)
	}
	if k.due(r, time.Now()) == nil {
		return nil // another gateway has done it meanwhile
	}
	if k.Inactive != nil && k.Inactive(ctx) {
		return errInactive
	}
	s, err := k.account(ctx, r)
	if err != nil {
		return err
	}
	for _, u := range k.due(r, time.Now()) {
		if err := k.obtain(ctx, r, s, u); err != nil {
			return fmt.Errorf("%s: %w", nameOf(u), err)
		}
	}
	return nil
}

// account returns the account of the agent. Its key is stored before the authority hears of it, and the account is
// looked for by the key before an EAB is spent: an answer may have been lost.
func (k *Keeper) account(ctx context.Context, r *record) (signer, error) {
	if r.AccountKey == "" {
		_, text, err := newKey()
		if err != nil {
			return signer{}, err
		}
		r.AccountKey = text
		if err := k.save(ctx, r); err != nil {
			return signer{}, err
		}
	}
	key, err := readKey(r.AccountKey)
	if err != nil {
		return signer{}, err
	}
	s := signer{key, r.Account}
	if s.kid != "" {
		return s, nil
	}
	s.kid, err = k.Client.find(ctx, key)
	if isKind(err, accountNotFound, accountMissing) {
		s.kid, err = k.register(ctx, r, key)
	}
	if err != nil {
		return s, err
	}
	r.Account = s.kid
	k.Log.Info("the account at the authority of certificates is kept", "account", s.kid)
	return s, k.save(ctx, r)
}

// register makes the account by an EAB. One that the authority has refused is spent, whatever was wrong with it.
func (k *Keeper) register(ctx context.Context, r *record, key *ecdsa.PrivateKey) (kid string, err error) {
	if k.IsV1() {
		return k.Client.register(ctx, key, k.Contact, nil)
	}
	if k.EAB == nil {
		return "", errNoEAB
	}
	eab, err := k.EAB(ctx)
	if err == nil {
		err = eab.check(k.AIC, time.Now())
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", errNoEAB, err)
	case slices.Contains(r.Refused, eab.KeyID):
		return "", fmt.Errorf("%w: the authority has refused the EAB %s, which is spent; get a new one from the registry",
			errNoEAB, cut(eab.KeyID, 60))
	}
	kid, err = k.Client.register(ctx, key, k.Contact, &eab)
	if isKind(err, noBinding, badSignature) {
		r.refuse(eab.KeyID)
		err = errors.Join(fmt.Errorf("%w: the EAB %s is spent or wrong; get a new one from the registry: %w",
			errNoEAB, cut(eab.KeyID, 60), err), k.save(ctx, r))
	}
	return kid, err
}

// obtain orders the certificate for a usage, or goes on with the order that is there.
func (k *Keeper) obtain(ctx context.Context, r *record, s signer, u Usage) error {
	h := r.of(u)
	if h.Order == nil {
		_, text, err := newKey()
		if err != nil {
			return err
		}
		h.Order = &begun{Key: text}
		if err := k.save(ctx, r); err != nil {
			return err
		}
	}
	key, err := readKey(h.Order.Key)
	if err != nil {
		return err
	}
	p, err := k.follow(ctx, r, h, s, u, key)
	if err != nil {
		if isFinal(err) || errors.Is(err, errOrderLost) {
			h.Order = nil // the next attempt begins anew
			err = errors.Join(err, k.save(ctx, r))
		}
		return err
	}
	h.Chain, h.Key, h.read, h.Order, h.Replace = p.pem(), h.Order.Key, p, nil, false
	if err := k.save(ctx, r); err != nil {
		return err
	}
	k.Log.Info("a certificate was ordered, and is in use", "usage", nameOf(u), "serial", p.serial(),
		"until", p.Leaf.NotAfter.UTC())
	return nil
}

// errOrderLost says that an order leads to no certificate.
var errOrderLost = errors.New("the order leads to no certificate; another is placed")

// follow leads an order to its certificate. It asks the authority where the order stands, and never finalizes one that
// it does not know as ready.
func (k *Keeper) follow(ctx context.Context, r *record, h *held, s signer, u Usage, key *ecdsa.PrivateKey,
) (*pair, error) {
	id := identifier{Type: "agent", Value: k.AIC, Usage: u}
	var o *order
	var err error
	if h.Order.URL == "" {
		if o, h.Order.URL, err = k.Client.place(ctx, s, id); err == nil {
			err = k.save(ctx, r)
		}
		if isKind(err, accountNotFound, accountMissing) { // the authority has lost it: it is looked for by its key
			r.Account = ""
		}
	} else {
		o, err = k.Client.order(ctx, s, h.Order.URL, id)
	}
	for step := 0; err == nil; step++ {
		if step == maxSteps {
			return nil, errors.New("the order is not done yet")
		}
		switch o.Status {
		case orderPending:
			if err = k.prove(ctx, s, o); err == nil {
				o, err = k.Client.order(ctx, s, h.Order.URL, id)
			}
		case orderReady:
			o, err = k.finalize(ctx, s, h, o, id, key)
		case orderProcessing:
			if err = pause(ctx, processWait); err == nil {
				o, err = k.Client.order(ctx, s, h.Order.URL, id)
			}
		case orderValid:
			return k.download(ctx, s, o, u, key)
		default:
			return nil, fmt.Errorf("it is %s: %w", cut(o.Status, 20), errOrderLost)
		}
	}
	return nil, err
}

// finalize sends the request for the certificate. The names are none of it: the authority takes them from the ACS.
func (k *Keeper) finalize(ctx context.Context, s signer, h *held, o *order, id identifier, key *ecdsa.PrivateKey,
) (*order, error) {
	csr, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: k.commonName()}}, key)
	if err != nil {
		return nil, err
	}
	next, err := k.Client.finalize(ctx, s, o, id, csr)
	if isKind(err, orderNotReady) { // the answer of an earlier request was lost
		return k.Client.order(ctx, s, h.Order.URL, id)
	}
	return next, err
}

// download gets the certificate, and checks that it is what was ordered.
func (k *Keeper) download(ctx context.Context, s signer, o *order, u Usage, key *ecdsa.PrivateKey,
) (*pair, error) {
	got, err := k.Client.post(ctx, s, o.Certificate, nil)
	if err != nil {
		return nil, err
	}
	chain, err := readChain(got.body)
	if err == nil {
		err = checkChain(chain, key, k.commonName(), u, time.Now())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, errOrderLost)
	}
	return newPair(key, chain), nil
}

// prove meets the challenges of an order of v01.00: each asks for a file with a token, and with the
// thumbprint of the account.
func (k *Keeper) prove(ctx context.Context, s signer, o *order) error {
	if k.Challenges == nil {
		return fmt.Errorf("the authority asks for a challenge: %w", errOrderLost)
	}
	print, err := thumbprint(s.key)
	if err != nil {
		return err
	}
	for _, to := range o.Authorizations {
		if err := k.meet(ctx, s, to, print); err != nil {
			return err
		}
	}
	return nil
}

// meet meets the challenge of an authorization, and waits until the authority has seen the file.
func (k *Keeper) meet(ctx context.Context, s signer, to, print string) error {
	asked, err := k.Client.challenge(ctx, s, to)
	if err != nil || asked == nil {
		return err
	}
	file := challengeKey(k.AIC, asked.Token)
	if err := k.Challenges.Store(ctx, file, []byte(asked.Token+"."+print)); err != nil {
		return err
	}
	defer func() { _ = k.Challenges.Delete(context.WithoutCancel(ctx), file) }()
	if _, err := k.Client.post(ctx, s, asked.URL, struct{}{}); err != nil {
		return err
	}
	for range maxSteps {
		if waits, err := k.Client.challenge(ctx, s, to); err != nil || waits == nil {
			return err
		}
		if err := pause(ctx, processWait); err != nil {
			return err
		}
	}
	return errors.New("the authority has not looked at the file of its challenge yet")
}

// challengeKey returns where the file of a challenge is in the storage, so that each gateway can show it.
func challengeKey(aic, token string) string { return path.Join("aip", "challenges", aic, token) }

// Challenge returns the content of the file that the authority asks for at <ca-challenge-url>/<aic>/<token>. An error
// is fs.ErrNotExist, or one of the storage.
func Challenge(ctx context.Context, s Storage, aic, token string) ([]byte, error) {
	return s.Load(ctx, challengeKey(aic, token))
}

// reasonCessation is the reason of a revocation by the operator: cessationOfOperation (RFC 5280 §5.3.1).
const reasonCessation = 5

// revokeAll revokes what a retired agent still has.
func (k *Keeper) revokeAll(ctx context.Context, r *record) error {
	for _, u := range k.usages() {
		h := r.Certificates[u]
		if h == nil {
			continue
		}
		p, err := h.pair()
		if err == nil && p != nil && time.Now().Before(p.Leaf.NotAfter) {
			s, err := k.account(ctx, r)
			if err != nil {
				return err
			}
			if err := k.Client.revoke(ctx, s, p.Leaf.Raw, reasonCessation); err != nil {
				return fmt.Errorf("%s is not revoked: %w", nameOf(u), err)
			}
			k.Log.Info("a certificate was revoked", "usage", nameOf(u), "serial", p.serial())
		}
		delete(r.Certificates, u)
		if err := k.save(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// pause waits, unless the context ends before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
