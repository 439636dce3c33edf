// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
)

// children are the servers that this program is when a word is its first argument, each in a process of its own. A
// server calls listen, and returns when its listener is closed.
var children = map[string]func(args []string) error{sinkWord: serveSink, bareWord: serveBare}

// child is such a process.
type child struct {
	addr  string // that it listens on
	cmd   *exec.Cmd
	stdin io.Closer     // the process ends when this is closed
	out   *bufio.Reader // what it says, after its address
}

// newChild starts a child. The caller closes it.
func newChild(ctx context.Context, word string, args ...string) (*child, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, path, append([]string{word}, args...)...)}
	c.cmd.Stderr = os.Stderr
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(stdout)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.close()
		return nil, fmt.Errorf("the %s does not say where it listens: %w", word, err)
	}
	c.addr = strings.TrimSpace(line)
	return c, nil
}

// close ends the child. What it says must not be read afterwards.
func (c *child) close() {
	c.stdin.Close()
	c.cmd.Wait()
}

// listen is what a child listens with. It says the address, and closes the listener when the process that has started
// the child closes its input, or ends.
func listen() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	fmt.Println(l.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		l.Close()
	}()
	return l, nil
}
