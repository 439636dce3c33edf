// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/identity"
)

func aicCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "aic <command>",
		Short: "Checks and makes AICs",
		Long: `
Checks and makes Agent Identity Codes of both forms: 32 characters (ACPs v01.00)
and ten levels with dots between them (ACPs v02.00 and later).
`,
	}
	onlyGroup(cmd)
	cmd.AddCommand(aicCheckCommand(), aicMakeCommand())
	return cmd
}

func aicCheckCommand() *cobra.Command {
	var salt string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check <aic> [--salt <hex>] [--json]",
		Short: "Checks an AIC",
		Long: `
Checks the format of an AIC, and its check digits. Those of an AIC with dots
depend on a secret salt of its registrar: they are checked only with --salt.

Exit status: 0 the AIC is valid; 1 it is not.
`,
		Example: `  $ caddy aip aic check 10001000011K912345E789ABCDEF2353
  $ caddy aip aic check 1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4 --salt 1234`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&salt, "salt", "", "the registrar's salt in hex, at least 2 bytes")
	outputFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var c identity.Checker
		if cmd.Flags().Changed("salt") {
			var err error
			if c.Salt, err = parseSalt(salt); err != nil {
				return err
			}
		}
		aic, err := c.Parse(args[0])
		verified := err == nil && (aic.Form() != identity.FormV2 || c.Salt != nil)
		if asJSON {
			checked := checkedAIC{Valid: err == nil, AIC: args[0]}
			if err != nil {
				checked.Error = err.Error()
			} else {
				checked.AIC, checked.Form, checked.Verified = string(aic), aic.Form(), verified
			}
			return errors.Join(err, printJSON(cmd, checked))
		}
		if err != nil {
			return err
		}
		remark := "check digits verified"
		if !verified {
			remark = "check digits not verified, because there is no --salt"
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is a valid AIC of form %s, %s\n", aic, aic.Form(), remark)
		return err
	}
	return cmd
}

// checkedAIC is the JSON of aic check.
type checkedAIC struct {
	AIC      string        `json:"aic"`
	Valid    bool          `json:"valid"`
	Form     identity.Form `json:"form,omitempty"`
	Verified bool          `json:"check_digits_verified"`
	Error    string        `json:"error,omitempty"` // the reason if it is not valid
}

func aicMakeCommand() *cobra.Command {
	var form, salt, ontology string
	var asJSON bool
	var v1 identity.FieldsV1
	var v2 identity.FieldsV2
	cmd := &cobra.Command{
		Use:   "make [--form v1|v2] [--salt <hex>] [...]",
		Short: "Makes an AIC",
		Long: `
Makes an AIC with valid check digits and, without --instance, a random instance
serial. It is for tests: no registrar knows it.

--manager, --registry and --year are fields of form v1; --registrar, --vendor and
--salt are of form v2.
`,
		Example: `  $ caddy aip aic make
  $ caddy aip aic make --form v2 --vendor 34C2 --salt 1234`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&form, "form", string(identity.FormV1), "v1: 32 characters; v2: ten levels")
	flags.StringVar(&salt, "salt", hex.EncodeToString(devpki.Salt), "the registrar's salt in hex, at least 2 bytes")
	flags.StringVar(&v1.Manager, "manager", "0001", "the provider of identity management")
	flags.StringVar(&v1.Registry, "registry", "00001", "the registering entity")
	flags.IntVar(&v1.Year, "year", 0, "the year of registration (default: the current year)")
	flags.StringVar(&v2.Registrar, "registrar", "1", "the registrar")
	flags.StringVar(&v2.Vendor, "vendor", "1", "the vendor")
	flags.StringVar(&ontology, "ontology", "1", "the ontology's serial")
	flags.StringVar(&v1.Instance, "instance", "", "the instance's serial (default: a random one)")
	outputFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		aic, err := identity.AIC(""), error(nil)
		switch identity.Form(form) {
		case identity.FormV1:
			if err := notWith(cmd, form, "registrar", "vendor", "salt"); err != nil {
				return err
			}
			v1.Ontology = ontology
			aic, err = identity.MakeV1(v1)
		case identity.FormV2:
			if err := notWith(cmd, form, "manager", "registry", "year"); err != nil {
				return err
			}
			var bytes []byte
			if bytes, err = parseSalt(salt); err == nil {
				v2.Ontology, v2.Instance = ontology, v1.Instance
				aic, err = identity.MakeV2(v2, bytes)
			}
		default:
			err = fmt.Errorf("--form is %q, but must be v1 or v2", form)
		}
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(cmd, struct {
				AIC  identity.AIC  `json:"aic"`
				Form identity.Form `json:"form"`
			}{aic, aic.Form()})
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), aic)
		return err
	}
	return cmd
}

// notWith refuses flags unknown to a form.
func notWith(cmd *cobra.Command, form string, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("an AIC of form %s has no --%s", form, name)
		}
	}
	return nil
}

func parseSalt(s string) ([]byte, error) {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "0x"), "0X")
	salt, err := hex.DecodeString(s)
	if err != nil || len(salt) < 2 {
		return nil, errors.New("--salt must be at least 2 bytes in hex: 1234")
	}
	return salt, nil
}
