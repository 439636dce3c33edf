// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"testing"
)

// FuzzFrame: a frame read is written as it was, or shorter, and is the same when read again.
func FuzzFrame(f *testing.F) {
	for _, s := range []frame{
		{kind: callFrame, shard: 3, service: "s", limit: 9, size: 4, data: []byte("data")},
		{kind: callFrame, shard: -1, service: "s"}, {kind: partFrame, offset: 300, data: []byte("data")},
		{kind: replyFrame, status: moved}, {kind: replyFrame, size: 4, data: []byte("data")},
		{kind: pingFrame}, {kind: ownerFrame, shard: 7}, {kind: takeFrame, offset: maxBody},
	} {
		f.Add(s.append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readFrame(data)
		if err != nil {
			return
		}
		written := got.append(nil)
		again, err := readFrame(written)
		if err != nil || !bytes.Equal(written, again.append(nil)) || len(written) > len(data) {
			t.Errorf("%+v has become %+v, %v", got, again, err)
		}
	})
}
