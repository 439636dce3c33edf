// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"testing"
	"time"
)

func TestDurations(t *testing.T) {
	var d Durations
	for _, took := range []time.Duration{0, 100 * time.Microsecond, 100*time.Microsecond + 1, time.Second, time.Hour} {
		d.Add(took)
	}
	s := d.Snapshot()
	if s.Count != 5 || s.Sum < 3601 || s.Sum > 3601.1 {
		t.Errorf("count %d, sum %v; want 5 and about 3601", s.Count, s.Sum)
	}
	for bound, want := range map[float64]uint64{0.0001: 2, 0.0005: 3, 0.5: 3, 1: 4, 1800: 4} {
		if got, ok := s.Buckets[bound]; !ok || got != want {
			t.Errorf("at most %v s: %d, want %d", bound, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { d.Add(time.Second) }); n != 0 {
		t.Errorf("Add allocates %v times", n)
	}
}
