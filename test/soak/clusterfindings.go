// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/leader"
)

// findings are the failures of calls, and what is wrong. Its methods may be called by any number of goroutines at once.
type findings struct {
	mu       sync.Mutex
	calls    int
	failures map[failure]int
	wrong    []string
}

// failure is a kind of failure, during a trouble.
type failure struct{ kind, during string }

// The kinds of failures that a caller may see.
const (
	unavailable = "STORE_UNAVAILABLE"
	refused     = "not connected"
	cut         = "cut off"
)

// shown is how many findings are printed when they are made.
const shown = 20

func newFindings() *findings { return &findings{failures: make(map[failure]int)} }

// complain notes that something is wrong.
func (f *findings) complain(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := fmt.Sprintf("%s: %s", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
	f.wrong = append(f.wrong, found)
	if len(f.wrong) <= shown {
		fmt.Println("FOUND", found)
	}
}

// note takes note of a call at a gateway. It complains of a failure that nothing excuses.
func (c *cluster) note(n *node, began time.Time, err error, what string) {
	now := time.Now()
	c.mu.Lock()
	c.calls++
	c.mu.Unlock()
	if err == nil {
		return
	}
	here, anywhere := n.trouble(began, now), c.around.trouble(began, now)
	kind := kindOf(err)
	during := anywhere.name
	if here.name != "" {
		during = here.name + ", at the same gateway"
	}
	c.mu.Lock()
	c.failures[failure{kind, during}]++
	c.mu.Unlock()
	switch {
	case kind == unavailable && during != "", kind == refused && here.gone, kind == cut && here.killed:
		return
	}
	c.complain("%s at %s, after %v, during %q: %s: %v%s", what, n.name, now.Sub(began).Round(time.Millisecond), during,
		kind, err, data(err))
}

// kindOf returns the kind of a failure.
func kindOf(err error) string {
	var answered *leader.Error
	switch {
	case errors.As(err, &answered):
		var data struct {
			Reason string `json:"reason"`
		}
		if json.Unmarshal(answered.Data, &data) == nil && data.Reason == unavailable && answered.Message != "" {
			return unavailable
		}
		return fmt.Sprint(answered.Code)
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer"
	case strings.Contains(err.Error(), "connection refused"):
		return refused
	}
	var status *leader.StatusError
	if errors.As(err, &status) {
		return fmt.Sprint("HTTP ", status.Status)
	}
	return cut
}

func data(err error) string {
	var answered *leader.Error
	if errors.As(err, &answered) {
		return " " + string(answered.Data)
	}
	return ""
}

// verdict prints the failures, and returns what was wrong, or nil.
func (c *cluster) verdict() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Printf("\n%d calls; those that failed, and were made again:\n", c.calls)
	for _, f := range slices.SortedFunc(maps.Keys(c.failures), func(a, b failure) int {
		return strings.Compare(a.kind+a.during, b.kind+b.during)
	}) {
		fmt.Printf("%8d  %-18s during: %s\n", c.failures[f], f.kind, f.during)
	}
	if len(c.wrong) == 0 {
		return nil
	}
	path := filepath.Join(c.out, "findings.txt")
	if err := os.WriteFile(path, []byte(strings.Join(c.wrong, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	return fmt.Errorf("%d findings, all of them in %s", len(c.wrong), path)
}
