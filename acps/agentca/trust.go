// SPDX-License-Identifier: Apache-2.0

package agentca

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/gunzip"
)

// NewHTTP returns a client of an authority, over a transport. It follows no redirects.
func NewHTTP(t *http.Transport) *http.Client {
	return &http.Client{Transport: gunzip.Transport{Transport: t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Bundle returns the roots, and the issuers below them, that the authority wants agents to trust, as PEM.
func (c *Client) Bundle(ctx context.Context) (text []byte, err error) {
	base, found := strings.CutSuffix(c.Directory, "/acme/directory")
	if !found {
		return nil, errors.New("only the directory of an authority of ACPs, <url>/acme/directory, has a bundle beside it")
	}
	got, err := c.get(ctx, base+"/ca/trust-bundle")
	if err != nil {
		return nil, err
	}
	all, err := readCertificates(got.body, maxBundle)
	if err != nil {
		return nil, err
	}
	for _, cert := range all {
		if !cert.IsCA {
			return nil, fmt.Errorf("the bundle has the certificate of %q, which is none of an authority",
				cut(cert.Subject.CommonName, 80))
		}
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
	}
	if !hasRoot(all) {
		return nil, errors.New("the bundle has no root")
	}
	return text, nil
}

// hasRoot reports whether there is a certificate that has signed itself.
func hasRoot(all []*x509.Certificate) bool {
	for _, cert := range all {
		if cert.CheckSignatureFrom(cert) == nil {
			return true
		}
	}
	return false
}
