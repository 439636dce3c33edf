// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
)

// asked sends a request to the admin API and returns the status and the body of the answer.
func (s *site) asked(method, path, body string) (int, []byte) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.adminURL()+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	// As in reload: the endpoint before may have been closed at that very moment.
	if method == http.MethodGet && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) {
		res, err = http.DefaultClient.Do(req)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, answer
}

// adminCall sends a request to the admin API that must succeed, and decodes the answer.
func (s *site) adminCall(method, path, body string, into any) {
	s.t.Helper()
	status, answer := s.asked(method, path, body)
	if err := json.Unmarshal(answer, into); status != 200 || err != nil {
		s.t.Fatalf("%s %s is answered with status %d: %s", method, path, status, answer)
	}
}

// awake waits until the gateway has started. Its ports may be open before.
func (s *site) awake() {
	s.t.Helper()
	eventually(s.t, "the gateway has started", func() bool {
		status, _ := s.asked("GET", "/aip/endpoints", "")
		return status == 200
	})
}
