// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// maxResident is how much memory the gateway may take with its default limits, in MiB, whatever one Leader reads.
const maxResident = 400

// peak returns the most memory that the gateway has ever had, in MiB.
func peak(s *site.Site) int {
	s.T.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Cmd.Process.Pid))
	site.NoError(s.T, err)
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		s.T.Fatalf("the system does not say: %s", status)
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return kb >> 10
}

// held returns what the gateway says that callers hold of one thing.
func held(s *site.Site, what string) int64 {
	s.T.Helper()
	_, vars := s.Asked(http.MethodGet, "/debug/vars", "")
	n := gjson.GetBytes(vars, "aip").Get(what)
	if !n.Exists() {
		s.T.Fatalf("the gateway does not say how much is held of %q", what)
	}
	return n.Int()
}

// inMemory fails the test if the gateway has taken too much memory, or counts any as held though nothing is.
func inMemory(s *site.Site) {
	s.T.Helper()
	site.Eventually(s.T, "nothing is held any more", func() bool { return held(s, "memory") == 0 })
	got := peak(s)
	s.T.Logf("the gateway has had %d MiB", got)
	if got > maxResident {
		s.T.Errorf("the gateway has had %d MiB of memory, and should have had no more than %d", got, maxResident)
	}
}
