// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// listing is a list of the admin API, in pages P of entries E, and how a command prints it: as a table, or as the JSON
// of the pages.
type listing[P, E any] struct {
	path    string
	entries func(*P) (entries []E, next string) // next is the parameter after of the next page; empty on the last one
	header  string                              // cells are separated by tabs
	row     func(*E) string
	none    string // printed in place of a table without rows

	admin  adminFlags
	limit  int
	asJSON bool
}

func (l *listing[P, E]) add(set *pflag.FlagSet, entries string) {
	l.admin.add(set)
	set.IntVar(&l.limit, "limit", 100, "the largest number of "+entries)
	set.BoolVar(&l.asJSON, "json", false, "print the JSON of the admin API, one page per line")
}

// print prints what a query selects.
func (l *listing[P, E]) print(cmd *cobra.Command, q url.Values) error {
	if l.limit < 1 {
		return errors.New("--limit must be above 0")
	}
	printed := 0
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	err := l.pages(&l.admin, q, l.limit, func(entries []E, raw []byte) error {
		if l.asJSON {
			_, err := cmd.OutOrStdout().Write(raw)
			return err
		}
		if printed == 0 && len(entries) > 0 {
			fmt.Fprintln(table, l.header)
		}
		for i := range entries {
			printed++
			fmt.Fprintln(table, l.row(&entries[i]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if printed == 0 && !l.asJSON {
		fmt.Fprintln(table, l.none)
	}
	return table.Flush()
}

// pages calls each with the pages that a query selects, and their JSON, up to a number of entries.
func (l *listing[P, E]) pages(
	admin *adminFlags, q url.Values, limit int, each func(entries []E, raw []byte) error,
) error {
	for {
		q.Set("limit", strconv.Itoa(min(limit, 1000)))
		var page P
		raw, err := admin.ask(http.MethodGet, l.path, q, nil, &page)
		if err != nil {
			return err
		}
		entries, next := l.entries(&page)
		if err := each(entries, raw); err != nil {
			return err
		}
		if limit -= len(entries); next == "" || limit <= 0 {
			return nil
		}
		q.Set("after", next)
	}
}
