// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
)

// doctorTimeout is the time for all checks together.
const doctorTimeout = 5 * time.Minute

// gravity is the order of findings: findings to be mended stand last, in view on a terminal.
var gravity = map[doctor.Status]int{doctor.OK: 0, doctor.Warning: 1, doctor.Broken: 2}

func doctorCommand() *cobra.Command {
	var config, adapter string
	var asJSON bool
	var try doctor.Try
	cmd := &cobra.Command{
		Use:   "doctor [--config <file>] [--try <text>]",
		Short: "Explains what is wrong with a set-up",
		Long: `
Examines a configuration and what it names: its syntax and settings, certificates (chain,
extended key usage, validity), lists of revoked ones, client_auth, base_path, who may use a
console, the directory of the store, the agents (whether they answer, and in which
dialect), the clock, and the brokers of groups.
It prints a sentence for each finding, with what to do; errors are the last ones.

It changes nothing, and may run beside a running Caddy; run it as the user who runs Caddy,
with the same environment. Agents are sent only requests that change nothing: for a card,
for a task that does not exist, and one without its input, which agents of the Agent API
refuse. An agent that the configuration itself serves need not run yet. Brokers are
connected to, but not logged in.

With --try, the agent is sent the text as one real task, with the settings of the
configuration, past the gateway: no caller is named, and nothing is stored. Findings named
try say how it was sent and why, when the first event came, the states in the agent's
words, the artifacts, how the task ended, and whether the agent knows it afterwards. A task
in which the agent asks, or that takes more than two minutes, is canceled. Where the
configuration has several Partners, --partner names the one whose agent is tried. Agents of
AUN are not tried.

Exit status: 0 nothing is broken, though there may be warnings; 1 something is broken,
or the try failed.
`,
		Example: `  $ caddy aip doctor
  $ caddy aip doctor --config /etc/caddy/Caddyfile --json
  $ caddy aip doctor --try "Plan three days in Beijing" --partner travel`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVarP(&config, "config", "c", "", "the configuration (default: the Caddyfile of this directory)")
	cmd.Flags().StringVarP(&adapter, "adapter", "a", "", "the adapter of another format than Caddyfile and JSON")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	cmd.Flags().StringVar(&try.Text, "try", "", "send the agent this text as one real task, and tell what it does")
	cmd.Flags().StringVar(&try.Partner, "partner", "",
		"the name or AIC of the Partner whose agent is tried (default: the only one)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch tries := cmd.Flags().Changed("try"); {
		case tries && strings.TrimSpace(try.Text) == "":
			return errors.New("--try needs a text that the agent can work on")
		case try.Partner != "" && !tries:
			return errors.New("--partner is for --try: add --try <text>")
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), doctorTimeout)
		defer cancel()
		findings := append(doctor.Examine(ctx, config, adapter, try), runningFindings(ctx, config, adapter)...)
		slices.SortStableFunc(findings, func(a, b doctor.Finding) int {
			return cmp.Compare(gravity[a.Status], gravity[b.Status])
		})
		if err := printFindings(cmd, findings, asJSON); err != nil {
			return err
		}
		broken := 0
		for _, f := range findings {
			if f.Status == doctor.Broken {
				broken++
			}
		}
		if broken > 0 {
			return fmt.Errorf("broken: %d of %d findings", broken, len(findings))
		}
		return nil
	}
	return cmd
}

// printFindings prints findings as a table, or as JSON.
func printFindings(cmd *cobra.Command, findings []doctor.Finding, asJSON bool) error {
	if asJSON {
		return printJSON(cmd, struct {
			Findings []doctor.Finding `json:"findings"`
		}{findings})
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(table, "%s\t%s\t%s: %s\n", f.Status, f.Check, clean(f.Subject), clean(f.Text))
	}
	return table.Flush()
}
