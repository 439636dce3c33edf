// SPDX-License-Identifier: Apache-2.0

//go:build unix

package rabbittest

import "syscall"

// inGroup puts a new process into a process group, or into one of its own if that is 0.
func inGroup(group int) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true, Pgid: group} }

func killGroup(group int) { syscall.Kill(-group, syscall.SIGKILL) }
