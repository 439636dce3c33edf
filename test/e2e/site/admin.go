// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/tidwall/gjson"
)

// Asked sends a request to the admin API and returns the status and the body of the answer.
func (s *Site) Asked(method, path, body string) (int, []byte) {
	s.T.Helper()
	req, err := http.NewRequestWithContext(s.T.Context(), method, s.AdminURL()+path, strings.NewReader(body))
	if err != nil {
		s.T.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	// As in Reload: the endpoint before may have been closed at that very moment.
	if method == http.MethodGet && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) {
		res, err = http.DefaultClient.Do(req)
	}
	if err != nil {
		s.T.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		s.T.Fatal(err)
	}
	return res.StatusCode, answer
}

// AdminCall sends a request to the admin API that must succeed, and decodes the answer.
func (s *Site) AdminCall(method, path, body string, into any) {
	s.T.Helper()
	status, answer := s.Asked(method, path, body)
	if err := json.Unmarshal(answer, into); status != 200 || err != nil {
		s.T.Fatalf("%s %s is answered with status %d: %s", method, path, status, answer)
	}
}

// Awake waits until the gateway has started. Its ports may be open before.
func (s *Site) Awake() {
	s.T.Helper()
	Eventually(s.T, "the gateway has started", func() bool {
		status, _ := s.Asked("GET", "/aip/endpoints", "")
		return status == 200
	})
}

// StoreCommand runs a command of caddy aip store, demands its exit status, and returns what it prints. It asks the
// gateway of the site, if live is set.
func (s *Site) StoreCommand(want int, live bool, args ...string) string {
	s.T.Helper()
	run := s.Command
	if live {
		run = s.LiveCommand
	}
	stdout, stderr := run(want, append([]string{"store"}, args...)...)
	return stdout + stderr
}

// Health returns whether a gateway is ready.
func (s *Site) Health(t *testing.T) (h adminapi.Health) {
	t.Helper()
	res, err := http.Get(s.AdminURL() + adminapi.HealthReady)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&h); err != nil {
		t.Fatal(err)
	}
	return h
}

// Doctor examines a configuration, and returns the status of the command and what it has found.
func (s *Site) Doctor(c Config, more ...string) (status int, found []string) {
	s.T.Helper()
	status, stdout, stderr := s.Caddy(append([]string{"aip", "doctor", "--config", s.Write(c), "--json"}, more...)...)
	if strings.Contains(stderr, `"level"`) {
		s.T.Errorf("it logs: %s", stderr)
	}
	var out struct {
		Findings []struct{ Check, Status, Text string }
	}
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		s.T.Fatalf("%v: %s", err, stdout)
	}
	for _, f := range out.Findings {
		found = append(found, f.Status+" "+f.Check+": "+f.Text)
	}
	return status, found
}

// TasksCommand runs a command of caddy aip tasks, demands its exit status, and returns what it prints.
func (s *Site) TasksCommand(want int, args ...string) string {
	s.T.Helper()
	stdout, stderr := s.LiveCommand(want, append([]string{"tasks"}, args...)...)
	return stdout + stderr
}

// Listed returns the entries of a list of the admin API, of all pages.
func (s *Site) Listed(list string, query url.Values) (all []gjson.Result) {
	s.T.Helper()
	for {
		status, body := s.Asked(http.MethodGet, "/aip/"+list+"?"+query.Encode(), "")
		if status != http.StatusOK {
			s.T.Fatalf("the admin API answers %d %s", status, body)
		}
		all = append(all, gjson.GetBytes(body, list).Array()...)
		next := gjson.GetBytes(body, "next").String()
		if next == "" {
			return all
		}
		query.Set("after", next)
	}
}

// ListedTasks returns the tasks that the admin API lists, with their states.
func (s *Site) ListedTasks(query url.Values) (all []string) {
	s.T.Helper()
	for _, one := range s.Listed("tasks", query) {
		all = append(all, one.Get("task").String()+" "+one.Get("state").String())
	}
	return all
}

// ListedTasksSorted is ListedTasks of all tasks, by their ids.
func (s *Site) ListedTasksSorted() []string {
	s.T.Helper()
	list := s.ListedTasks(url.Values{})
	slices.Sort(list)
	return list
}
