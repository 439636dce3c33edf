// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
)

// maxResident is how much memory the gateway may take with its default limits, in MiB, whatever one Leader reads.
const maxResident = 400

// peak returns the most memory that the gateway has ever had, in MiB.
func (s *Site) peak() int {
	s.T.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Cmd.Process.Pid))
	if err != nil {
		s.T.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		s.T.Fatalf("the system does not say: %s", status)
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return kb >> 10
}

// Held returns what the gateway says that callers hold of one thing.
func (s *Site) Held(what string) int64 {
	s.T.Helper()
	res, err := http.Get(s.AdminURL() + "/debug/vars")
	if err != nil {
		s.T.Fatal(err)
	}
	defer res.Body.Close()
	var vars struct {
		AIP map[string]int64 `json:"aip"`
	}
	if err := json.NewDecoder(res.Body).Decode(&vars); err != nil {
		s.T.Fatal(err)
	}
	n, ok := vars.AIP[what]
	if !ok {
		s.T.Fatalf("the gateway does not say how much is held of %q", what)
	}
	return n
}

// nothingHeld waits until the gateway counts no memory as held.
func (s *Site) nothingHeld() {
	s.T.Helper()
	Eventually(s.T, "nothing is held any more", func() bool { return s.Held("memory") == 0 })
}

// InMemory fails the test if the gateway has taken too much memory, or counts any as held though nothing is.
func (s *Site) InMemory() {
	s.T.Helper()
	s.nothingHeld()
	got := s.peak()
	s.T.Logf("the gateway has had %d MiB", got)
	if got > maxResident {
		s.T.Errorf("the gateway has had %d MiB of memory, and should have had no more than %d", got, maxResident)
	}
}
