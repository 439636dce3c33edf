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

// issuerRoutes are the routes of issuers of tokens, and their commands.
var issuerRoutes = []Route{
	{
		Path: Issuers, Method: "GET", Console: MayRead, Query: []string{"partner"},
		Commands: []Command{{
			Name:  "issuers",
			Args:  "[--partner <name>]",
			Short: "Lists the issuers of tokens of a running gateway, and their keys",
			Long: `
Lists the issuers whose tokens the Partners of a running gateway accept, how many
keys of each it has, and when it has fetched them. Keys are fetched when the first token
comes, and are kept while the issuer cannot be reached: then ERROR says why.
`,
			Example: `  $ caddy aip issuers`,
			Flags:   ofTask[:1],
		}},
	},
}
