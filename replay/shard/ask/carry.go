// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// carry is an error as it travels: with its kind, its text for a caller, and its cause for the log.
type carry struct {
	Kind   string          `json:"kind,omitempty"` // its name; empty for an error without one
	Detail string          `json:"detail,omitempty"`
	Field  string          `json:"field,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
	State  task.State      `json:"state,omitempty"`  // of a task.StateError
	Moved  bool            `json:"moved,omitempty"`  // it is a replay.ErrClosed
	Absent bool            `json:"absent,omitempty"` // it is a replay.ErrUnavailable
	Raced  bool            `json:"raced,omitempty"`  // it is a replay.ErrConflict
	Cause  string          `json:"cause,omitempty"`
}

func pack(err error) *carry {
	c := &carry{Moved: errors.Is(err, replay.ErrClosed), Absent: errors.Is(err, replay.ErrUnavailable),
		Raced: errors.Is(err, replay.ErrConflict)}
	if state, ok := errors.AsType[*task.StateError](err); ok {
		c.State = state.State
	}
	e, ok := errors.AsType[*task.Error](err)
	if !ok {
		c.Cause = err.Error()
		return c
	}
	c.Kind, c.Detail, c.Field = e.Kind.String(), e.Detail, e.Field
	if len(e.Data) > 0 {
		c.Data, _ = json.Marshal(e.Data) // without it, the error is still one
	}
	if e.Err != nil {
		c.Cause = e.Err.Error()
	}
	return c
}

func (c *carry) unpack() error {
	var causes []error
	if c.Moved {
		causes = append(causes, replay.ErrFenced)
	}
	if c.Absent {
		causes = append(causes, replay.ErrUnavailable)
	}
	if c.Raced {
		causes = append(causes, replay.ErrConflict)
	}
	if c.State != task.None {
		causes = append(causes, &task.StateError{State: c.State})
	} else if c.Cause != "" {
		causes = append(causes, errors.New(c.Cause))
	}
	cause := errors.Join(causes...)
	if len(causes) == 1 {
		cause = causes[0]
	}
	if c.Kind == "" {
		return cause
	}
	e := task.Errorf(task.Internal, "%s", c.Detail).WithField(c.Field).WithCause(cause)
	for _, k := range task.Kinds() { // a newer process may know more of them
		if k.String() == c.Kind {
			e.Kind = k
		}
	}
	if len(c.Data) > 0 {
		d := json.NewDecoder(bytes.NewReader(c.Data))
		d.UseNumber()
		if d.Decode(&e.Data) == nil {
			for name, v := range e.Data {
				if n, ok := v.(json.Number); ok {
					if whole, err := n.Int64(); err == nil {
						e.Data[name] = whole
					} else {
						e.Data[name], _ = n.Float64()
					}
				}
			}
		}
	}
	return e
}

// AppendError appends an error in its travelling form.
func AppendError(to []byte, err error) []byte {
	data, bad := json.Marshal(pack(err))
	if bad != nil {
		return append(to, "{}"...) // an error without a word
	}
	return append(to, data...)
}

// ReadError reads the output of AppendError.
func ReadError(data []byte) error {
	var c carry
	if err := json.Unmarshal(data, &c); err != nil {
		return task.Errorf(task.Internal, "another gateway has answered what cannot be read").WithCause(err)
	}
	if err := c.unpack(); err != nil {
		return err
	}
	return errors.New("another gateway has answered an error without a word")
}
