// SPDX-License-Identifier: Apache-2.0

package site

import (
	"crypto/tls"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
)

// AUNBehind is a gateway in front of an agent of AUN, which is behind a scripted gateway of AUN.
type AUNBehind struct {
	*Site
	*Caller
	Far *aunpeer.Gateway // the scripted gateway
	URL string           // of the scripted gateway
	CA  string           // the file with the roots of the far gateway's TLS certificate
}

// ServeBehind starts both.
func ServeBehind(t testing.TB, change ...func(*aunpeer.Gateway)) *AUNBehind {
	t.Helper()
	pki := Must(AUNPKI())(t)
	far := &aunpeer.Gateway{PKI: pki, ID: Must(pki.Issue("auth.aid.test"))(t), Agent: AUNAgent}
	for _, f := range change {
		f(far)
	}
	far.Open()
	server := httptest.NewUnstartedServer(far)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{devpkitest.KeyPair(t, Certificates(t).Server)}}
	server.StartTLS()
	t.Cleanup(func() {
		far.Close()
		server.Close()
	})
	b := &AUNBehind{Site: New(t), Far: far, CA: Certificates(t).CA.Cert}
	_, port, _ := strings.Cut(server.Listener.Addr().String(), ":")
	b.URL = "wss://localhost:" + port + "/aun"
	b.Far.URL = b.URL
	files := &AUNSite{Site: b.Site}
	files.File("own.pem", Must(Must(pki.Issue("us.aid.test"))(t).PEM())(t))
	files.File("roots.pem", pki.Root.ChainPEM())
	b.Site.Start(b.Config())
	b.Caller = LeaderOf(t, b.Site.URL())
	return b
}

// Config returns the configuration of the gateway.
func (b *AUNBehind) Config() Config {
	return Config{Handle: fmt.Sprintf(`aip_gateway {
		agent aun %s %s {
			identity %s
			roots %s
			idle_window 5s
			tls {
				ca %s
			}
		}
		timeouts {
			response 2s
		}
	}`, AUNAgent, b.URL, filepath.Join(b.Dir, "own.pem"), filepath.Join(b.Dir, "roots.pem"), b.CA)}
}
