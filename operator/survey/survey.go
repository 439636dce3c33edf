// SPDX-License-Identifier: Apache-2.0

// Package survey says what a store has, and what is wrong with it. A running gateway surveys its own store, and
// commands one in a directory.
package survey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// kinds are the names of the classes of logs.
var kinds = map[byte]string{
	logname.Task: "task", logname.Outbox: "outbox", logname.Endpoint: "endpoint", logname.Inbox: "inbox",
	logname.Standing: "standing", logname.AUN: "aun", logname.Membership: "membership", logname.GroupTask: "group_task",
	logname.Quota: "quota", logname.UsedToken: "used_token", logname.Secret: "secret",
}

func kindOf(class byte) string {
	if kind, known := kinds[class]; known {
		return kind
	}
	return fmt.Sprintf("class_%q", class)
}

// NameOf returns the kind of a log, and its name for people.
func NameOf(log string) (kind, name string) {
	return kindOf(log[0]), strings.ReplaceAll(log[1:], logname.Separator, " ")
}

// Sized is a store whose size on the disk is known.
type Sized interface {
	DiskBytes() int64 // of all its files
}

// Of returns what a store has, but for its driver and its directory. With verify, it reads all of it, and says
// what is wrong.
func Of(ctx context.Context, s replay.Store, verify bool) (r adminapi.StoreReport, err error) {
	check := checkLog
	if !verify {
		check = nil
	}
	v, err := replay.Inspect(ctx, s, check)
	r = adminapi.StoreReport{Logs: v.Logs, Ended: v.Ended, Bytes: v.Bytes, Records: v.Records, Damaged: v.Damaged,
		Kinds: make(map[string]int)}
	if sized, ok := s.(Sized); ok {
		r.Size = sized.DiskBytes()
	}
	for class, n := range v.Classes {
		r.Kinds[kindOf(class)] += n
	}
	for _, p := range v.Problems {
		kind, name := NameOf(p.Log)
		r.Problems = append(r.Problems, adminapi.StoreProblem{Kind: kind, Log: name, Error: p.Err.Error()})
	}
	if err != nil && !errors.Is(err, replay.ErrUnavailable) && !errors.Is(err, replay.ErrClosed) && ctx.Err() == nil {
		r.Damaged++
		r.Problems = append(r.Problems, adminapi.StoreProblem{Kind: "store", Error: "the logs after these cannot be read: " +
			err.Error()})
		err = nil
	}
	return r, err
}

// checkLog returns what is wrong with a log whose records could be read.
func checkLog(log string, h replay.Head, snapshot []byte, records []replay.Record) error {
	if log[0] != logname.Task {
		return nil // what the records of other logs mean, only their writers know
	}
	if !json.Valid(h.Metadata) {
		return errors.New("the metadata of the task are damaged")
	}
	if snapshot != nil {
		if _, err := task.DecodeEvent(snapshot); err != nil {
			return fmt.Errorf("the snapshot of the task is damaged: %w", err)
		}
	}
	for _, r := range records {
		if _, err := task.DecodeEvent(r.Data); err != nil {
			return fmt.Errorf("event %d of the task is damaged: %w", r.Seq, err)
		}
	}
	return nil
}
