// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
)

func streamsCommand() *cobra.Command {
	var admin adminFlags
	var filter taskFlags
	var id string
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "streams [--task <id>] [--leader <aic>] [--partner <aic>]",
		Short: "Lists the open streams of a running gateway",
		Long: `
Lists the open streams of a running gateway, the oldest first: whose task each sends,
since when, how many events it has sent, and how many are still to be sent. A stream
that is far behind has a caller that reads slowly. It uses Caddy's admin API.
`,
		Example: `  $ caddy aip streams
  $ caddy aip streams --task task-1 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return errors.New("--limit must be above 0")
			}
			q := filter.query()
			if id != "" {
				q.Set("task", id)
			}
			printed := 0
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for {
				q.Set("limit", strconv.Itoa(min(limit-printed, 1000)))
				var page adminapi.StreamPage
				raw, err := admin.ask(http.MethodGet, adminapi.Streams, q, nil, &page)
				if err != nil {
					return err
				}
				if asJSON {
					if _, err := cmd.OutOrStdout().Write(raw); err != nil {
						return err
					}
				} else if printed == 0 && len(page.Streams) > 0 {
					fmt.Fprintln(table, "TASK\tSINCE\tEVENTS\tBEHIND\tTRANSPORT\tDIALECT\tADDRESS\tLEADER\tPARTNER")
				}
				for i := range page.Streams {
					printed++
					if s := &page.Streams[i]; !asJSON {
						fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", clean(s.Task), stamp(s.Since), s.Events, behind(s),
							clean(s.Transport), s.Dialect, clean(s.Address), clean(s.Leader), clean(s.Partner))
					}
				}
				if page.Next == 0 || printed >= limit {
					break
				}
				q.Set("after", strconv.FormatUint(page.Next, 10))
			}
			if printed == 0 && !asJSON {
				fmt.Fprintln(table, "No such stream is open.")
			}
			return table.Flush()
		},
	}
	admin.add(cmd.Flags())
	filter.add(cmd.Flags())
	cmd.Flags().StringVar(&id, "task", "", "of the task with this id")
	cmd.Flags().IntVar(&limit, "limit", 100, "the largest number of streams")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the JSON of the admin API, one page per line")
	return cmd
}

// behind returns how many events a stream has still to send, if that is known.
func behind(s *adminapi.Stream) string {
	if s.Behind == nil {
		return "-"
	}
	return strconv.FormatUint(*s.Behind, 10)
}
