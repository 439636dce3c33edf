// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"time"
)

// obtained says how the certificates of an agent stand that an authority gives. The authority is not asked.
func (e *examination) obtained(o *Obtained, now time.Time) {
	say := func(s Status, format string, args ...any) {
		e.add(CheckCertificate, s, o.AIC, fmt.Sprintf(format, args...))
	}
	if o.Unreadable != nil {
		say(Broken, "its certificates cannot be read: %v; correct storage, and who may read it", o.Unreadable)
		return
	}
	for _, held := range o.Status.Certificates {
		switch ends := held.Pair.Leaf.NotAfter; {
		case now.After(ends):
			say(Broken, "its certificate (%s) has ended on %s; see caddy aip certificates list", held.Usage,
				ends.Local().Format(time.RFC3339))
		default:
			say(OK, "its certificate (%s) is valid until %s", held.Usage, ends.Local().Format(time.RFC3339))
		}
	}
	switch {
	case o.Status.Retired:
		say(Warning, "its certificates were retired; run caddy aip certificates renew %s if they are needed", o.AIC)
		return
	case len(o.Status.Certificates) == 0:
		say(Warning, "it has no certificate yet; the gateway orders one when it runs")
	}
	if o.NoCredential != nil {
		say(Broken, "there is no account at the authority, and no credential for one: %v; get one (EAB) from the "+
			"registry, and name it by eab in certificates, or set the option registry", o.NoCredential)
	}
}
