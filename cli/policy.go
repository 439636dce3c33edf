// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// policyRules are the rules and quotas of all Partners.
var policyRules = &listing[adminapi.RuleList, adminapi.Rule]{
	path:    adminapi.PolicyRules,
	entries: func(l *adminapi.RuleList) ([]adminapi.Rule, string) { return l.Rules, "" },
	header:  "RULE\tKIND\tALLOWED\tDENIED\tDRY RUN\tAGENT",
	row: func(r *adminapi.Rule) string {
		return fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%s", clean(r.Name), r.Kind, r.Allowed, r.Denied, r.DryRun,
			agentOf(r.OfAgent, r.Partner))
	},
	none: "There are no rules and no quotas.",
}

// quotaUses are the counts of quotas.
var quotaUses = &listing[adminapi.QuotaPage, adminapi.QuotaUse]{
	path:    adminapi.QuotaUses,
	what:    "entries",
	entries: func(p *adminapi.QuotaPage) ([]adminapi.QuotaUse, string) { return p.Quotas, p.Next },
	header:  "QUOTA\tDAY\tSTARTS\tBYTES\tOF",
	row: func(u *adminapi.QuotaUse) string {
		return fmt.Sprintf("%s\t%s\t%d\t%d\t%s", clean(u.Quota), u.Day.Format(time.DateOnly), u.Starts, u.Bytes,
			clean(orDash(u.Of)))
	},
	none: "No quota has counted anything.",
}

// deniedStatus is the exit status of a denied call.
const deniedStatus = 2

func policyTestCommand() *cobra.Command {
	var q doctor.Question
	var config, adapter, certificate string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "test --method <method> [--as <leader>] [--config <file>]",
		Short: "Says which rule decides about a call, and which quotas count it",
		Long: `
Says which rule of a configuration decides about a call, and which quotas count it. It
reads the configuration only: nothing is sent or counted, and Caddy need not run.

--as is the AIC of the Leader, or its name in the logs, such as aid:alice.aid.pub; without
it, the caller has proven nothing. --certificate gives the attributes of a certificate
(and its AIC, without --as), and --claims those of a token.

--method is a command (get, start, continue, cancel, ...), or the dialect's own name, such
as message/send; then --command says what it asks for.

Exit status: 0 the call is allowed; 2 it is denied; 1 the configuration cannot be asked.
`,
		Example: `  $ caddy aip policy test --as 10001000011K912345E789ABCDEF2353 --method start
  $ caddy aip policy test --as aid:alice.aid.pub --method task.create --command start`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringVar(&q.Leader, "as", "", "the Leader that calls (default: who has proven nothing)")
	flags.StringVar(&q.Method, "method", "", "what is asked for")
	flags.StringVar(&q.Command, "command", "", "the command that --method is, if that is the dialect's own name")
	flags.StringVar(&q.Dialect, "dialect", "", "the dialect of the caller (default: the first one that is served)")
	flags.StringVar(&q.Skill, "skill", "", "the skill that is asked for")
	flags.StringVar(&q.Mount, "mount", "", "only of the Partner that is mounted at this path (default: all)")
	flags.StringVar(&certificate, "certificate", "", "a PEM file with the certificate of the caller")
	flags.StringVar(&q.Claims, "claims", "", "the claims of the caller's token, as a JSON object")
	flags.StringVarP(&config, "config", "c", "", "the configuration (default: the Caddyfile of this directory)")
	flags.StringVarP(&adapter, "adapter", "a", "", "the adapter of another format than Caddyfile and JSON")
	outputFlag(cmd, &asJSON)
	cmd.RunE = exitStatus(func(cmd *cobra.Command, _ []string) (int, error) {
		if q.Method == "" && q.Command == "" {
			return 1, errors.New("say what is asked for, by --method")
		}
		if q.Command == "" {
			if strings.ContainsAny(q.Method, "/.") || strings.ToLower(q.Method) != q.Method {
				return 1, fmt.Errorf("say by --command what %s asks for, such as start or get", q.Method)
			}
			q.Command, q.Method = q.Method, ""
		}
		if q.Claims != "" && !json.Valid([]byte(q.Claims)) {
			return 1, errors.New("--claims must be a JSON object")
		}
		if certificate != "" {
			if err := readCertificate(certificate, &q); err != nil {
				return 1, err
			}
		}
		decisions, err := doctor.AskPolicies(config, adapter, &q)
		if err != nil {
			return 1, err
		}
		status := 0
		for i := range decisions {
			if !decisions[i].Allowed {
				status = deniedStatus
			}
		}
		return status, printDecisions(cmd, decisions, asJSON)
	})
	return cmd
}

// printDecisions prints decisions as lines, or as JSON. The decision of a single Partner needs no name.
func printDecisions(cmd *cobra.Command, decisions []doctor.Decision, asJSON bool) error {
	if asJSON {
		return printJSON(cmd, struct {
			Decisions []doctor.Decision `json:"decisions"`
		}{decisions})
	}
	for i := range decisions {
		d := &decisions[i]
		if len(decisions) > 1 {
			fmt.Fprintf(cmd.OutOrStdout(), "%s (%s): ", clean(d.Mount), clean(d.Partner))
		}
		fmt.Fprintln(cmd.OutOrStdout(), clean(d.String()))
	}
	return nil
}

// readCertificate reads the certificate of a caller.
func readCertificate(file string, q *doctor.Question) error {
	chain, err := certfile.Read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	q.Certificate = chain[0]
	if aic, err := identity.FromCertificate(q.Certificate); err == nil && q.Leader == "" {
		q.Leader = string(aic)
	}
	return nil
}
