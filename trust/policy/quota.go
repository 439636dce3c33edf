// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
)

// Scope selects the calls counted together by a quota.
type Scope string

// The scopes of a quota.
const (
	OfLeader Scope = "leader" // those of each Leader; all unverified ones are one
	OfSet    Scope = "set"    // those of all callers of the quota
	OfAgent  Scope = "agent"  // those to each agent
)

// Quota bounds a use of something by the callers of its Match. A limit of zero is none.
type Quota struct {
	Name  string
	Match Match // selects its calls
	Of    Scope // default: OfLeader

	Calls   Rate
	Starts  int64 // of tasks, on a day of UTC
	Tasks   int   // unfinished ones, at each agent
	Streams int64 // open ones
	Bytes   int64 // sent to callers and to agents, on a day of UTC

	DryRun bool // nothing is refused: possible refusals are logged and counted
}

// maxName is the most bytes of the name of a rule or of a quota.
const maxName = 64

func checkName(name string) error {
	if len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("the name %q is longer than %d bytes, or has a space or a control character", name, maxName)
	}
	return nil
}

func (q *Quota) check() error {
	if q.Of == "" {
		q.Of = OfLeader
	}
	switch {
	case q.Name == "":
		return errors.New("it has no name")
	case q.Of != OfLeader && q.Of != OfSet && q.Of != OfAgent:
		return fmt.Errorf("of is %q, but must be leader, set or agent", q.Of)
	case q.Calls == Rate{} && q.Starts == 0 && q.Tasks == 0 && q.Streams == 0 && q.Bytes == 0:
		return errors.New("it limits nothing; give it calls, starts, tasks, streams or bytes")
	case min(q.Starts, int64(q.Tasks), q.Streams, q.Bytes) < 0:
		return errors.New("a limit must not be negative")
	case q.Tasks > 0 && q.Of == OfSet:
		return errors.New("unfinished tasks are counted of a leader or of an agent, and not of a set")
	}
	return checkName(q.Name)
}

// most returns the most starts on a day; 0 for any number.
func (q *Quota) most() int64 {
	if q.DryRun { // they are counted all the same
		return 0
	}
	return q.Starts
}

// key returns the shared name of calls counted together.
func (q *Quota) key(c *Call, partner string) string {
	switch q.Of {
	case OfSet:
		return ""
	case OfAgent:
		return partner
	}
	return limit.Key(c.Leader)
}

// The limits of a quota, as errors and metrics name them.
const (
	limitCalls   = "calls"
	limitStarts  = "starts"
	limitTasks   = "tasks"
	limitStreams = "streams"
	limitBytes   = "bytes"
)

// unknownWait is the time after which a caller is asked to try again, if the time of free room is not known.
const unknownWait = 10 * time.Second

// exceeded returns the error of a call beyond a limit of a quota. It has the name of the quota, which is no secret, and
// the number of seconds until the call may be made.
func exceeded(q *Quota, limit string, most int64, wait time.Duration) *task.Error {
	seconds := int64((wait + time.Second - 1) / time.Second)
	err := task.Errorf(task.LimitExceeded, "The quota %s is used up: %s.", q.Name, unit(limit, most))
	return err.WithData("limit", q.Name+"."+limit).WithData("max", most).WithData(task.RetryAfter, max(1, seconds))
}

func unit(limit string, max int64) string {
	switch limit {
	case limitStarts:
		return fmt.Sprintf("%d tasks may be started on a day of UTC", max)
	case limitTasks:
		return fmt.Sprintf("%d tasks may be unfinished", max)
	case limitStreams:
		return fmt.Sprintf("%d streams may be open", max)
	case limitBytes:
		return fmt.Sprintf("%d bytes may be sent on a day of UTC", max)
	}
	return fmt.Sprintf("%d calls may be made at once; wait a moment", max)
}
