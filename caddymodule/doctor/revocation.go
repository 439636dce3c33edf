// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// revocation says whether a file with lists can be used. Whether they are signed by an issuer of Leaders is
// known when one of its Leaders has called: the state of a gateway that runs has that.
func (e *examination) revocation(file string, now time.Time) {
	const until = "; until it is there, the certificates of its issuer are refused"
	add := func(s Status, format string, args ...any) {
		e.add(CheckRevocation, s, file, fmt.Sprintf(format, args...))
	}
	if info, err := os.Stat(caddy.NewReplacer().ReplaceAll(file, "")); err == nil &&
		info.Size() > revocation.DefaultMaxSize {
		add(Broken, "it has %d bytes, and a list may have %d; divide it by its scope", info.Size(),
			revocation.DefaultMaxSize)
		return
	}
	lists, err := certfile.ReadLists(file)
	if err != nil {
		add(Broken, "%v%s", err, until)
	}
	for _, list := range lists {
		examineList(list, now, until, add)
	}
}

// examineList says until when a list counts.
func examineList(list *x509.RevocationList, now time.Time, until string, add func(Status, string, ...any)) {
	switch {
	case list.NextUpdate.IsZero():
		add(Broken, "the list of %s does not say when the next one is there, and is not used; have its issuer "+
			"say so%s", list.Issuer, until)
	case now.After(list.NextUpdate):
		add(Broken, "the list of %s has ended on %s; get the next one%s", list.Issuer,
			list.NextUpdate.Local().Format(time.RFC3339), until)
	default:
		add(OK, "%d certificates of %s are revoked; the next list must be there on %s",
			len(list.RevokedCertificateEntries), list.Issuer, list.NextUpdate.Local().Format(time.RFC3339))
	}
}
