// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
)

// revocation says whether the files of the sources can be used. Whether they are signed by an issuer of Leaders is
// known when one of its Leaders has called: the state of a gateway that runs has that.
func (e *examination) revocation(r *Revocation, now time.Time) {
	const until = "; until it is there, the certificates of its issuer are refused"
	for i := range r.Sources {
		file := r.Sources[i].Location
		if !r.Sources[i].isFile() {
			continue // the gateway that runs knows whether it answers
		}
		add := func(s doctor.Status, format string, args ...any) {
			e.add(doctor.CheckRevocation, s, file, fmt.Sprintf(format, args...))
		}
		if info, err := os.Stat(caddy.NewReplacer().ReplaceAll(file, "")); err == nil && info.Size() > r.maxSize() {
			add(doctor.Broken, "it has %d bytes, and max_size is %d; set max_size", info.Size(), r.maxSize())
			continue
		}
		lists, err := certfile.ReadLists(file)
		if err != nil {
			add(doctor.Broken, "%v%s", err, until)
		}
		for _, list := range lists {
			examineList(list, now, until, add)
		}
	}
}

// examineList says until when a list counts.
func examineList(list *x509.RevocationList, now time.Time, until string, add func(doctor.Status, string, ...any)) {
	switch {
	case list.NextUpdate.IsZero():
		add(doctor.Broken, "the list of %s does not say when the next one is there, and is not used; have its issuer "+
			"say so%s", list.Issuer, until)
	case now.After(list.NextUpdate):
		add(doctor.Broken, "the list of %s has ended on %s; get the next one%s", list.Issuer,
			list.NextUpdate.Local().Format(time.RFC3339), until)
	default:
		add(doctor.OK, "%d certificates of %s are revoked; the next list must be there on %s",
			len(list.RevokedCertificateEntries), list.Issuer, list.NextUpdate.Local().Format(time.RFC3339))
	}
}

// maxSize returns the size of the largest list, in bytes.
func (r *Revocation) maxSize() int64 {
	if r.MaxSize == 0 {
		return 16 << 20
	}
	return r.MaxSize
}
