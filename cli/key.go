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
Makes a key for signing_key. With --hmac it is a secret (whsec_…) that both sides
share: choose it for receivers that verify by a library of Standard Webhooks, which
knows no other keys. Every receiver that has the secret could sign as well. Without
--hmac it is an ed25519 key: give its public half (whpk_…) to the receivers, which can
verify, but not sign. They need code of their own, such as that in docs/webhooks.md.
`,
		Example: `  $ caddy aip webhook-key --hmac
  $ caddy aip webhook-key`,
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
