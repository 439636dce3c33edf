// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"time"
)

// parts are what runs in processes of their own, by name: this binary, started again with its name. A part gets the
// fixture from its standard input, and ends with that. It says on its standard output when it is ready, and may say
// more.
var parts = map[string]struct {
	run func(s *fixture, in *json.Decoder, out *json.Encoder) error
	// yields says that the process takes only what time of the processors the others leave.
	yields bool
}{
	"agent":     {run: runAgent},
	"attackers": {run: runAttackers, yields: true},
	"machines":  {run: runMachines, yields: true},
}

// runMachines is the part that stands for the machines of the attackers, in all phases: it keeps the processors busy,
// so that an idle machine is not what the attacks are compared with.
func runMachines(_ *fixture, in *json.Decoder, out *json.Encoder) error {
	for range runtime.NumCPU() {
		go func() {
			for n := 0; ; n++ {
			}
		}()
	}
	if err := out.Encode(true); err != nil {
		return err
	}
	_ = in.Decode(new(any)) // its end
	return nil
}

// runPart runs the part that this process is.
func runPart(name string) error {
	p, ok := parts[name]
	if !ok {
		return fmt.Errorf("there is no part %q", name)
	}
	signal.Ignore(os.Interrupt) // a terminal sends it to all processes, and the first one ends the others
	in, s := json.NewDecoder(os.Stdin), new(fixture)
	if err := in.Decode(s); err != nil {
		return err
	}
	if err := s.read(); err != nil {
		return err
	}
	return p.run(s, in, json.NewEncoder(os.Stdout))
}

// part is a part of the run, seen from the process that has started it.
type part struct {
	process *exec.Cmd
	stdin   io.WriteCloser
	in      *json.Encoder
	out     *json.Decoder
}

// newPart starts a part, which the caller must close, and waits until it is ready.
func newPart(name string, s *fixture) (_ *part, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := []string{self, partArg, name}
	if parts[name].yields {
		args = append([]string{"chrt", "--idle", "0"}, args...)
	}
	p := &part{process: exec.Command(args[0], args[1:]...)}
	p.process.Stderr = os.Stderr
	if p.stdin, err = p.process.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.process.Start(); err != nil {
		return nil, err
	}
	p.in, p.out = json.NewEncoder(p.stdin), json.NewDecoder(stdout)
	var ready bool
	if err := errors.Join(p.in.Encode(s), p.out.Decode(&ready)); err != nil {
		p.close()
		return nil, fmt.Errorf("the process %q: %w", name, err)
	}
	return p, nil
}

// partArg is the first argument of a process that is a part.
const partArg = "part"

// close ends a part, and waits for its end.
func (p *part) close() {
	_ = p.stdin.Close()
	timer := time.AfterFunc(30*time.Second, func() { _ = p.process.Process.Kill() })
	defer timer.Stop()
	_ = p.process.Wait() // what was wrong, it has said
}

// serve serves HTTP at an address.
func serve(addr string, h http.Handler) (*http.Server, string, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, "", err
	}
	server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	return server, l.Addr().String(), nil
}
