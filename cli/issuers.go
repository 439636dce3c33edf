// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// issuers are the issuers of callers' tokens of all Partners.
var issuers = &listing[adminapi.IssuerList, adminapi.Issuer]{
	path:    adminapi.Issuers,
	entries: func(l *adminapi.IssuerList) ([]adminapi.Issuer, string) { return l.Issuers, "" },
	header:  "ISSUER\tKEYS\tFETCHED\tAGENT\tERROR",
	row: func(i *adminapi.Issuer) string {
		return fmt.Sprintf("%s\t%d\t%s\t%s\t%s", clean(i.Issuer), i.Keys, utc(i.Fetched),
			agentOf(i.OfAgent, i.Partner), clean(orDash(i.Error)))
	},
	none: "No Partner accepts tokens.",
}
