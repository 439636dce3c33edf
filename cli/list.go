// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// listing is a list of the admin API, in pages P of entries E, and its form in print: as a table, or as the JSON of the
// pages.
type listing[P, E any] struct {
	path    string
	what    string                              // the entries, in a sentence; empty for a list of one page
	entries func(*P) (entries []E, next string) // next is the parameter after of the next page; empty on the last one
	header  string                              // cells are separated by tabs
	row     func(*E) string
	none    string // printed in place of a table without rows

	// name is the parameter to select entries by the argument of a command. missing is the format of the error if there is
	// none; several is the error if there is more than one, empty if there cannot be.
	name, missing, several string
}

// list is the deed of a command to print the list.
func (l *listing[P, E]) list(a *asking) func([]string) error {
	limit := 1
	if l.what == "" {
		a.jsonFlag("")
	} else {
		a.jsonFlag(", one page per line")
		a.Flags().IntVar(&limit, "limit", 100, "the largest number of "+l.what)
	}
	return func([]string) error {
		if limit < 1 {
			return errors.New("--limit must be above 0")
		}
		printed, shared := 0, false
		filter := a.query(a.route)
		table := tabwriter.NewWriter(a.OutOrStdout(), 0, 0, 2, ' ', 0)
		err := l.pages(a, maps.Clone(filter), limit, func(entries []E, raw []byte) error {
			if a.asJSON {
				return writeJSON(a.OutOrStdout(), raw)
			}
			if printed == 0 && len(entries) > 0 {
				shared = gatewayOf(&entries[0]) != ""
				if fmt.Fprint(table, l.header); shared {
					fmt.Fprint(table, "\tGATEWAY")
				}
				fmt.Fprintln(table)
			}
			for i := range entries {
				printed++
				if fmt.Fprint(table, l.row(&entries[i])); shared {
					fmt.Fprint(table, "\t", clean(gatewayOf(&entries[i])))
				}
				fmt.Fprintln(table)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if printed == 0 && !a.asJSON {
			fmt.Fprintln(table, strings.TrimSpace(l.none+" "+l.there(a, filter)))
		}
		return table.Flush()
	}
}

// gatewayOf returns the gateway of an entry, among several; empty for a single one.
func gatewayOf(entry any) string {
	if of, ok := entry.(interface{ AtGateway() string }); ok {
		return of.AtGateway()
	}
	return ""
}

// pages calls each with the pages selected by a query, and their JSON, up to a number of entries. It prints on stderr
// the parts they lack.
func (l *listing[P, E]) pages(a *asking, q url.Values, limit int, each func(entries []E, raw []byte) error) error {
	for said := ""; ; {
		if l.what != "" && limit > 0 {
			q.Set("limit", strconv.Itoa(min(limit, 1000)))
		}
		var page P
		raw, err := a.ask(adminapi.RouteOf(l.path), q, nil, &page)
		if err != nil {
			return err
		}
		var part adminapi.Partial
		if err := json.Unmarshal(raw, &part); err != nil {
			return err
		}
		if lacks := strings.Join(part.Missing, ", "); lacks != "" && lacks != said {
			a.PrintErrln("the list is not complete: no answer from " + clean(lacks))
			said = lacks
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

// find returns the entry named by an argument, and the JSON of its page. There must be one.
func (l *listing[P, E]) find(a *asking, name string) (entry *E, raw []byte, err error) {
	q := a.query(adminapi.RouteOf(l.path))
	q.Set(l.name, name)
	limit := 0 // the default of the gateway
	if l.several != "" {
		limit = 2
	}
	var found []E
	err = l.pages(a, q, limit, func(entries []E, page []byte) error {
		if found = append(found, entries...); len(entries) > 0 {
			raw = page
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, nil, err
	case len(found) == 0:
		return nil, nil, fmt.Errorf(l.missing, name)
	case len(found) > 1 && l.several != "":
		return nil, nil, errors.New(l.several)
	}
	return &found[0], raw, nil
}

// show returns the deed of a command to print one entry.
func (l *listing[P, E]) show(print func(*tabwriter.Writer, *E) error) deed {
	return func(a *asking) func([]string) error {
		a.jsonFlag("")
		return func(args []string) error {
			entry, raw, err := l.find(a, args[0])
			if err != nil {
				return err
			}
			if a.asJSON {
				return writeJSON(a.OutOrStdout(), raw)
			}
			table := tabwriter.NewWriter(a.OutOrStdout(), 0, 0, 2, ' ', 0)
			return errors.Join(print(table, entry), table.Flush())
		}
	}
}

// agentOf returns the name of a Partner: the one for people, else the one under which its tasks are stored.
func agentOf(name adminapi.OfAgent, partner string) string {
	return clean(cmp.Or(name.AgentName, partner))
}

// printLines prints lines of a name and a value.
func printLines(table *tabwriter.Writer, lines [][2]string) error {
	for _, line := range lines {
		fmt.Fprintf(table, "%s\t%s\n", line[0], clean(line[1]))
	}
	return table.Flush()
}
