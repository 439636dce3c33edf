// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/trust/authn"
)

func keyCommand() *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "key <name> [--file <keys>] [--json]",
		Short: "Makes a key for a caller",
		Long: `
Makes a key by which a caller proves to the gateway that it is key:<name>. The key is
printed once, and stored nowhere: give it to the caller. The line with its hash
belongs into the file that keys names in the block identity; --file adds it there.
The gateway has read the file when its configuration is loaded: run caddy reload
--force after a change.
`,
		Example: `  $ caddy aip key reports --file /etc/caddy/keys
  $ curl -H "Authorization: Bearer aipk_..." https://localhost:8443/`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, line, err := authn.MakeKey(args[0])
			if err != nil {
				return err
			}
			if file != "" {
				if err := authn.AddKey(file, line); err != nil {
					return err
				}
			}
			if asJSON {
				return printJSON(cmd, struct {
					Key    string `json:"key"`
					Line   string `json:"line"`
					Leader string `json:"leader"`
				}{key, line, "key:" + args[0]})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "key   %s\nline  %s\n", key, line)
			return err
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the file to which the line is added; it is made if it does not exist")
	outputFlag(cmd, &asJSON)
	return cmd
}
