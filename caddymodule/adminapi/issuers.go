// SPDX-License-Identifier: Apache-2.0

package adminapi

import "time"

// Issuers is the route of the issuers of tokens.
const Issuers = "/aip/issuers" // GET: IssuerList

// Issuer is an issuer whose tokens a Partner accepts, and its keys, as the gateway has them.
type Issuer struct {
	OfAgent

	Partner string    `json:"partner"`
	Issuer  string    `json:"issuer"`
	Keys    int       `json:"keys"`             // 0 before the first token comes
	Fetched time.Time `json:"fetched,omitzero"` // missing for never
	Error   string    `json:"error,omitempty"`  // of the last fetch
}

// IssuerList has the issuers of all Partners.
type IssuerList struct {
	Issuers []Issuer `json:"issuers"`
}
