// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/endpoint"
	"github.com/aip-gateway/aip-gateway/translate/aip/acs"
)

// acsSources describes the possible arguments naming an ACS.
const acsSources = `An ACS is named by the URL of a Partner (the mount point of aip_gateway), by a URL of its
own, such as that of a registry (https://<registry>/acps-atr-v2/acs/<AIC>), by a file, or
by - for the standard input.
`

func acsExportCommand() *cobra.Command {
	var f connectionFlags
	cmd := &cobra.Command{
		Use:   "export <url>",
		Short: "Prints the ACS that a Partner serves",
		Long: `
Prints the ACS that a Partner serves, as it is to be registered. What a registry would
refuse in it is printed to stderr.

Exit status: 0 it is printed; 1 there is none.
`,
		Example: `  $ caddy aip acs export https://agent.example.com > acs.json`,
		Args:    cobra.ExactArgs(1),
	}
	f.add(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		body, err := f.readACS(cmd, args[0])
		if err != nil {
			return err
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, body, "", "  "); err != nil {
			return fmt.Errorf("the ACS is no JSON: %w", err)
		}
		for _, m := range checkedACS(body, true) {
			cmd.PrintErrln("a registry would refuse " + clean(m.String()))
		}
		indented.WriteByte('\n')
		return writeJSON(cmd.OutOrStdout(), indented.Bytes())
	}
	return cmd
}

func acsValidateCommand() *cobra.Command {
	var f connectionFlags
	var draft, asJSON bool
	cmd := &cobra.Command{
		Use:   "validate <acs>",
		Short: "Says what a registry would refuse in an ACS",
		Long: `
Says each mistake for which a registry, or its CA, would refuse an ACS: where it is, and
what to change.

` + acsSources + `
Exit status: 0 there is no mistake; 1 there is one, or the ACS cannot be read.
`,
		Example: `  $ caddy aip acs validate https://agent.example.com
  $ caddy aip acs validate --draft acs.json`,
		Args: cobra.ExactArgs(1),
	}
	f.add(cmd.Flags())
	outputFlag(cmd, &asJSON)
	cmd.Flags().BoolVar(&draft, "draft", false, "a registry has not assigned an AIC yet: accept an empty one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		body, err := f.readACS(cmd, args[0])
		if _, of := errors.AsType[*net.OpError](err); of && draft {
			return fmt.Errorf("%w; where the site has no certificate before the registration, caddy aip doctor says what a "+
				"registry would refuse", err)
		}
		if err != nil {
			return err
		}
		mistakes := checkedACS(body, draft)
		err = printFound(cmd, asJSON, "mistakes", mistakes, func(m acs.Mistake) string { return clean(m.String()) })
		if err == nil && len(mistakes) > 0 {
			err = fmt.Errorf("mistakes in the ACS: %d", len(mistakes))
		}
		return err
	}
	return cmd
}

func acsDiffCommand() *cobra.Command {
	var f connectionFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff <served> <registered>",
		Short: "Compares the ACS that is served with the one that is registered",
		Long: `
Compares the ACS that a Partner serves with the one that is registered. What a registry
writes by itself is no difference: its time, whether it is active, and the AIC. An ACS
that is approved can never change, so that a difference needs a new version.

` + acsSources + `
Exit status: 0 they are the same; 1 they differ; 2 they cannot be compared.
`,
		Example: `  $ caddy aip acs diff https://agent.example.com acs.json
  $ caddy aip acs diff https://agent.example.com https://registry.example/acps-atr-v2/acs/<AIC>`,
		Args: cobra.ExactArgs(2),
	}
	f.add(cmd.Flags())
	outputFlag(cmd, &asJSON)
	cmd.RunE = exitStatus(func(cmd *cobra.Command, args []string) (int, error) {
		served, err := f.readACS(cmd, args[0])
		if err != nil {
			return 2, err
		}
		registry := f // the flags of the Partner are not for it
		registry.partner, registry.verify = "", ""
		registered, err := registry.readACS(cmd, args[1])
		if err != nil {
			return 2, err
		}
		differences, err := acs.Diff(served, registered)
		if err != nil {
			return 2, err
		}
		err = printFound(cmd, asJSON, "differences", differences, func(d acs.Difference) string {
			return fmt.Sprintf("%s: served %s, registered %s", clean(d.Path), shownACS(d.Served), shownACS(d.Registered))
		})
		switch {
		case err != nil:
			return 2, err
		case len(differences) > 0:
			return 1, fmt.Errorf("differences: %d", len(differences))
		}
		return 0, nil
	})
	return cmd
}

// printFound prints findings in an ACS: a line for each, or JSON with a list of a name.
func printFound[T any](cmd *cobra.Command, asJSON bool, name string, found []T, line func(T) string) error {
	if asJSON {
		return printJSON(cmd, map[string][]T{name: append([]T{}, found...)})
	}
	for _, one := range found {
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), line(one)); err != nil {
			return err
		}
	}
	return nil
}

// shownACS returns a value for people.
func shownACS(v json.RawMessage) string {
	if len(v) == 0 {
		return "nothing"
	}
	return clean(string(v))
}

// checkedACS returns the mistakes in an ACS, of a draft without the mistake of an AIC not assigned yet.
func checkedACS(body []byte, draft bool) (mistakes []acs.Mistake) {
	var named struct{ AIC string }
	_ = json.Unmarshal(body, &named) // if it is no JSON, Check says so
	for _, m := range acs.Check(body) {
		if !draft || m.Path != "aic" || named.AIC != "" {
			mistakes = append(mistakes, m)
		}
	}
	if _, err := identity.ParseAIC(named.AIC); err != nil && named.AIC != "" && !draft {
		mistakes = append(mistakes, acs.Mistake{Path: "aic", Text: detail(err), Advice: "write the AIC that was assigned"})
	}
	return mistakes
}

// readACS reads an ACS at a URL, in a file, or from the standard input.
func (f *connectionFlags) readACS(cmd *cobra.Command, source string) ([]byte, error) {
	switch {
	case strings.HasPrefix(source, "https://"), strings.HasPrefix(source, "http://"):
		ctx, cancel := context.WithTimeout(cmd.Context(), describeTimeout)
		defer cancel()
		body, err := f.fetchACS(ctx, source)
		if err != nil {
			return nil, f.explain(err)
		}
		return body, nil
	case source == "-":
		return io.ReadAll(io.LimitReader(cmd.InOrStdin(), acs.MaxSize+1))
	}
	file, err := os.Open(source)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, acs.MaxSize+1))
}

// fetchACS fetches the ACS of the Partner at a URL, or the one at the URL itself.
func (f *connectionFlags) fetchACS(ctx context.Context, source string) ([]byte, error) {
	base, err := url.Parse(endpoint.Mount(source))
	if err != nil || base.Host == "" {
		return nil, errors.New("the URL must have a host")
	}
	client, err := f.reader(func() {})
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	status := 0
	for _, at := range []string{base.JoinPath(".well-known", "acs.json").String(), source} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
		if err != nil {
			return nil, err
		}
		res, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(io.LimitReader(res.Body, acs.MaxSize+1))
		res.Body.Close()
		switch {
		case err != nil:
			return nil, err
		case res.StatusCode == http.StatusOK:
			return body, nil
		}
		if status == 0 || res.StatusCode != http.StatusMethodNotAllowed {
			status = res.StatusCode
		}
	}
	return nil, &leader.StatusError{Status: status}
}
