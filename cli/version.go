// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/internal/build"
)

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Prints the version of the gateway",
		Long: `
Prints the version of the gateway in this program, beside those of Caddy and Go. One
that was built from a folder, and is no release, has the version v0.0.0. The metric
aip_build_info has the versions of the process that runs.
`,
		Example: `  $ caddy aip version`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			gateway, caddy := version(build.Module), version("github.com/caddyserver/caddy/v2")
			if asJSON {
				return printJSON(cmd, struct {
					Gateway string `json:"gateway"`
					Caddy   string `json:"caddy"`
					Go      string `json:"go"`
				}{gateway, caddy, runtime.Version()})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "gateway  %s\ncaddy    %s\ngo       %s\n", gateway, caddy,
				runtime.Version())
			return err
		},
	}
	outputFlag(cmd, &asJSON)
	return cmd
}

func version(module string) string { return cmp.Or(build.Version(module), "(unknown)") }

// pageOf is the page of the documentation about each command, by its first word.
var pageOf = map[string]string{
	"acs":          "discovery.md",
	"aic":          "getting-started.md",
	"aun-id":       "aun.md",
	"call":         "operations.md#commands-and-the-admin-api",
	"certificates": "certificates.md",
	"cluster":      "cluster.md",
	"console":      "operations.md#the-console",
	"deliveries":   "webhooks.md#failed-deliveries",
	"describe":     "operations.md#commands-and-the-admin-api",
	"discover":     "discovery.md#found",
	"doctor":       "troubleshooting.md#a-set-up-that-does-not-work",
	"drain":        "operations.md#drain",
	"groups":       "groups.md#watching-groups",
	"issuers":      "security.md#tokens",
	"key":          "security.md#keys",
	"pki":          "getting-started.md",
	"policy":       "policy.md",
	"sample-agent": "getting-started.md",
	"store":        "operations.md#the-store",
	"streams":      "operations.md#open-streams",
	"tasks":        "operations.md#tasks",
	"version":      "upgrading.md",
	"webhook-key":  "webhooks.md#signing-keys",
}

// footer ends the help of a command, and of those below it, with the address of its page; in place of the address of
// Caddy's commands at the root of all commands.
func footer(cmd *cobra.Command, page string) {
	cmd.SetHelpTemplate(new(cobra.Command).HelpTemplate() + "\nThis is documented at:\n" + build.Docs + page + "\n")
}
