// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// obtained are the certificates obtained by a gateway for its Partners.
var obtained = &listing[adminapi.CertificateList, adminapi.Certificate]{
	path:    adminapi.Certificates,
	entries: func(l *adminapi.CertificateList) ([]adminapi.Certificate, string) { return l.Certificates, "" },
	header:  "PARTNER\tUSAGE\tSTATE\tUNTIL\tRENEWAL\tNAMES\tERROR",
	row: func(c *adminapi.Certificate) string {
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", clean(c.Partner), clean(orDash(c.Usage)), clean(c.State),
			utc(c.Until), utc(c.Renewal), clean(orDash(strings.Join(c.Names, " "))), clean(orDash(c.Error)))
	},
	none: "No certificates are obtained: the configuration has no certificates, or no Partner with an AIC.",
}

func certificatesOf(_ *asking, _ url.Values, args []string) (any, error) {
	return adminapi.CertificatesOf{Partner: args[0]}, nil
}

func sayRenewed(c *adminapi.CertificatesOf) (string, error) {
	return "new certificates are ordered for " + clean(c.Partner), nil
}

func sayRetired(c *adminapi.CertificatesOf) (string, error) {
	return "the certificates of " + clean(c.Partner) + " are revoked, and no others are ordered", nil
}
