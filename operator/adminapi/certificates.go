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

// certificateRoutes are the routes of certificates, and their commands.
var certificateRoutes = []Route{
	{
		Path: Certificates, Method: "GET",
		Commands: []Command{{
			Name:  "certificates list",
			Short: "Lists the certificates that a running gateway obtains for its Partners",
			Long: `
Lists the certificates that a running gateway obtains for its Partners, until when they
are valid, and when they are renewed. STATE is valid, revoked (by the authority),
missing, retired, inactive (the registry has disabled the agent), or needs EAB: then a
person has to get an EAB from the registry.
`,
			Example: `  $ caddy aip certificates list`,
		}},
	},
	{
		Path: RenewCertificates, Method: "POST",
		Commands: []Command{{
			Name:  "certificates renew",
			Args:  "<aic>",
			Short: "Has new certificates ordered at once",
			Long: `
Has new certificates with new keys ordered at once for a Partner, also for one that was
retired. Those that there are stay valid until they end.
`,
			Example: `  $ caddy aip certificates renew 1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4`,
		}},
	},
	{
		Path: RetireCertificates, Method: "POST",
		Commands: []Command{{
			Name:  "certificates retire",
			Args:  "<aic>",
			Short: "Revokes the certificates of a Partner, and orders no others",
			Long: `
Revokes the certificates of a Partner at its authority, as its operation ends, and orders
no others until "certificates renew" is used. The account at the authority is kept.
`,
			Example: `  $ caddy aip certificates retire 1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4`,
		}},
	},
}
