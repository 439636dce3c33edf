// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
)

// position is how far a device has received the events of a task.
type position struct {
	Log   string `json:"log"` // of the task
	After uint64 `json:"after"`
}

// maxPositions is how many positions are kept for an AID. Beyond it, a device is sent events again after a cut, or
// begins now.
const maxPositions = 4096

var positionLimits = quota.Limits{Total: math.MaxInt64, PerLeader: maxPositions}

// follower names a device and a slot of an AID.
type follower struct{ aid, device, slot string }

// creator is a follower as an entry has it.
func (f follower) creator() string { return f.aid + " " + f.device + " " + f.slot }

// position returns how far a follower has received the events of a task, and the revision of that position; 0 if it has
// never followed the task.
func (x *Index) position(ctx context.Context, taskID string, f follower) (after, revision uint64, err error) {
	head, err := x.store.Head(ctx, logname.AUNPosition(taskID, f.aid, f.device, f.slot))
	if errors.Is(err, replay.ErrNotFound) {
		return 0, 0, nil
	}
	var p position
	if err == nil {
		err = json.Unmarshal(head.Metadata, &p)
	}
	if err != nil {
		return 0, 0, partner.StoreError(err, "the store cannot be read")
	}
	return p.After, head.Revision, nil
}

// countPositions counts the positions that an earlier process has left.
func (x *Index) countPositions(ctx context.Context) {
	for e, err := range x.store.List(ctx, string(logname.AUN), "") {
		if err != nil {
			x.log.Warn("the positions of subscriptions could not be counted", "error", err)
			return
		}
		if aid := logname.FollowerOf(e.Log); aid != "" && e.Head.Ended.IsZero() {
			_ = x.positions.Take(aid, 1, quota.Limits{Total: math.MaxInt64, PerLeader: math.MaxInt64}) // never fails
		}
	}
}

// setPosition stores how far a follower has received the events of a task. revision is that of its position, as far as
// the caller knows, and 0 for none. It returns the revision afterwards: it stays 0 if its AID has too many positions.
func (x *Index) setPosition(
	ctx context.Context, taskID string, f follower, p position, revision uint64,
) (after uint64, _ error) {
	err := replay.RetryConflict(func() error {
		first := revision == 0
		if first && x.positions.Take(f.aid, 1, positionLimits) != nil {
			return nil
		}
		err := x.store.Append(ctx, replay.Append{Log: logname.AUNPosition(taskID, f.aid, f.device, f.slot),
			Expect: revision, Metadata: mustJSON(&p), DueAt: time.Now().Add(recheck)})
		if err == nil {
			revision++
			return nil
		}
		if first {
			x.positions.Give(f.aid, 1)
		}
		if errors.Is(err, replay.ErrConflict) {
			had, now, bad := x.position(ctx, taskID, f)
			if bad != nil {
				return bad
			}
			revision, p.After = now, max(p.After, had) // the device may have two connections
		}
		return err
	})
	return revision, err
}

// endPosition says that a follower has received the last event of a task. revision is that of its position; 0 if it has
// none. The device that has created the task does not begin with the first event any more.
func (x *Index) endPosition(ctx context.Context, taskID string, f follower, revision uint64) error {
	if revision > 0 {
		log := logname.AUNPosition(taskID, f.aid, f.device, f.slot)
		if err := x.dropPosition(ctx, log, f.aid, revision); err != nil {
			return err
		}
	}
	err := x.change(ctx, taskID, false, func(e *entry) (bool, error) {
		if e == nil || e.Creator != f.creator() {
			return false, nil
		}
		e.Creator = ""
		return true, nil
	})
	if errors.Is(err, replay.ErrConflict) {
		return nil // the entry has ended
	}
	return err
}

// dropPosition drops a position of an AID.
func (x *Index) dropPosition(ctx context.Context, log, aid string, revision uint64) error {
	dropped, err := x.drop(ctx, log, revision)
	if dropped {
		x.positions.Give(aid, 1)
	}
	return err
}
