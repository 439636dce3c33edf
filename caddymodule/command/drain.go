// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
)

// drainPoll is how often a drain looks at what is left.
const drainPoll = 500 * time.Millisecond

func drainCommand() *cobra.Command {
	var admin adminFlags
	var wait, end, asJSON bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "drain [--wait [--timeout <time>]] [--end]",
		Short: "Has a running gateway refuse new tasks, before it is stopped",
		Long: `
Has a running gateway refuse new tasks, before it is stopped, for example for an upgrade.
The tasks that it has continue, and take all commands. With --wait it returns when no
agent works on a task any more; what waits for its Leader then, continues after the
restart. The gateway refuses new tasks until --end, or until it is stopped.
`,
		Example: `  $ caddy aip drain --wait --timeout 10m && caddy stop
  $ caddy aip drain --end`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait && end {
				return errors.New("use --wait or --end, not both")
			}
			method := http.MethodPost
			if end {
				method = http.MethodDelete
			}
			until := time.Now().Add(timeout)
			shown := -1
			for {
				var state adminapi.DrainState
				raw, err := admin.ask(method, adminapi.Drain, nil, nil, &state)
				if err != nil {
					return err
				}
				if !end && !state.Draining {
					return errors.New("the drain was ended meanwhile: new tasks are accepted")
				}
				done := !wait || state.Running == 0
				late := timeout > 0 && time.Now().After(until)
				switch {
				case asJSON && (done || late):
					_, err = cmd.OutOrStdout().Write(raw)
				case !asJSON && (state.Running != shown || done):
					_, err = fmt.Fprintln(cmd.OutOrStdout(), drainLine(&state))
				}
				switch shown = state.Running; {
				case err != nil || done:
					return err
				case late:
					return fmt.Errorf("agents still work on %d tasks after %s", state.Running, timeout)
				}
				method = http.MethodGet
				time.Sleep(drainPoll)
			}
		},
	}
	admin.add(cmd.Flags())
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until no agent works on a task any more")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long --wait waits; default: without limit")
	cmd.Flags().BoolVar(&end, "end", false, "accept new tasks again")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func drainLine(s *adminapi.DrainState) string {
	how := "new tasks are accepted"
	if s.Draining {
		how = "new tasks are refused"
	}
	return fmt.Sprintf("%s; agents work on %d tasks, and %d wait for their Leaders", how, s.Running,
		max(s.Unfinished-int64(s.Running), 0))
}
