// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
)

// TestWarnOfOrphans: a certificate among the roots whose issuer is not there is named, whether or not there is a root.
func TestWarnOfOrphans(t *testing.T) {
	pki, other := auntest.NewPKI(t), auntest.NewPKI(t)
	issuer := bytes.TrimPrefix(pki.RootsPEM(), pki.RootPEM())
	for name, c := range map[string]struct {
		pem  []byte
		want int
	}{
		"a root":                             {pki.RootPEM(), 0},
		"a root and an issuer":               {pki.RootsPEM(), 0},
		"an issuer":                          {issuer, 1},
		"an issuer and the root of another":  {append(issuer[:len(issuer):len(issuer)], other.RootPEM()...), 1},
		"an issuer and everything of others": {append(other.RootsPEM(), issuer...), 1},
	} {
		roots, err := aun.NewRoots(c.pem)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		WarnOfOrphans(slog.New(slog.NewTextHandler(&out, nil)), roots)
		if n := strings.Count(out.String(), "leads to no root"); n != c.want {
			t.Errorf("%s: %d warnings, want %d: %s", name, n, c.want, out.String())
		}
	}
	WarnOfOrphans(slog.New(slog.DiscardHandler), nil)
}
