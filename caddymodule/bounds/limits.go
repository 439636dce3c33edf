// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
)

// Limits bound what callers may use.
type Limits struct {
	// Bytes of a request. Default: 20 MiB, or an eighth of memory if less, at least 4 MiB.
	Body int `json:"body,omitempty"`

	// Open streams, of all Leaders and handlers. Default: 20000.
	Streams int `json:"streams,omitempty"`

	// The same, of one Leader. Default: 1000.
	StreamsPerLeader int `json:"streams_per_leader,omitempty"`

	// Unfinished tasks of one Leader in this handler. Default: 100000.
	TasksPerLeader int `json:"tasks_per_leader,omitempty"`

	// Memory of requests, answers, streams and running tasks, of all Leaders and handlers; a Leader may use a quarter of
	// it, or twice body if more. Default: 192 MiB, or a quarter of the process's memory (GOMEMLIMIT) if less.
	Memory int64 `json:"memory,omitempty"`
}

// FillDefaults sets what the configuration leaves out.
func (l *Limits) FillDefaults() {
	conf.OrDefault(&l.Streams, 20_000)
	conf.OrDefault(&l.StreamsPerLeader, 1000)
	conf.OrDefault(&l.TasksPerLeader, 100_000)
	conf.OrDefault(&l.Memory, defaultMemory())
	conf.OrDefault(&l.Body, int(max(leastBody, min(jsonrpc.DefaultBytes, l.Memory/8-1))))
}

// leastBody is the least that a body may have by default, in bytes.
const leastBody = 4 << 20

// defaultMemory returns the default of memory, in bytes. Caddy sets the process's limit to that of the cgroup or the
// system.
func defaultMemory() int64 { return min(192<<20, debug.SetMemoryLimit(-1)/4) }

// MemoryPerLeader returns how many bytes one Leader may use: a request is held twice while it is decoded.
func (l *Limits) MemoryPerLeader() int64 {
	return max(l.Memory/4, 2*(min(int64(l.Body), greatestBody)+1))
}

// greatestBody is more than any body has, in bytes. Four times as much is a number, too.
const greatestBody = 1 << 60

// Check checks the settings.
func (l *Limits) Check() error {
	if err := cmp.Or(
		conf.NotNegativeNumber("body", l.Body), conf.NotNegativeNumber("streams", l.Streams),
		conf.NotNegativeNumber("streams_per_leader", l.StreamsPerLeader),
		conf.NotNegativeNumber("tasks_per_leader", l.TasksPerLeader), conf.NotNegativeNumber("memory", l.Memory),
	); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	if least := 2 * l.MemoryPerLeader(); l.Memory < least { // or one Leader could use all of it
		return fmt.Errorf("limits: memory is %d bytes, but must be at least %d, four times the size of body",
			l.Memory, least)
	}
	return nil
}
