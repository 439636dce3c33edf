// SPDX-License-Identifier: Apache-2.0

package auntransport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"testing"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// TestUnreachable: the reason for no connection names the thing for an operator to check.
func TestUnreachable(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want upstream.Reason
	}{
		{errors.New("no such host"), upstream.Unreachable},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, upstream.CertificateUntrusted},
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Host: "a"}}, upstream.CertificateUntrusted},
		{aun.Errorf(codes.CertificateInvalid, "The certificate is not accepted"), upstream.IdentityRefused},
		{aun.Errorf(codes.SignatureInvalid, "The signature is invalid"), upstream.IdentityRefused},
		{aun.Errorf(codes.LimitExceeded, "Too many"), upstream.Unreachable},
	} {
		err := unreachable(t.Context(), fmt.Errorf("aun: no login: %w", tc.err))
		if got := upstream.ReasonOf(err); got != tc.want {
			t.Errorf("%v: %v, want %v", tc.err, got, tc.want)
		}
	}
}
