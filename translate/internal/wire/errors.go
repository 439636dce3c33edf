// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/aip-gateway/aip-gateway/task"
)

// ErrorOf returns the task.Error in err. For none, or one of an unknown kind, it returns an internal error without a
// text: callers see nothing not meant for them.
func ErrorOf(err error) *task.Error {
	if e, ok := errors.AsType[*task.Error](err); ok && e.Kind.Valid() {
		return e
	}
	return new(task.Error)
}

// ErrorData returns the data member of an error of JSON-RPC: its type if the code says too little, its field, its own
// data, and its sentence as the details (AIP v01.00 §5.2). It is nil if there is nothing to say.
func ErrorData(e *task.Error, errorType string) []byte {
	var dst []byte
	add := func(key string, value []byte) {
		sep := byte(',')
		if dst == nil {
			sep = '{'
		}
		dst = append(task.AppendString(append(dst, sep), key), ':')
		dst = append(dst, value...)
	}
	addText := func(key, value string) {
		if value != "" {
			add(key, task.AppendString(nil, value))
		}
	}
	addText("errorType", errorType)
	addText("field", e.Field)
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		switch key {
		case "errorType", "field", "details": // said once
			continue
		}
		if value, err := json.Marshal(e.Data[key]); err == nil {
			add(key, value)
		}
	}
	addText("details", e.Detail)
	if dst == nil {
		return nil
	}
	return append(dst, '}')
}
