// SPDX-License-Identifier: Apache-2.0

package heap

import "runtime/metrics"

// Reader returns a function to read the heap of this process, for one goroutine.
func Reader() func() Sample {
	var samples [5]metrics.Sample
	for i, name := range [...]string{
		"/gc/heap/allocs:bytes", "/gc/heap/live:bytes",
		"/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes", "/memory/classes/heap/free:bytes",
	} {
		samples[i].Name = name
	}
	return func() Sample {
		metrics.Read(samples[:])
		value := func(i int) uint64 { return samples[i].Value.Uint64() }
		s := Sample{Allocated: value(0), Live: value(1)}
		if held := value(2) + value(3) + value(4); held > s.Live {
			s.Spare = held - s.Live
		}
		return s
	}
}
