// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/aun"
)

// aunIDFlags are the flags of aun-id.
type aunIDFlags struct {
	file, cert, gateway string
	register, json      bool
	roots               []string
}

func aunIDCommand() *cobra.Command {
	var f aunIDFlags
	cmd := &cobra.Command{
		Use:   "aun-id <aid> [--file <file>] [--register [--gateway <url>] | --cert <file>] [--roots <file>...]",
		Short: "Makes the gateway's own identity in AUN",
		Long: `
Makes the file with the gateway's own AID in AUN: a private key of the curve
P-256, and its certificate. Only its owner may read the file. A file that is
there is kept, so the command can be repeated.

The certificate comes from the AID's issuer. With --register the gateway of the
issuer is asked for it (auth.create_aid), found out by the AID or at the URL of
--gateway. With --cert it is read from a PEM file that the issuer has sent, for
the public key that the command prints. It is checked against --roots, if they
are given.
`,
		Example: `  $ caddy aip aun-id leader.aid.pub --register
  $ caddy aip aun-id leader.example.com --cert leader.pem --roots roots.pem`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&f.file, "file", "aun-id.pem", "the file with the identity")
	cmd.Flags().BoolVar(&f.register, "register", false, "have the issuer's gateway issue the certificate")
	cmd.Flags().StringVar(&f.gateway, "gateway", "", "the wss URL of that gateway (default: found out)")
	cmd.Flags().StringVar(&f.cert, "cert", "", "a PEM file with the certificate")
	cmd.Flags().StringArrayVar(&f.roots, "roots", nil, "a PEM file with roots to check the certificate; may be repeated")
	outputFlag(cmd, &f.json)
	cmd.MarkFlagsMutuallyExclusive("register", "cert")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		aid, err := aun.ParseAID(args[0])
		if err != nil {
			return err
		}
		return f.run(cmd, aid)
	}
	return cmd
}

func (f *aunIDFlags) run(cmd *cobra.Command, aid aun.AID) error {
	out := cmd.OutOrStdout()
	id, made, err := f.identity(aid)
	if err != nil {
		return err
	}
	var roots *aun.Roots
	if len(f.roots) > 0 {
		if roots, err = aun.LoadRoots(f.roots); err != nil {
			return err
		}
	}
	switch {
	case f.register && f.gateway != "" && aun.CheckURL(f.gateway) != nil:
		return errors.New("--gateway must be a wss:// or ws:// URL")
	case f.register:
		err = aun.Register(cmd.Context(), aun.ClientConfig{Identity: id, Roots: roots, URL: f.gateway})
	case f.cert != "":
		var text []byte
		if text, err = os.ReadFile(f.cert); err == nil {
			err = id.Certify(string(text), roots)
		}
	}
	if err != nil {
		return err
	}
	if f.register || f.cert != "" {
		if err := id.Save(f.file, true); err != nil {
			return err
		}
	}
	if f.json {
		return printJSON(cmd, f.summary(id, made))
	}
	return f.print(out, id, made)
}

// identity returns the identity in the file, or a new one, written there.
func (f *aunIDFlags) identity(aid aun.AID) (id *aun.Identity, made bool, err error) {
	id, err = aun.LoadIdentity(f.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if id, err = aun.NewIdentity(aid); err == nil {
			err = id.Save(f.file, false)
		}
		return id, true, err
	case err != nil:
		return nil, false, err
	case id.AID != aid:
		return nil, false, fmt.Errorf("%s is the identity of %s; choose another --file", f.file, id.AID)
	}
	return id, false, nil
}

// aunIdentity is the JSON of aun-id.
type aunIdentity struct {
	File      string     `json:"file"`
	AID       aun.AID    `json:"aid"`
	PublicKey string     `json:"public_key"`
	Made      bool       `json:"made"`                // otherwise it was kept
	NotAfter  *time.Time `json:"not_after,omitempty"` // of its certificate; nil without one
}

func (f *aunIDFlags) summary(id *aun.Identity, made bool) aunIdentity {
	s := aunIdentity{File: f.file, AID: id.AID, PublicKey: id.PublicKey(), Made: made}
	if len(id.Chain) > 0 {
		until := id.Chain[0].NotAfter.UTC()
		s.NotAfter = &until
	}
	return s
}

func (f *aunIDFlags) print(out io.Writer, id *aun.Identity, made bool) error {
	verb := "kept"
	if made {
		verb = "made"
	}
	until := "no certificate yet; give its issuer the public key, then use --cert, or use --register"
	if len(id.Chain) > 0 {
		until = "certificate until " + id.Chain[0].NotAfter.UTC().Format(time.DateOnly)
	}
	_, err := fmt.Fprintf(out, "%s  %s, %s, %s\npublic key  %s\n", verb, f.file, id.AID, until, id.PublicKey())
	return err
}
