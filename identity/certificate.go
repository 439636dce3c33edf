// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/x509"
	"encoding/asn1"
	"strings"

	"github.com/aip-gateway/aip-gateway/task"
)

// suffixV1 is the end of the common name in the v01.00 profile.
const suffixV1 = ".acps.pub"

// FromCertificate returns the AIC in a certificate. It knows two profiles:
//
//   - v01.00: the common name is <AIC>.acps.pub, and there is a URI name agent://<AIC>;
//   - v02.00 and later: the common name is the AIC, and there may be a URI name acps://<AIC>.
//
// Every agent:// and acps:// name must equal the common name. Other names are ignored. The certificate itself must have
// been verified by TLS. An error is a *task.Error of kind AuthenticationRequired.
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
		return "", refuse(
			"The common name of the client certificate ends in .acps.pub, but the name agent://<AIC> is missing.")
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
