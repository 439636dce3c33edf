// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// profileSeconds is how long a profile takes.
const profileSeconds = 5

// budget says what the gateway's CPU time of a start is used for, by a profile under load.
func budget(ctx context.Context, o settings) error {
	for _, w := range []wire{plain, mtls1} {
		if err := budgetOf(ctx, o, w); err != nil {
			return err
		}
	}
	return nil
}

func budgetOf(ctx context.Context, o settings, w wire) error {
	s, err := newSite(ctx, o.caddy, siteConfig{})
	if err != nil {
		return err
	}
	defer s.close()
	t := aipStart(s, w)
	if _, err := load(ctx, t, o.conns, o.round/2); err != nil { // warm up
		return err
	}
	dir := s.dir
	if o.profile != "" {
		dir = o.profile
	}
	path := filepath.Join(dir, strings.ReplaceAll(strings.ReplaceAll(w.name, "/", ""), ", ", "-")+".pprof")
	loaded := make(chan error, 1)
	var r result
	go func() {
		var err error
		r, err = (&way{target: t, process: s.gateway}).measure(ctx, o.conns, (profileSeconds+1)*time.Second)
		loaded <- err
	}()
	err = s.writeProfile(ctx, path, profileSeconds)
	if err := errors.Join(err, <-loaded); err != nil {
		return err
	}
	shares, err := sharesOf(ctx, path)
	if err != nil {
		return err
	}
	results := o.table(fmt.Sprintf("CPU time of a start, %s, %s", plural(o.conns, "connection"), w.name),
		"µs each", "%")
	for _, p := range purposes {
		results.row(p.name, shares[p.name]*micros(r.cpu), 100*shares[p.name])
	}
	results.row(rest, shares[rest]*micros(r.cpu), 100*shares[rest])
	results.row("in all", micros(r.cpu), 100)
	return nil
}

// purposes are what CPU time is used for. A sample belongs to the first frame, from the innermost outwards, that one of
// them names; the first one that names it counts. So a system call belongs to its caller.
var purposes = []struct {
	name   string
	frames []string // parts of the names of functions
}{
	{"collector", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge",
		"runtime.gcStart", "runtime.gcMarkDone", "runtime.deductSweepCredit"}},
	{"fsync", []string{"syscall.Fdatasync", "SyncData", "syscall.Fsync"}},
	{"store", []string{"aip-gateway/replay", "cockroachdb/pebble"}},
	{"client: the agent's connection", []string{"aip-gateway/upstream", "net/http.(*persistConn)",
		"net/http.(*Transport)"}},
	{"parse", []string{"aip-gateway/jsonrpc", "tidwall/gjson"}},
	{"encode and decode", []string{"aip-gateway/translate", "aip-gateway/task."}},
	{"life-cycle", []string{"aip-gateway/partner", "aip-gateway/notify", "aip-gateway/quota"}},
	{"gateway and its front", []string{"aip-gateway/gateway", "aip-gateway/identity", "aip-gateway/sseproxy",
		"aip-gateway/caddymodule"}},
	{"TLS", []string{"crypto/tls"}},
	{"Caddy", []string{"caddyserver/caddy", "go.uber.org/zap"}},
	{"server", []string{"net/http."}},
}

// rest is what no purpose names: mostly the scheduler.
const rest = "scheduler and the rest"

// sharesOf returns the share of each purpose in a profile, as go tool pprof lists its samples.
func sharesOf(ctx context.Context, path string) (map[string]float64, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "pprof", "-traces", path)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the profile cannot be read: %w", err)
	}
	shares := make(map[string]float64)
	var all float64
	var value float64
	var purpose string
	add := func() {
		shares[purpose] += value
		all += value
		value, purpose = 0, rest
	}
	purpose = rest
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "-----------+") {
			add()
			continue
		}
		fields := strings.Fields(line)
		if len(fields) == 2 {
			if d, err := time.ParseDuration(fields[0]); err == nil {
				value = d.Seconds()
			}
		}
		if len(fields) > 0 && purpose == rest {
			purpose = purposeOf(fields[len(fields)-1])
		}
	}
	add()
	if all == 0 {
		return nil, errors.New("the profile is empty")
	}
	for p := range shares {
		shares[p] /= all
	}
	return shares, lines.Err()
}

func purposeOf(function string) string {
	for _, p := range purposes {
		for _, f := range p.frames {
			if strings.Contains(function, f) {
				return p.name
			}
		}
	}
	return rest
}

// writeProfile writes what the gateway's process computes in so many seconds to a file.
func (s *site) writeProfile(ctx context.Context, path string, seconds int) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return s.profile(ctx, path, seconds)
}
