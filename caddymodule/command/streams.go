// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
)

func streamsCommand() *cobra.Command {
	var filter taskFlags
	var id string
	list := listing[adminapi.StreamPage, adminapi.Stream]{
		path: adminapi.Streams,
		entries: func(p *adminapi.StreamPage) (list []adminapi.Stream, next string) {
			if p.Next > 0 {
				next = strconv.FormatUint(p.Next, 10)
			}
			return p.Streams, next
		},
		header: "TASK\tSINCE\tEVENTS\tBEHIND\tTRANSPORT\tDIALECT\tADDRESS\tLEADER\tPARTNER",
		row: func(s *adminapi.Stream) string {
			return fmt.Sprintf("%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s", clean(s.Task), stamp(s.Since), s.Events, behind(s),
				clean(s.Transport), s.Dialect, clean(s.Address), clean(s.Leader), clean(s.Partner))
		},
		none: "No such stream is open.",
	}
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
			q := filter.query()
			if id != "" {
				q.Set("task", id)
			}
			return list.print(cmd, q)
		},
	}
	list.add(cmd.Flags(), "streams")
	filter.add(cmd.Flags())
	cmd.Flags().StringVar(&id, "task", "", "of the task with this id")
	return cmd
}

// behind returns how many events a stream has still to send, if that is known.
func behind(s *adminapi.Stream) string {
	if s.Behind == nil {
		return "-"
	}
	return strconv.FormatUint(*s.Behind, 10)
}
