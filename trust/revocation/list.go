// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/cryptobyte"
	der "golang.org/x/crypto/cryptobyte/asn1"
)

// skew is the greatest lead of the clock of an issuer.
const skew = 5 * time.Minute

// list is a revocation list. It is not changed once its issuer is verified.
type list struct {
	serials serials
	removed serials // of a delta: serials no longer revoked

	issuer  []byte // its name, in DER
	keyID   []byte // of the issuer's key; nil if the list does not say it
	number  *big.Int
	base    *big.Int // of a delta: the smallest number of a list it adds to; nil for a complete list
	scope   scope
	from    time.Time // thisUpdate
	until   time.Time // nextUpdate
	entries int
	got     time.Time // when it was read

	given atomic.Int64 // when a URL has last given it, in ns since 1970; read by anyone
	slot  int          // the number of its file; another one for each list of its location

	algorithm x509.SignatureAlgorithm
	signature []byte
	signed    []byte // the hash of the signed part, or the part itself for Ed25519; until the issuer is verified
	spool     string // the file of the list in DER, until it is kept or dropped; empty for none

	authority *x509.Certificate // its signer; nil while it is not known
	location  *location
}

// serials are serial numbers, in order.
type serials []serial

// serial is a serial number of a certificate, of up to 20 octets (RFC 5280 §4.1.2.2), with leading zeros.
type serial [20]byte

// serialOf returns a serial number from its big-endian bytes.
func serialOf(b []byte) (s serial, ok bool) {
	b = bytes.TrimLeft(b, "\x00")
	if len(b) > len(s) {
		return s, false
	}
	copy(s[len(s)-len(b):], b)
	return s, true
}

func (s serials) has(n serial) bool {
	_, found := slices.BinarySearchFunc(s, n, func(a, b serial) int { return bytes.Compare(a[:], b[:]) })
	return found
}

// sorted returns s in order.
func (s serials) sorted() serials {
	slices.SortFunc(s, func(a, b serial) int { return bytes.Compare(a[:], b[:]) })
	return slices.Clip(s)
}

// The known extensions of lists and of their entries (RFC 5280 §5.2, §5.3).
var (
	oidKeyID    = asn1.ObjectIdentifier{2, 5, 29, 35}
	oidNumber   = asn1.ObjectIdentifier{2, 5, 29, 20}
	oidDelta    = asn1.ObjectIdentifier{2, 5, 29, 27}
	oidScope    = asn1.ObjectIdentifier{2, 5, 29, 28}
	oidReason   = asn1.ObjectIdentifier{2, 5, 29, 21}
	oidInvalid  = asn1.ObjectIdentifier{2, 5, 29, 24}
	removeEntry = 8 // the reason removeFromCRL
)

var errSyntax = errors.New("it is no certificate revocation list")

// withoutEntries returns a list in DER without entries.
func withoutEntries(head, tail, signature []byte) ([]byte, error) {
	var b cryptobyte.Builder
	b.AddASN1(der.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddASN1(der.SEQUENCE, func(b *cryptobyte.Builder) {
			b.AddBytes(head)
			b.AddBytes(tail)
		})
		b.AddBytes(signature)
	})
	return b.Bytes()
}

// readHead reads all but the entries, by the parser of crypto/x509: it gets the same list without them. (With them it
// would take 30 times the memory.)
func (l *list) readHead(head, tail, signature []byte) error {
	raw, err := withoutEntries(head, tail, signature)
	if err != nil {
		return errSyntax
	}
	parsed, err := x509.ParseRevocationList(raw)
	if err != nil {
		return fmt.Errorf("%w: %w", errSyntax, err)
	}
	l.issuer, l.keyID, l.number = parsed.RawIssuer, parsed.AuthorityKeyId, parsed.Number
	l.from, l.until = parsed.ThisUpdate, parsed.NextUpdate
	l.algorithm, l.signature = parsed.SignatureAlgorithm, parsed.Signature
	switch {
	case l.until.IsZero():
		return errors.New("it has no nextUpdate")
	case !l.until.After(l.from):
		return errors.New("its nextUpdate is not after its thisUpdate")
	}
	seen := make(map[string]bool)
	for _, e := range parsed.Extensions {
		id := e.Id.String()
		if seen[id] {
			return fmt.Errorf("it has two extensions %s", id)
		}
		seen[id] = true
		switch {
		case e.Id.Equal(oidDelta):
			number := new(big.Int)
			value := cryptobyte.String(e.Value)
			if !value.ReadASN1Integer(number) || !value.Empty() {
				return fmt.Errorf("%w: its base is not a number", errSyntax)
			}
			l.base = number
		case e.Id.Equal(oidScope):
			if l.scope, err = readScope(e.Value); err != nil {
				return err
			}
		case e.Id.Equal(oidKeyID), e.Id.Equal(oidNumber):
		case e.Critical:
			return fmt.Errorf("it has a critical extension that is not known here, %s", id)
		}
	}
	if l.base != nil && l.number == nil {
		return errors.New("it is a delta without a number")
	}
	if l.base == nil { // a complete list removes nothing
		l.serials, l.removed = append(l.serials, l.removed...), nil
	}
	l.serials, l.removed = l.serials.sorted(), l.removed.sorted()
	return nil
}

// readEntry reads the contents of an entry.
func (l *list) readEntry(entry cryptobyte.String) error {
	var number cryptobyte.String
	if !entry.ReadASN1(&number, der.INTEGER) || !entry.SkipASN1(der.UTCTime) && !entry.SkipASN1(der.GeneralizedTime) {
		return errSyntax
	}
	n, ok := serialOf(number)
	if !ok || len(number) > 0 && number[0] >= 0x80 {
		return errors.New("it has a serial number that is negative, or has more than 20 octets")
	}
	reason, err := readReason(entry)
	if err != nil {
		return err
	}
	if reason == removeEntry {
		l.removed = append(l.removed, n)
	} else {
		l.serials = append(l.serials, n)
	}
	l.entries++
	return nil
}

// readReason reads the extensions of an entry, and returns its reason code; 0 if it has none.
func readReason(extensions cryptobyte.String) (reason int, err error) {
	if extensions.Empty() {
		return 0, nil
	}
	var all cryptobyte.String
	if !extensions.ReadASN1(&all, der.SEQUENCE) || !extensions.Empty() {
		return 0, errSyntax
	}
	for !all.Empty() {
		var one, value cryptobyte.String
		var id asn1.ObjectIdentifier
		var critical bool
		if !all.ReadASN1(&one, der.SEQUENCE) || !one.ReadASN1ObjectIdentifier(&id) ||
			one.PeekASN1Tag(der.BOOLEAN) && !one.ReadASN1Boolean(&critical) ||
			!one.ReadASN1(&value, der.OCTET_STRING) || !one.Empty() {
			return 0, errSyntax
		}
		switch {
		case id.Equal(oidReason):
			if !value.ReadASN1Enum(&reason) || !value.Empty() {
				return 0, errSyntax
			}
		case id.Equal(oidInvalid):
		case critical:
			// One of them marks the entry as another issuer's (RFC 5280 §5.3.3).
			return 0, fmt.Errorf("an entry has a critical extension that is not known here, %s", id)
		}
	}
	return reason, nil
}

// names reports whether a list may be of an issuer, by its own statement.
func (l *list) names(issuer *x509.Certificate) bool {
	return bytes.Equal(l.issuer, issuer.RawSubject) &&
		(l.keyID == nil || issuer.SubjectKeyId == nil || bytes.Equal(l.keyID, issuer.SubjectKeyId))
}

// verify verifies an issuer's signature of the list.
func (l *list) verify(issuer *x509.Certificate) error {
	switch {
	case !issuer.BasicConstraintsValid, !issuer.IsCA:
		return errors.New("its issuer is no certificate authority")
	case issuer.KeyUsage != 0 && issuer.KeyUsage&x509.KeyUsageCRLSign == 0:
		return errors.New("the key of its issuer is not for lists")
	}
	if !l.isSignedBy(issuer.PublicKey) {
		return errors.New("its signature is not that of its issuer")
	}
	return nil
}

// isSignedBy reports whether a key has signed the list.
func (l *list) isSignedBy(key crypto.PublicKey) bool {
	h := hashes[l.algorithm]
	switch key := key.(type) {
	case *rsa.PublicKey:
		switch l.algorithm {
		case x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA:
			return rsa.VerifyPKCS1v15(key, h, l.signed, l.signature) == nil
		case x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS:
			return rsa.VerifyPSS(key, h, l.signed, l.signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
		}
	case *ecdsa.PublicKey:
		switch l.algorithm {
		case x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512:
			return ecdsa.VerifyASN1(key, l.signed, l.signature)
		}
	case ed25519.PublicKey:
		return l.algorithm == x509.PureEd25519 && ed25519.Verify(key, l.signed, l.signature)
	}
	return false
}

// older reports whether the list is older than another one of the same issuer and scope.
func (l *list) older(other *list) bool {
	if l.number != nil && other.number != nil && l.number.Cmp(other.number) != 0 {
		return l.number.Cmp(other.number) < 0
	}
	return l.from.Before(other.from)
}

// replaces reports whether the list may take the place of another one: it is of an issuer of the same name, and of the
// same kind and scope.
func (l *list) replaces(old *list) bool {
	return bytes.Equal(l.issuer, old.issuer) && (l.base == nil) == (old.base == nil) && l.scope.raw == old.scope.raw
}

func (l *list) isReplacedBy(other *list) bool { return other.replaces(l) }

// sameKey reports whether two lists are signed by the same key: an issuer has two while it changes its key.
func (l *list) sameKey(other *list) bool {
	return bytes.Equal(l.authority.RawSubjectPublicKeyInfo, other.authority.RawSubjectPublicKeyInfo)
}

// repeats reports whether it is the same list.
func (l *list) repeats(other *list) bool {
	return bytes.Equal(l.signature, other.signature) && bytes.Equal(l.issuer, other.issuer)
}
