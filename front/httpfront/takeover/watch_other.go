// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package takeover

import (
	"errors"
	"syscall"
)

// supported is false: this system cannot watch connections.
const supported = false

var connections watcher

type (
	watcher struct{}
	watch   struct{}
)

func (*watcher) watchSocket(syscall.RawConn, func(), func()) (*watch, error) {
	return nil, errors.ErrUnsupported
}

func (*watch) arm() error { return errors.ErrUnsupported }
func (*watch) disarm()    {}
func (*watch) remove()    {}
