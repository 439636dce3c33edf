// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net/http"
	"slices"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// listIssuers answers with the issuers of tokens of the configuration that is in force.
func listIssuers(a *Admin, r *http.Request) (any, error) {
	only, list := r.URL.Query().Get("partner"), adminapi.IssuerList{Issuers: []adminapi.Issuer{}}
	for _, p := range a.Partners() {
		if only != "" && only != p.Name {
			continue
		}
		for _, v := range p.Issuers {
			h := v.Health()
			one := adminapi.Issuer{OfAgent: titleOf(p), Partner: p.Name, Issuer: h.Issuer, Keys: h.Keys,
				Fetched: h.Fetched}
			if h.Err != nil {
				one.Error = h.Err.Error()
			}
			if !slices.Contains(list.Issuers, one) { // mounts of a Partner share keys
				list.Issuers = append(list.Issuers, one)
			}
		}
	}
	return list, nil
}
