// SPDX-License-Identifier: Apache-2.0

// Command aipconform tests whether a Partner of the Agent Interaction Protocol does what the specification says.
// README.md, in the folder above, says how it is used.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/aip-gateway/aip-gateway/conform/run"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// The statuses beside those of package run.
const (
	exitPassed = 0
	exitMust   = 1
	exitLower  = 2
	exitUsage  = 64
)

const usage = `aipconform tests Partners, Leaders and agents.

  aipconform [flags] <url>                  a Partner of AIP
  aipconform list                           the tests
  aipconform leader [flags]                 a Partner that misbehaves, to test a Leader
  aipconform a2a --corpus DIR [flags] <url> an agent of A2A, with ACTS' own tests

It ends with 0 if all passed, 1 if a must failed, 2 if only lower levels failed, 3 if the Partner is unreachable, 4 if
it does not let the Leader in, 5 if the time is over, and 64 for wrong arguments.

`

// commands are the ones with a name.
var commands = map[string]func(context.Context, []string, io.Writer, io.Writer) (int, error){
	"a2a":    agent,
	"leader": misbehave,
	"list":   list,
}

// command runs the command and returns its status.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	do := partner
	if len(args) > 0 && commands[args[0]] != nil {
		do, args = commands[args[0]], args[1:]
	}
	status, err := do(ctx, args, stdout, stderr)
	var probe *run.ProbeError
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitPassed
	case errors.As(err, &probe):
		fmt.Fprintln(stderr, "aipconform:", err)
		return probe.Exit
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Fprintln(stderr, "aipconform: the time of the run is over")
		return run.ExitTimeOut
	case err != nil:
		fmt.Fprintln(stderr, "aipconform:", err)
		return exitUsage
	}
	return status
}
