// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// measured is what was measured in one phase.
type measured struct {
	began time.Time
	took  time.Duration

	mu        sync.Mutex
	latencies map[string][]time.Duration // by kind, of requests that no fault of the agent or the disk was meant for
	requests  int
	refused   int // of these, the requests that were not executed and were made again
	outage    time.Duration
	working   time.Time // when the last one was carried out
	memory    []float64 // bytes, each second
	files     []float64

	before, after map[string]float64 // counters of the gateway
}

// rose returns by how much a counter of the gateway has risen.
func (m *measured) rose(counter string) float64 { return m.after[counter] - m.before[counter] }

// The kinds of requests. measured keeps the latencies of each kind separately.
const (
	starts   = "start"
	commands = "other command"
	gets     = "get"
	streams  = "first event of a stream"
	webhooks = "setting of a webhook"
)

// kinds are in the order in which they are printed.
var kinds = []string{starts, commands, gets, streams, webhooks}

// note takes note of a request. clean says that no fault was meant for it.
func (m *measured) note(kind string, began time.Time, err error, clean bool) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	if err != nil {
		m.refused++
		return
	}
	if !m.working.IsZero() {
		m.outage = max(m.outage, now.Sub(m.working))
	}
	m.working = now
	if clean {
		if m.latencies == nil {
			m.latencies = make(map[string][]time.Duration)
		}
		m.latencies[kind] = append(m.latencies[kind], now.Sub(began))
	}
}

// watch measures what the gateway's process takes, each second.
func (m *measured) watch(ctx context.Context, s *site) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		memory, files, err := taken(s.gateway.Process.Pid)
		if err != nil {
			return // it has ended, which verdict says
		}
		m.mu.Lock()
		m.memory, m.files = append(m.memory, memory), append(m.files, files)
		m.mu.Unlock()
	}
}

// taken returns the memory that a process holds, in bytes, and the number of files that it has open.
func taken(pid int) (memory, files float64, err error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0, 0, errors.New("the process has ended")
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, 0, err
	}
	dir, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return float64(pages) * float64(os.Getpagesize()), float64(len(dir)), err
}

// percentile returns the value in milliseconds below which a share of the latencies of some kinds lies.
func (m *measured) percentile(share float64, kinds ...string) float64 {
	var latencies []time.Duration
	for _, kind := range kinds {
		latencies = append(latencies, m.latencies[kind]...)
	}
	if len(latencies) == 0 {
		return 0
	}
	slices.Sort(latencies)
	return float64(latencies[min(len(latencies)-1, int(share*float64(len(latencies))))]) / 1e6
}

// median returns the median of a part of some values: from one share of them to another.
func median(values []float64, from, to float64) float64 {
	part := slices.Sorted(slices.Values(values[int(from*float64(len(values))):int(to*float64(len(values)))]))
	if len(part) == 0 {
		return 0
	}
	return part[len(part)/2]
}

// printTable prints a table with a column for each phase.
func printTable(phases ...*measured) {
	fmt.Printf("\n%-34s %10s %10s %10s\n", "", "quiet", "faulty", "after")
	type row struct {
		name string
		get  func(m *measured) float64
	}
	rows := []row{
		{"requests a second", func(m *measured) float64 { return float64(m.requests) / m.took.Seconds() }},
		{"refused, and made again", func(m *measured) float64 { return float64(m.refused) }},
		{"p50, ms", func(m *measured) float64 { return m.percentile(0.5, kinds...) }},
		{"p99, ms", func(m *measured) float64 { return m.percentile(0.99, kinds...) }},
		{"longest time without an answer, ms", func(m *measured) float64 { return float64(m.outage) / 1e6 }},
		{"memory in the second third, MiB", func(m *measured) float64 { return median(m.memory, 1./3, 2./3) / (1 << 20) }},
		{"memory in the last third, MiB", func(m *measured) float64 { return median(m.memory, 2./3, 1) / (1 << 20) }},
		{"memory at most, MiB", func(m *measured) float64 { return slices.Max(append(m.memory, 0)) / (1 << 20) }},
		{"processors of the gateway", func(m *measured) float64 { return m.rose(processor) / m.took.Seconds() }},
		{"MiB for the journal a second", func(m *measured) float64 {
			return m.rose(journal) / m.took.Seconds() / (1 << 20)
		}},
		{"syncs of the journal a second", func(m *measured) float64 { return m.rose(syncs) / m.took.Seconds() }},
		{"of these, slower than 50 ms, %", func(m *measured) float64 {
			return 100 * (m.rose(syncs) - m.rose(fastSyncs)) / max(m.rose(syncs), 1)
		}},
		{"time in syncs, %", func(m *measured) float64 { return 100 * m.rose(syncSeconds) / m.took.Seconds() }},
		{"garbage collections a second", func(m *measured) float64 { return m.rose(collections) / m.took.Seconds() }},
		{"their pauses, ms a second", func(m *measured) float64 { return 1000 * m.rose(pauses) / m.took.Seconds() }},
		{"open files in the last third", func(m *measured) float64 { return median(m.files, 2./3, 1) }},
		{"open files at most", func(m *measured) float64 { return slices.Max(append(m.files, 0)) }},
	}
	for _, kind := range kinds {
		rows = append(rows, row{"p99 of " + kind + ", ms", func(m *measured) float64 { return m.percentile(0.99, kind) }})
	}
	for _, row := range rows {
		fmt.Printf("%-34s", row.name)
		for _, m := range phases {
			fmt.Printf(" %10.1f", row.get(m))
		}
		fmt.Println()
	}
}

// What the memory and the open files of a process may rise by without being wrong: the caches fill, and connections
// are kept for a while.
const (
	memorySlack = 200 << 20
	filesSlack  = 300
)

// judge compares the phases.
func judge(quiet, faulty, after *measured, s settings) error {
	var errs []error
	ratio := s.ratio
	fmt.Println()
	for _, share := range []float64{0.5, 0.99} {
		without, with := quiet.percentile(share, kinds...), faulty.percentile(share, kinds...)
		got := with / without
		fmt.Printf("p%.0f with faults to without: %.2f\n", 100*share, got)
		switch {
		case ratio == 0:
		case without == 0 || with == 0:
			errs = append(errs, fmt.Errorf("p%.0f was not measured in the quiet run, or not with faults", 100*share))
		case got > ratio:
			errs = append(errs, fmt.Errorf("p%.0f is %.2f times that of the quiet run, and may be %.2f times",
				100*share, got, ratio))
		}
	}
	for _, flat := range []struct {
		name        string
		first, last float64
		slack       float64
	}{
		{"the memory", median(faulty.memory, 1./3, 2./3), median(faulty.memory, 2./3, 1), memorySlack},
		{"the number of open files", median(quiet.files, 0, 1), median(after.files, 0.5, 1), filesSlack},
	} {
		if flat.last > flat.first+flat.slack {
			errs = append(errs, fmt.Errorf("%s has risen from %.0f to %.0f", flat.name, flat.first, flat.last))
		}
	}
	if most := slices.Max(append(faulty.memory, 0)) / (1 << 20); s.memory > 0 && most > float64(s.memory) {
		errs = append(errs, fmt.Errorf("the gateway held %.0f MiB, and may hold %d", most, s.memory))
	}
	if after.refused > 0 {
		errs = append(errs, fmt.Errorf("%d requests were refused after the faults", after.refused))
	}
	return errors.Join(errs...)
}
