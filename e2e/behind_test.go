// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestPartnerBehindTLS has a gateway command a Partner as its Leader: over mTLS, with the certificate that it was
// given, and under the AIC in it.
func TestPartnerBehindTLS(t *testing.T) {
	agent := newFakeAgent(t, nil)
	pki := certificates(t)
	front := freePort(t)
	site := func(client string) string {
		return fmt.Sprintf(`https://localhost:%d {
	tls %s %s {
		client_auth {
			mode require_and_verify
			trust_pool file %s
		}
	}
	aip_gateway {
		agent aip %%s {
			tls {
				ca %s
				%s
			}
		}
		aic %s
	}
}`, front, pki.Server.Cert, pki.Server.Key, pki.CA.Cert, pki.CA.Cert, client, pki.Leader.AIC)
	}
	s := newSite(t)
	config := config{
		handle: "aip_gateway a2a/legacy " + agent.url + " {\n\t\tcallers aip a2a\n\t\tcompletion confirm\n\t}",
	}
	setSite := func(client string) { config.otherSites = fmt.Sprintf(site(client), s.url()) }

	client := fmt.Sprintf("client_cert %s %s\n", pki.Leader.Cert, pki.Leader.Key)
	setSite(client + fmt.Sprintf("aic %s", pki.Server.AIC))
	s.start(config)
	c := leaderOf(t, fmt.Sprintf("https://localhost:%d", front))
	got := c.start("t1", "hello")
	if got.Status.State != task.AwaitingCompletion || len(got.Products) != 1 {
		t.Errorf("start answered %+v", got)
	}
	if got := c.goOn("t1", "more"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("continue answered %+v", got)
	}
	c.complete("t1")
	// The Partner behind has a task of its own, for the gateway, and gets the Leader's command.
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted(t), Certificates: []tls.Certificate{keyPair(t, pki.Leader)}},
	}
	defer transport.CloseIdleConnections()
	web := &http.Client{Transport: transport, Timeout: patience}
	eventually(t, "the Partner behind has completed its task", func() bool {
		res, err := web.Get(s.url() + "/tasks")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var list struct {
			Tasks []struct {
				ID     string
				Status struct{ State string }
			}
		}
		if err := json.NewDecoder(res.Body).Decode(&list); err != nil || len(list.Tasks) != 1 || list.Tasks[0].ID == "t1" {
			t.Fatalf("it has the tasks %+v, %v", list.Tasks, err)
		}
		return list.Tasks[0].Status.State == "TASK_STATE_COMPLETED"
	})

	for id, tls := range map[string]string{
		"without a certificate":              "server_name localhost",
		"where another Partner is meant":     client + "aic " + string(pki.LeaderV1.AIC),
		"where its name is meant, too":       client + "server_name x.example\nverify both\naic " + string(pki.Server.AIC),
		"where only the name of it is meant": client + "server_name x.example\nverify name",
	} {
		setSite(tls)
		if bad := s.reload(config); bad != "" {
			t.Fatal(bad)
		}
		if diff := cmp.Diff(task.Failed, c.start(id, "hello").Status.State); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}
