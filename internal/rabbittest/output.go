// SPDX-License-Identifier: Apache-2.0

package rabbittest

import "sync"

// output keeps the last part of a process' output.
type output struct {
	mu sync.Mutex
	b  []byte
}

// kept is the number of bytes kept of a process' output.
const kept = 16 << 10

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.b = append(o.b, p...)
	if len(o.b) > 2*kept {
		o.b = append(o.b[:0], o.b[len(o.b)-kept:]...)
	}
	return len(p), nil
}

func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.b[max(0, len(o.b)-kept):])
}
