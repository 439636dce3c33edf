// SPDX-License-Identifier: Apache-2.0

package adminapi

import "time"

// The routes of the certificates that a gateway obtains for its Partners.
const (
	Certificates       = "/aip/certificates"        // GET: CertificateList
	RenewCertificates  = "/aip/certificates/renew"  // POST: CertificatesOf
	RetireCertificates = "/aip/certificates/retire" // POST: CertificatesOf
)

// Certificate is a certificate of a Partner, or that there is none yet.
type Certificate struct {
	Partner  string    `json:"partner"`
	Usage    string    `json:"usage,omitempty"` // serverAuth, clientAuth, or both; missing for no certificate
	Serial   string    `json:"serial,omitempty"`
	Names    []string  `json:"names,omitempty"`
	From     time.Time `json:"from,omitzero"`
	Until    time.Time `json:"until,omitzero"`
	Renewal  time.Time `json:"renewal,omitzero"` // when it is due
	State    string    `json:"state"`            // valid, revoked, missing, retired, inactive, or needs EAB
	Account  string    `json:"account,omitempty"`
	Error    string    `json:"error,omitempty"` // why the last attempt to order has failed
	NextTime time.Time `json:"next_attempt,omitzero"`
}

// CertificateList has the certificates of all Partners.
type CertificateList struct {
	Certificates []Certificate `json:"certificates"`
}

// CertificatesOf names a Partner, whose certificates are renewed or retired.
type CertificatesOf struct {
	Partner string `json:"partner"` // its AIC
}
