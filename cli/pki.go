// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/identity"
)

// pkiDir is the folder of the certificates for development.
const pkiDir = ".pki"

func pkiCommand() *cobra.Command {
	var o devpki.Options
	var leader string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "pki [--dir <folder>] [--host <host>...] [--leader <aic>] [--force]",
		Short: "Makes certificates for development",
		Long: `
Makes a root, a certificate for the gateway and two for a Leader, each with an
AIC in it, and their keys:

  ca.pem         the root; the gateway and the Leader trust it
  server.pem     for the gateway: localhost, 127.0.0.1, ::1 and every --host
  leader.pem     for a Leader, in the profile of ACPs v02.00 and later
  leader-v1.pem  for a Leader, in the profile of ACPs v01.00

Each key is beside its certificate: server-key.pem. Valid certificates are kept,
so the command can be repeated. Certificates that have expired, or lack a --host
or the --leader, are replaced.

This is for development. Keys are stored in plain files, and no registrar knows
the AICs.
`,
		Example: `  $ caddy aip pki
  $ caddy aip pki --host agent.example.com --host 192.0.2.7
  $ caddy aip pki --leader 10001000011K912345E789ABCDEF2353`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&o.Dir, "dir", pkiDir, "the folder")
	cmd.Flags().StringArrayVar(&o.Hosts, "host", nil, "a name or an IP address of the gateway; may be repeated")
	cmd.Flags().StringVar(&leader, "leader", "", "the AIC of both Leader certificates (default: a new one for each)")
	cmd.Flags().BoolVar(&o.Force, "force", false, "replace all certificates")
	outputFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if leader != "" {
			aic, err := identity.ParseAIC(leader)
			if err != nil {
				return fmt.Errorf("--leader: %w", err)
			}
			o.Leader = aic
		}
		p, err := devpki.Make(o)
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(cmd, filesOf(p))
		}
		return printPKI(cmd.OutOrStdout(), p)
	}
	return cmd
}

// pkiFiles is the JSON of pki.
type pkiFiles struct {
	Files []pkiFile `json:"files"`
}

type pkiFile struct {
	Certificate string       `json:"certificate"`
	Key         string       `json:"key"`
	Role        string       `json:"role"`
	AIC         identity.AIC `json:"aic,omitempty"`
	NotAfter    time.Time    `json:"not_after"`
	Made        bool         `json:"made"`                   // otherwise it was kept
	Reason      string       `json:"reason,omitempty"`       // the reason for replacing an earlier one
	ExpiresSoon bool         `json:"expires_soon,omitempty"` // within 30 days
}

func filesOf(p *devpki.PKI) (all pkiFiles) {
	for _, f := range p.Files() {
		all.Files = append(all.Files, pkiFile{f.Cert, f.Key, f.Role, f.AIC, f.NotAfter.UTC(), f.Made, f.Because, f.Expires})
	}
	return all
}

func printPKI(out io.Writer, p *devpki.PKI) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range p.Files() {
		verb, remark := "kept", ""
		switch {
		case f.Made:
			verb = "made"
			if f.Because != "" {
				remark = ", because " + f.Because
			}
		case f.Expires:
			remark = ", which is soon: --force replaces all of them"
		}
		fmt.Fprintf(w, "%s\t%s\t%s, until %s%s\n", verb, f.Cert, f.Role, f.NotAfter.UTC().Format(time.DateOnly), remark)
		if f.AIC != "" {
			fmt.Fprintf(w, "\t\t%s\n", f.AIC)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, `
For the site in the Caddyfile:

	tls %s %s {
		client_auth {
			mode require_and_verify
			trust_pool file %s
		}
	}

Next: caddy aip sample-agent
`, filepath.ToSlash(p.Server.Cert), filepath.ToSlash(p.Server.Key), filepath.ToSlash(p.CA.Cert))
	return err
}
