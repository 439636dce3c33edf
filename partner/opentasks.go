// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"math"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/quota"
)

// openTasks counts the unfinished tasks of every Leader at every Partner.
type openTasks struct{ counter quota.Counter } // by logname.Owner

// add counts one more task, unless its Leader has max unfinished ones already; max 0 is no limit.
func (o *openTasks) add(log string, max int) bool {
	limits := quota.Limits{Total: math.MaxInt64, PerLeader: math.MaxInt64}
	if max > 0 {
		limits.PerLeader = int64(max)
	}
	return o.counter.Take(logname.Owner(log), 1, limits) == nil
}

func (o *openTasks) done(log string) { o.counter.Give(logname.Owner(log), 1) }
