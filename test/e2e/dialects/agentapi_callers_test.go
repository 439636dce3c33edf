// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// agentAPISite is a site without certificates that speaks the Agent API, beside the one with certificates. Both are
// before the sample agent at an address.
func agentAPISite(t *testing.T, agent string) (s *site.Site, c site.Config, mount string) {
	t.Helper()
	port := site.FreePort(t)
	s = site.New(t)
	c = site.Config{
		Handle: "aip_gateway a2a/legacy http://" + agent + "/ {\ncallers aip agentapi\n}",
		OtherSites: fmt.Sprintf("http://127.0.0.1:%d {\n\taip_gateway /agents/one* a2a/legacy http://%s {\n"+
			"\t\tcallers agentapi aip\n\t\tidentity off\n\t}\n}\n", port, agent),
	}
	return s, c, fmt.Sprintf("http://127.0.0.1:%d/agents/one", port)
}

// TestAgentAPICallersCrash kills the gateway in the middle of a turn. The session is busy until the turn has been
// resumed and has ended, and then takes the next message. The agent stands still meanwhile, so that the turn does not
// end while the gateway is away.
func TestAgentAPICallersCrash(t *testing.T) {
	t.Parallel()
	agents, address := site.SampleAgent(t)
	s, c, mount := agentAPISite(t, address)
	s.Start(c)
	a := newAgentAPIOf(t, mount)
	session, id, pieces := leader.NewID("session"), "", 0
	var goOn func()
	err := a.follow(site.Within(t, site.Patience), session, "stream 80 50", func(e view) bool {
		if e.ID != "" {
			id = e.ID
		}
		if e.Kind == "piece" {
			if pieces++; pieces == 3 {
				goOn = agents.Pause(t)
				s.Kill()
			}
		}
		return true
	})
	if err == nil || id == "" {
		t.Fatalf("the stream of the task %q was not cut: %v", id, err)
	}
	s.Start(c)
	var refused int
	site.Eventually(t, "the session takes the next message", func() bool {
		err := a.follow(site.Within(t, site.Patience), session, "echo hi", func(view) bool { return true })
		if err != nil {
			if refused++; !strings.Contains(err.Error(), "is already in RUNNING state.") {
				t.Fatalf("the next message is answered with %v", err)
			}
			if refused == 1 {
				goOn()
			}
		}
		return err == nil
	})
	if refused == 0 {
		t.Error("the session was not busy while its turn was resumed")
	}
	if got := a.get(id); got.State != "completed" || got.Holds != site.Chunks(80) {
		t.Errorf("the task that was interrupted is got as %+v", got)
	}
}

// TestAgentAPICallersReload replaces the configuration in the middle of a stream, which cannot be resumed: it is not
// cut.
func TestAgentAPICallersReload(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s, c, mount := agentAPISite(t, agent)
	s.Start(c)
	a := newAgentAPIOf(t, mount)
	var got story
	err := a.follow(site.Within(t, site.Patience), "", "stream 30 50", func(e view) bool {
		if got.add(e); got.pieces == 2 {
			if failure := s.Reload(c); failure != "" {
				t.Error(failure)
			}
		}
		return true
	})
	if err != nil || got.State != "completed" || got.Holds != site.Chunks(30) {
		t.Errorf("the stream shows %+v, and ends with %v", got, err)
	}
}

// TestAgentAPICallers: two callers with the same user_id and session_id have nothing in common.
func TestAgentAPICallers(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s, c, _ := agentAPISite(t, agent)
	s.Start(c)
	one, two := agentAPIOf(t, s.URL(), site.Certificates(t).Leader), agentAPIOf(t, s.URL(), site.Certificates(t).LeaderV1)
	asked := one.send("ask", "")
	session := one.session(asked.ID)
	two.remember("x", session)
	if got := two.send("blue", "x"); strings.Contains(got.Holds, "you said") {
		t.Errorf("another caller answers the question: %+v", got)
	}
	if got := one.send("blue", asked.ID); got.ID != asked.ID || got.Holds != "you said: blue" {
		t.Errorf("the caller answers the question: %+v", got)
	}
	asked = one.send("ask", "")
	session = one.session(asked.ID)
	for _, caller := range []*agentAPI{two, one} {
		req := agentAPIRequest(caller.mount, "", "red", `,"stream":false,"previous_response_id":"response_`+asked.ID+`_x"`)
		res, err := caller.client.Do(req.WithContext(site.Within(t, site.Patience)))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		switch v := gjson.ParseBytes(body); {
		case caller == one && (v.Get("session_id").Str != session || !strings.Contains(string(body), "you said: red")):
			t.Errorf("the question is answered by the id of its response: %s", body)
		case caller == two && v.Get("error").Type != gjson.String:
			t.Errorf("another caller names the response: %s", body)
		}
	}
	strange := agentAPIRequest(s.URL(), "", "hi", `,"stream":false`)
	res, err := agentAPIOf(t, s.URL()).client.Do(strange.WithContext(site.Within(t, site.Patience)))
	if err == nil {
		res.Body.Close()
		t.Errorf("a caller without a certificate is answered with %s", res.Status)
	}
}

// agentAPIOf returns a caller with a certificate.
func agentAPIOf(t *testing.T, mount string, files ...devpki.File) *agentAPI {
	t.Helper()
	config := &tls.Config{RootCAs: site.Trusted(t), MinVersion: tls.VersionTLS12}
	for _, f := range files {
		config.Certificates = append(config.Certificates, devpkitest.KeyPair(t, f))
	}
	a := newAgentAPIOf(t, mount)
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	a.client = &http.Client{Transport: transport}
	return a
}

// varying matches what differs from run to run in the transcript: ids and times.
var varying = regexp.MustCompile(`(response_|msg_)[-\w]+|(_at":)\d+`)

// TestAgentAPIGuide replays the conversation of the transcript.
func TestAgentAPIGuide(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s, c, mount := agentAPISite(t, agent)
	s.Start(c)
	page, err := os.ReadFile("testdata/agentapi.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```\n+```text\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 3 {
		t.Fatalf("the conversation has %d requests", len(blocks))
	}
	for _, block := range blocks {
		ctx, done := context.WithTimeout(t.Context(), site.Patience)
		res, err := http.DefaultClient.Do(site.JSONRequest("POST", mount+"/process", block[1]).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		done()
		if err != nil {
			t.Fatal(err)
		}
		want := varying.ReplaceAllString(strings.TrimSpace(block[2]), "$1$2")
		got := varying.ReplaceAllString(strings.ReplaceAll(strings.TrimSpace(string(body)), "\n\n", "\n"), "$1$2")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is answered otherwise than the page says (-page +gateway):\n%s\n%s", block[1], diff, body)
		}
	}
}
