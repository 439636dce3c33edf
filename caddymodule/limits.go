// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
)

// Limits bound what callers may use.
type Limits struct {
	// The largest size of a request's body, in bytes. Default: 20 MiB, or half of memory_per_leader if that is less, but
	// at least 4 MiB.
	Body int `json:"body,omitempty"`

	// How deep objects and arrays may be nested in a request. Default: 64.
	Depth int `json:"depth,omitempty"`

	// How many streams all Leaders may have open, in all handlers together. Default: 20000.
	Streams int `json:"streams,omitempty"`

	// How many streams one Leader may have open. Default: 1000.
	StreamsPerLeader int `json:"streams_per_leader,omitempty"`

	// How many unfinished tasks one Leader may have at this Partner. Default: 100000.
	TasksPerLeader int `json:"tasks_per_leader,omitempty"`

	// How many bytes of memory the requests, answers, streams and running tasks of all Leaders may use, in all handlers
	// together. Default: 192 MiB, or a quarter of the process's memory limit (GOMEMLIMIT) if that is less.
	Memory int64 `json:"memory,omitempty"`

	// How many of these bytes one Leader may use. Default: a quarter of memory.
	MemoryPerLeader int64 `json:"memory_per_leader,omitempty"`
}

func (l *Limits) fillDefaults() {
	conf.OrDefault(&l.Streams, 20_000)
	conf.OrDefault(&l.StreamsPerLeader, 1000)
	conf.OrDefault(&l.Depth, jsonrpc.DefaultDepth)
	conf.OrDefault(&l.TasksPerLeader, 100_000)
	conf.OrDefault(&l.Memory, defaultMemory())
	conf.OrDefault(&l.Body, defaultBody(cmp.Or(l.MemoryPerLeader, l.Memory/4)))
	conf.OrDefault(&l.MemoryPerLeader, max(l.Memory/4, min(l.Memory, minMemory(l.Body))))
}

// leastBody is the least that a body may have by default, in bytes.
const leastBody = 4 << 20

// defaultBody returns the default of body, in bytes, where one Leader may use some memory.
func defaultBody(memoryPerLeader int64) int {
	return int(max(leastBody, min(jsonrpc.DefaultBytes, memoryPerLeader/2-1)))
}

// defaultMemory returns the default of memory, in bytes. Caddy sets the process's limit to that of the cgroup or the
// system.
func defaultMemory() int64 { return min(192<<20, debug.SetMemoryLimit(-1)/4) }

// minMemory returns the least memory, in bytes, that a Leader needs for requests of up to a size: a request is held
// twice while it is decoded.
func minMemory(body int) int64 { return 2 * (int64(body) + 1) }

func (l *Limits) check() error {
	if err := cmp.Or(
		conf.NotNegativeNumber("body", l.Body), conf.NotNegativeNumber("depth", l.Depth),
		conf.NotNegativeNumber("streams", l.Streams),
		conf.NotNegativeNumber("streams_per_leader", l.StreamsPerLeader),
		conf.NotNegativeNumber("tasks_per_leader", l.TasksPerLeader), conf.NotNegativeNumber("memory", l.Memory),
		conf.NotNegativeNumber("memory_per_leader", l.MemoryPerLeader),
	); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	switch least := minMemory(l.Body); {
	case l.MemoryPerLeader < least: // or a request of the size of body could not be read
		return fmt.Errorf("limits: memory_per_leader is %d bytes, but must be at least %d, twice the size of body",
			l.MemoryPerLeader, least)
	case l.Memory < 2*l.MemoryPerLeader: // or one Leader could use all of it
		return fmt.Errorf("limits: memory is %d bytes, but must be at least %d, twice memory_per_leader",
			l.Memory, 2*l.MemoryPerLeader)
	}
	return nil
}
