// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"net/http"
	"strconv"
)

// lookBack looks whether the registry has gone back behind the last change, as after a restore from a backup: for a
// number not reached by it, it reports for ever that nothing is new. Then all agents are read anew. A registry that has
// forgotten all of its changes reports a low number, too, and goes on to: each is followed once. One without a number
// is believed.
func (f *Feed) lookBack(ctx context.Context) {
	var info struct {
		Retention struct {
			Newest *uint64 `json:"newest_seq"`
		} `json:"retention"`
	}
	err := f.client.do(ctx, call{method: http.MethodGet, path: feedPath + "/info"}, &info)
	last, bad := strconv.ParseUint(f.seq, 10, 63)
	newest := info.Retention.Newest
	switch {
	case err != nil || bad != nil || newest == nil:
	case *newest >= last:
		f.back = nil
	case f.back == nil || *f.back != *newest:
		f.log.Warn("a registry has gone back, as after a restore from a backup: its agents are read anew",
			"source", f.client.URL(), "newest", *newest, "last", last)
		f.seq, f.back = "", newest
	}
}
