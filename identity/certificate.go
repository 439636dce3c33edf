// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/task"
)

// suffixV1 ends the common name of a certificate of the v01.00 profile.
const suffixV1 = ".acps.pub"

// FromCertificate returns the AIC that a certificate is made out to. It knows two profiles:
//
//   - v01.00: the common name is <AIC>.acps.pub, and there is a URI name agent://<AIC>;
//   - v02.00 and later: the common name is the AIC, and there may be a URI name acps://<AIC>.
//
// Every agent:// and acps:// name must be that of the common name. Other names do not matter. Whether the
// certificate can be trusted is not asked here: that is TLS's to verify. An error is a *task.Error of kind
// AuthenticationRequired.
func FromCertificate(cert *x509.Certificate) (AIC, error) {
	commonNames := 0
	for _, attribute := range cert.Subject.Names {
		if attribute.Type.Equal(oidCommonName) {
			commonNames++
		}
	}
	switch {
	case cert.Subject.CommonName == "":
		return "", refuse("The client certificate has no common name, which must be the AIC.")
	case commonNames > 1:
		return "", refuse("The client certificate has more than one common name, so it names no one AIC.")
	}
	name, profileV1 := cutSuffixFold(cert.Subject.CommonName, suffixV1)
	aic, err := ParseAIC(name)
	if err != nil {
		return "", refuse("The common name of the client certificate is not an AIC: " + err.Error() + ".")
	}

	namedV1 := false
	for _, u := range cert.URIs {
		if u.Scheme != "agent" && u.Scheme != "acps" {
			continue
		}
		named, err := ParseAIC(strings.TrimPrefix(u.String(), u.Scheme+"://"))
		switch {
		case err != nil:
			return "", refuse("The " + u.Scheme + ":// name of the client certificate is not an AIC: " + err.Error() + ".")
		case named != aic:
			return "", refuse("The " + u.Scheme + ":// name of the client certificate is not the AIC of its common name.")
		}
		namedV1 = namedV1 || u.Scheme == "agent"
	}
	if profileV1 && !namedV1 {
		return "", refuse("The common name of the client certificate ends in .acps.pub, but the name agent://<AIC> is missing.")
	}
	return aic, nil
}

var oidCommonName = asn1.ObjectIdentifier{2, 5, 4, 3}

func refuse(sentence string) error {
	return &task.Error{Kind: task.AuthenticationRequired, Detail: sentence}
}

func cutSuffixFold(s, suffix string) (string, bool) {
	if n := len(s) - len(suffix); n >= 0 && strings.EqualFold(s[n:], suffix) {
		return s[:n], true
	}
	return s, false
}

// known remembers the peers of the last certificates, because one connection brings the same certificate with
// every request. A slot belongs to whoever was there last: a collision costs one reading of a certificate.
// Only verified certificates come here, so a stranger cannot push others out.
var known [1024]atomic.Pointer[knownPeer]

type knownPeer struct {
	cert *x509.Certificate
	peer Peer
}

// peerOf returns the peer that a verified certificate is made out to.
func peerOf(cert *x509.Certificate) (Peer, error) {
	slot := &known[0]
	if n := len(cert.Raw); n >= 4 {
		// A certificate ends with its signature, which is as good as random.
		slot = &known[binary.LittleEndian.Uint32(cert.Raw[n-4:])%uint32(len(known))]
	}
	if k := slot.Load(); k != nil && (k.cert == cert || bytes.Equal(k.cert.Raw, cert.Raw)) {
		return k.peer, nil
	}
	aic, err := FromCertificate(cert)
	if err != nil {
		return Peer{}, err
	}
	sum := sha256.Sum256(cert.Raw)
	peer := Peer{AIC: aic, Fingerprint: hex.EncodeToString(sum[:])}
	slot.Store(&knownPeer{cert, peer})
	return peer, nil
}
