// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

const mib = 1 << 20

// looks returns samples. Each has so many MiB more allocated than the one before.
func looks(live, spare uint64, allocated ...uint64) (list []Sample) {
	var sum uint64
	for _, more := range allocated {
		sum += more * mib
		list = append(list, Sample{Allocated: sum, Live: live * mib, Spare: spare * mib})
	}
	return list
}

func TestFollow(t *testing.T) {
	for name, tt := range map[string]struct {
		looks []Sample // the last one stays
		lasts time.Duration
		want  int // the number of times memory is given back
	}{
		"nothing happens":           {looks(10, 50, 0), time.Hour, 0},
		"work":                      {looks(10, 50, 0, 50, 50, 50), 3 * time.Second, 0},
		"little work":               {looks(10, 50, 0, 7, 7, 7), time.Hour, 0},
		"a pause of work":           {looks(10, 50, 0, 50, 0, 0, 50, 0, 0, 50), 7 * time.Second, 0},
		"a small burst":             {looks(10, 31, 0, 50, 0), time.Hour, 0},
		"a burst that ends":         {looks(10, 32, 0, 50, 0), 4 * time.Second, 1},
		"much lives":                {looks(400, 399, 0, 50, 0), time.Hour, 0},
		"spare that stays":          {looks(10, 50, 0, 50, 0), time.Hour, 1},
		"another burst":             {looks(10, 50, 0, 50, 0, 0, 0, 50, 0), time.Hour, 2},
		"another burst, soon after": {looks(10, 50, 0, 50, 0, 0, 0, 50, 0), 50 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.lasts+interval/2)
				defer cancel()
				got := 0
				Follow(ctx, func() Sample {
					s := tt.looks[0]
					if len(tt.looks) > 1 {
						tt.looks = tt.looks[1:]
					}
					return s
				}, func() { got++ })
				if got != tt.want {
					t.Errorf("memory was given back %d times, want %d", got, tt.want)
				}
			})
		})
	}
}

// TestReader looks at the process of the test.
func TestReader(t *testing.T) {
	read := Reader()
	before := read()
	kept := make([]byte, 64*mib)
	debug.FreeOSMemory()
	after := read()
	if after.Live < 64*mib || after.Allocated-before.Allocated < 64*mib {
		t.Errorf("after 64 MiB the heap is %+v, and was %+v", after, before)
	}
	runtime.KeepAlive(kept)
	debug.FreeOSMemory()
	if s := read(); s.Live > 60*mib {
		t.Errorf("%d bytes live, and nothing holds them", s.Live)
	}
}
