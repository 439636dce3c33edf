// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package http1

import "net"

// socket asks the system about a connection. Here it cannot.
type socket struct{}

func (s *socket) init(net.Conn) {}

func (s *socket) known() bool { return false }

func (s *socket) quiet() bool { return false }

func (s *socket) writeSome([]byte) int { return 0 }
