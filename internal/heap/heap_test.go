// SPDX-License-Identifier: Apache-2.0

package heap

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

const mib = 1 << 20

// fake is a runtime whose next looks are given.
type fake struct {
	looks    []Sample // the first one is now; the last one stays
	percent  int
	sets     []int
	released int
}

func (f *fake) Read() Sample {
	s := f.looks[0]
	if len(f.looks) > 1 {
		f.looks = f.looks[1:]
	}
	s.Percent = f.percent
	return s
}

func (f *fake) SetPercent(percent int) {
	f.percent = percent
	f.sets = append(f.sets, percent)
}

func (f *fake) Release() { f.released++ }

// looks returns samples of which each has so many MiB more allocated than the one before.
func looks(live, spare uint64, allocated ...uint64) (list []Sample) {
	var sum uint64
	for _, more := range allocated {
		sum += more * mib
		list = append(list, Sample{Allocated: sum, Live: live * mib, Spare: spare * mib})
	}
	return list
}

func TestFollow(t *testing.T) {
	all := Settings{Spread: true, Release: true}
	type result struct {
		Sets     []int // the last one when the context has ended
		Released int
	}
	for name, tt := range map[string]struct {
		settings Settings
		looks    []Sample
		percent  int // 0: the usual one
		lasts    time.Duration
		want     result
	}{
		"nothing happens":   {all, looks(10, 5, 0), 0, time.Hour, result{}},
		"work":              {all, looks(10, 5, 0, 50, 50, 50), 0, 3 * time.Second, result{[]int{300, 100}, 0}},
		"work that ends":    {all, looks(10, 5, 0, 50, 50, 0), 0, time.Hour, result{[]int{300, 100}, 0}},
		"a pause of work":   {all, looks(10, 5, 0, 50, 0, 0, 50, 0, 0, 50), 0, 7 * time.Second, result{[]int{300, 100}, 0}},
		"a small burst":     {all, looks(10, 31, 0, 50, 0), 0, time.Hour, result{[]int{300, 100}, 0}},
		"a burst that ends": {all, looks(10, 32, 0, 50, 0), 0, 4 * time.Second, result{[]int{300, 100}, 1}},
		"much lives":        {all, looks(400, 399, 0, 50, 0), 0, time.Hour, result{nil, 0}},
		"some lives":        {all, looks(100, 40, 0, 50, 0), 0, time.Hour, result{[]int{125, 100}, 0}},
		"spare that stays":  {all, looks(10, 50, 0, 50, 0), 0, time.Hour, result{[]int{300, 100}, 1}},
		"another burst": {all, looks(10, 50, 0, 50, 0, 0, 0, 50, 0), 0, time.Hour,
			result{[]int{300, 100, 300, 100}, 2}},
		"another burst, soon after": {all, looks(10, 50, 0, 50, 0, 0, 0, 50, 0), 0, 50 * time.Second,
			result{[]int{300, 100, 300, 100}, 1}},
		"no release":     {Settings{Spread: true}, looks(10, 50, 0, 50, 0), 0, time.Hour, result{[]int{300, 100}, 0}},
		"no spread":      {Settings{Release: true}, looks(10, 50, 0, 50, 0), 0, 10 * time.Second, result{nil, 1}},
		"set by another": {all, looks(10, 5, 0, 50, 50), 50, time.Hour, result{}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := &fake{looks: tt.looks, percent: usual}
				if tt.percent != 0 {
					f.percent = tt.percent
				}
				ctx, cancel := context.WithTimeout(t.Context(), tt.lasts+interval/2)
				defer cancel()
				Follow(ctx, f, tt.settings)
				if diff := cmp.Diff(tt.want, result{f.sets, f.released}); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
}

// TestGo looks at the process that runs the test.
func TestGo(t *testing.T) {
	g := NewGo()
	before := g.Read()
	if before.Percent <= 0 || before.Allocated == 0 {
		t.Fatalf("the heap is %+v", before)
	}
	g.SetPercent(250)
	defer g.SetPercent(before.Percent)
	kept := make([]byte, 64*mib)
	g.Release()
	after := g.Read()
	if after.Percent != 250 || after.Live < 64*mib || after.Allocated-before.Allocated < 64*mib {
		t.Errorf("after 64 MiB the heap is %+v, and was %+v", after, before)
	}
	kept[0] = 1
	kept = nil
	if spare := g.Read().Spare; spare > 60*mib {
		t.Errorf("%d bytes are spare, but they lived at the last collection", spare)
	}
	g.Release()
	if s := g.Read(); s.Live > 60*mib {
		t.Errorf("%d bytes live, and nothing holds them", s.Live)
	}
}
