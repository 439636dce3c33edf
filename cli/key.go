// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/notify/sign"
)

func webhookKeyCommand() *cobra.Command {
	var hmac, asJSON bool
	cmd := &cobra.Command{
		Use:   "webhook-key [--hmac]",
		Short: "Makes a key that signs notifications",
		Long: `
Makes a key for signing_key. By default it is an ed25519 key. Give its public half
to the receivers of notifications: they can verify, but not sign. With --hmac it is
a secret that both sides share, with which every receiver could sign.
`,
		Example: `  $ caddy aip webhook-key
  $ caddy aip webhook-key --hmac`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			secret := sign.Generate()
			if hmac {
				secret = sign.GenerateHMAC()
			}
			key, err := sign.Parse(secret)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd, struct {
					SigningKey string `json:"signing_key"`
					Public     string `json:"public,omitempty"`
				}{secret, key.Public()})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "signing_key  %s\n", secret)
			if public := key.Public(); err == nil && public != "" {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "public       %s\n", public)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&hmac, "hmac", false, "make a shared secret (whsec_…) instead of a key pair")
	outputFlag(cmd, &asJSON)
	return cmd
}
