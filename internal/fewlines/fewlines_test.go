// SPDX-License-Identifier: Apache-2.0

package fewlines

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Limit
		for minute, before := range []int{0, 90, 90} {
			logged := 0
			for i := range 100 {
				may, unlogged := l.Log()
				if may {
					logged++
				}
				if i == 0 && unlogged != before {
					t.Errorf("minute %d: %d were not logged before, want %d", minute, unlogged, before)
				}
			}
			if logged != most {
				t.Errorf("minute %d: %d lines, want %d", minute, logged, most)
			}
			time.Sleep(window)
		}
	})
}
