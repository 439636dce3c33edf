// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
)

// IsSet reports whether the process's environment says how its memory is used, by GOGC or GOMEMLIMIT.
func IsSet() bool { return os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" }

// Go is the Runtime of this process. One goroutine may use it.
type Go struct{ samples [6]metrics.Sample }

// NewGo returns the Runtime of this process.
func NewGo() *Go {
	g := new(Go)
	for i, name := range [...]string{
		"/gc/heap/allocs:bytes", "/gc/heap/live:bytes", "/gc/gogc:percent",
		"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes", "/memory/classes/heap/free:bytes",
	} {
		g.samples[i].Name = name
	}
	return g
}

// Read implements Runtime.
func (g *Go) Read() Sample {
	metrics.Read(g.samples[:])
	value := func(i int) uint64 { return g.samples[i].Value.Uint64() }
	s := Sample{Allocated: value(0), Live: value(1), Percent: int(min(value(2), 1<<30))}
	if held := value(3) + value(4) + value(5); held > s.Live {
		s.Spare = held - s.Live
	}
	return s
}

// SetPercent implements Runtime.
func (*Go) SetPercent(percent int) { debug.SetGCPercent(percent) }

// Release implements Runtime.
func (*Go) Release() { debug.FreeOSMemory() }
