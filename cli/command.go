// SPDX-License-Identifier: Apache-2.0

// Package cli is caddy aip: the commands to try, test and operate a gateway. Importing it registers them.
package cli

import (
	"encoding/json"
	"fmt"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "aip",
		Usage: "<command>",
		Short: "Tools to try, test and operate an AIP gateway",
		Long: `
Tools to try, test and operate an AIP gateway: make certificates with an AIC, run
a sample agent behind the gateway, call the gateway as a Leader, list, show and cancel
tasks, list open streams, list and replay webhook deliveries, and list and leave groups.
`,
		CobraFunc: aipCommand,
	})
}

// aipCommand turns cmd into `caddy aip`.
func aipCommand(cmd *cobra.Command) {
	cmd.Example = `  $ caddy aip pki
  $ caddy aip sample-agent
  $ caddy aip call https://localhost:8443 start "Plan three days in Beijing"
  $ caddy aip aic check 10001000011K912345E789ABCDEF2353`
	onlyGroup(cmd)
	asking := askingCommands()
	asking["store"].AddCommand(importCommand(), repairCommand())
	asking["acs"].AddCommand(acsExportCommand(), acsValidateCommand(), acsDiffCommand())
	asking["policy"].AddCommand(policyTestCommand())
	for _, c := range asking {
		cmd.AddCommand(c)
	}
	cmd.AddCommand(pkiCommand(), sampleAgentCommand(), callCommand(), describeCommand(), aicCommand(), keyCommand(),
		webhookKeyCommand(), aunIDCommand(), doctorCommand(), consoleCommand(), versionCommand())
	footer(cmd, "operations.md#commands-and-the-admin-api")
	for _, c := range cmd.Commands() {
		footer(c, pageOf[c.Name()])
	}
	cleanErrors(cmd)
}

// cleanErrors has a command, and those below it, return errors with clean texts: a certificate, an answer or a file may
// have written them.
func cleanErrors(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		cleanErrors(c)
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			if err == nil || clean(err.Error()) == err.Error() {
				return err
			}
			return cleanError{err}
		}
	}
}

// cleanError is an error with a text safe for a terminal.
type cleanError struct{ error }

// Error returns the text, without characters steering a terminal.
func (e cleanError) Error() string { return clean(e.error.Error()) }

// Unwrap returns the error.
func (e cleanError) Unwrap() error { return e.error }

// onlyGroup makes cmd a group of commands. For an unknown command of a group, Cobra would print the help text with exit
// status 0.
func onlyGroup(cmd *cobra.Command) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		path := cmd.CommandPath()
		return fmt.Errorf("unknown command %q for %q; run '%s --help' for usage", args[0], path, path)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// outputFlag adds the flag of a command that prints its results.
func outputFlag(cmd *cobra.Command, into *bool) {
	cmd.Flags().BoolVar(into, "json", false, "print JSON")
}

// printJSON prints a value as one line of JSON.
func printJSON(cmd *cobra.Command, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeJSON(cmd.OutOrStdout(), append(text, '\n'))
}

// exitStatus makes a command of a function that returns an exit status and an error for stderr. A status of 0 with an
// error counts as 1.
func exitStatus(f func(cmd *cobra.Command, args []string) (int, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		status, err := f(cmd, args)
		if status <= 1 {
			return err
		}
		cmd.SilenceErrors = true
		if err != nil {
			cmd.PrintErrln(cmd.ErrPrefix(), clean(err.Error()))
		}
		// Only Caddy's own wrapper can make the error to carry an exit status to its main function.
		exit := caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return status, nil })
		return exit(cmd, args)
	}
}
