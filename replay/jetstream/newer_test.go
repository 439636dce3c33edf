// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// TestNewerOwner: an owner's record with members added by a newer version is read, and the shard can be claimed after
// it.
func TestNewerOwner(t *testing.T) {
	t.Parallel()
	st := open(t, Config{Replicas: 1})
	record := []byte(`{"node":"newer","incarnation":"7","claim":"c","mood":{"good":true}}`)
	if _, err := st.of.js.Publish(t.Context(), st.st.ownerSubject, record); err != nil {
		t.Fatal(err)
	}
	o, err := st.of.Owner(t.Context(), 0)
	if err != nil || o.Node != "newer" || o.Incarnation != "7" {
		t.Errorf("the owner is %+v, %v", o, err)
	}
	if err := st.Append(t.Context(), replay.Append{Log: "l"}); !errors.Is(err, replay.ErrFenced) {
		t.Errorf("the former owner: %v", err)
	}
	claim(t, st.of, 0, "b")
}

// TestNewerHead: a head in a form unknown to this version is refused by a sentence, and not misread.
func TestNewerHead(t *testing.T) {
	h := head{Head: replay.Head{Revision: 1, First: 1, DueAt: time.Unix(1, 0)}}
	data := appendHead(nil, &h)
	if _, err := parseHead(data); err != nil {
		t.Fatal(err)
	}
	data[0] = formatInline + 1
	_, err := parseHead(data)
	if err == nil || !strings.Contains(err.Error(), "a format that this version does not know") {
		t.Errorf("the error is %v", err)
	}
}
