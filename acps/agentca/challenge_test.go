// SPDX-License-Identifier: Apache-2.0

package agentca_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/acps/agentca/catest"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestChallenge obtains the certificate of an agent of ACPs v01.00, by a file that the authority gets from any of the
// gateways. While the authority cannot get it, there is none.
func TestChallenge(t *testing.T) {
	const aic = "10001000011K912345E789ABCDEF2353"
	bubble.Test(t, func(t *testing.T) {
		ca, s, log := catest.New(t), newStorage(), new(asynctest.Buffer)
		ca.Add(aic, catest.Agent{Lifetime: 30 * 24 * time.Hour})
		ca.AskForFiles(func(string, string) ([]byte, error) { return nil, errors.New("connection refused") })
		k := agentca.New(agentca.Config{AIC: aic, Storage: s, Challenges: s,
			Client: &agentca.Client{Directory: ca.Directory(), HTTP: &http.Client{Transport: ca}},
			Log:    slog.New(slog.NewTextHandler(log, nil))})
		k.Start()
		t.Cleanup(k.Close)
		pass(30 * time.Second)
		if err := k.Status().Err; err == nil || !strings.Contains(err.Error(), "the authorization is invalid") {
			t.Errorf("a file that the authority cannot get: %v", err)
		}
		asked := ""
		ca.AskForFiles(func(aic, token string) ([]byte, error) {
			asked = token
			return agentca.Challenge(t.Context(), s, aic, token)
		})
		pass(2 * time.Minute)
		pair := k.Certificate(agentca.ServerAuth)
		if pair == nil || k.Certificate(agentca.ClientAuth) != pair || pair.Leaf.Subject.CommonName != aic+".acps.pub" {
			t.Fatalf("the status is %+v", k.Status())
		}
		if _, err := agentca.Challenge(t.Context(), s, aic, asked); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file is still there: %v", err)
		}
		pass(21 * 24 * time.Hour)
		if next := k.Certificate(agentca.ClientAuth); next.Leaf.Equal(pair.Leaf) {
			t.Error("the certificate is not renewed")
		}
		w := &world{ca: ca}
		w.want(t, catest.Counts{Accounts: 1, Orders: 3, Issued: map[string]int{"": 2}})
	})
}
