// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestCertificateExpires asks for the peer of one connection while time passes.
func TestCertificateExpires(t *testing.T) {
	expired := outcome{task.AuthenticationRequired,
		"The client certificate has expired. Open a new connection with one that is valid."}
	for _, tt := range []struct {
		name   string
		chains [][]time.Duration // validity of each certificate of each chain
		want   time.Duration
	}{
		{"the leaf first", [][]time.Duration{{time.Minute, time.Hour, 24 * time.Hour}}, time.Minute},
		{"an issuer first", [][]time.Duration{{24 * time.Hour, time.Hour, 48 * time.Hour}}, time.Hour},
		{"the longest of two chains", [][]time.Duration{{time.Hour, time.Minute}, {time.Hour, 24 * time.Hour}},
			time.Hour},
	} {
		bubble.Test(t, func(t *testing.T) {
			state := new(tls.ConnectionState)
			for _, chain := range tt.chains {
				var certs []*x509.Certificate
				for _, d := range chain {
					certs = append(certs, sign(t, &x509.Certificate{SerialNumber: big.NewInt(1),
						Subject:   pkix.Name{CommonName: aicV2},
						NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(d)}))
				}
				state.VerifiedChains = append(state.VerifiedChains, certs)
			}
			ends := time.Now().Add(tt.want)
			for _, at := range []struct {
				when string
				wait time.Duration
				want outcome
			}{
				{"at first", 0, outcome{}},
				{"at the last moment", tt.want, outcome{}},
				{"after it", tt.want + time.Nanosecond, expired},
			} {
				bubble.Pass(time.Until(ends.Add(at.wait - tt.want)))
				for _, mode := range []Mode{Required, Optional, Off} {
					peer, err := (&Guard{Mode: mode}).Check(OfConnection(state))
					want := at.want
					if mode == Off {
						want = outcome{}
					}
					if diff := cmp.Diff(want, outcomeOf(err)); diff != "" {
						t.Errorf("%s, %s, %s: error (-want +got):\n%s", tt.name, mode, at.when, diff)
					}
					if err == nil && mode != Off && !peer.Expires.Equal(ends) {
						t.Errorf("%s, %s, %s: it expires at %s, want %s", tt.name, mode, at.when, peer.Expires, ends)
					}
				}
			}
		})
	}
}
