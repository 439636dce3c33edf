// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/task"
)

// listFields are the fields of an answer that is a list.
type listFields[T any] struct {
	entries *[]T
	missing *[]string
	next    *string // where the next page begins; nil for a list that is one page
}

// entry is a pointer to an entry of a list, which says which gateway has it.
type entry[T any] interface {
	*T
	SetGateway(name string)
}

// named has the entries of a gateway say its name, and returns them.
func named[T any, E entry[T]](entries []T, gateway string) []T {
	for i := range entries {
		E(&entries[i]).SetGateway(gateway)
	}
	return entries
}

// pageLimit reads how many entries a page of several gateways has.
func pageLimit(q url.Values, standard, most int) (int, error) {
	limit, err := readLimit(q)
	return min(cmp.Or(limit, standard), most), err
}

// merged makes an answer of a list in one page. fields returns those of an answer.
func merged[P, T any, E entry[T]](fields func(*P) listFields[T], order func(a, b T) int) sharedAnswer {
	return func(a *Admin, r *http.Request, q question) (any, error) {
		all, missing, err := askNodes[P](a, r, q)
		if err != nil {
			return nil, err
		}
		into := new(P)
		l := fields(into)
		*l.entries, *l.missing = []T{}, missing
		for _, one := range all {
			*l.entries = append(*l.entries, named[T, E](*fields(one.page).entries, one.name)...)
		}
		slices.SortStableFunc(*l.entries, order)
		return into, nil
	}
}

// paged makes an answer of a list in pages, which are those of one gateway after the other. fields returns those of an
// answer.
func paged[P, T any, E entry[T]](fields func(*P) listFields[T]) sharedAnswer {
	return func(a *Admin, r *http.Request, q question) (any, error) {
		limit, err := pageLimit(r.URL.Query(), defaultPage, maxPage)
		if err != nil {
			return nil, err
		}
		after, ok := r.URL.Query().Get("after"), false
		if q.From, q.After, ok = strings.Cut(after, nodeMark); !ok && after != "" {
			return nil, task.Errorf(task.InvalidParams, "after must be the value that the page before returned")
		}
		q.Paged = true
		all, missing, err := askNodes[P](a, r, q)
		if err != nil {
			return nil, err
		}
		into := new(P)
		l := fields(into)
		*l.entries, *l.missing = []T{}, missing
		for _, one := range all {
			part := fields(one.page)
			if n := len(*l.entries); n > 0 && n+len(*part.entries) > limit {
				*l.next = one.name + nodeMark
				break
			}
			*l.entries = append(*l.entries, named[T, E](*part.entries, one.name)...)
			if *part.next != "" {
				*l.next = one.name + nodeMark + *part.next
				break
			}
		}
		return into, nil
	}
}

// nodeMark stands between the name of a gateway and its own cursor. Neither has it.
const nodeMark = "!"

// The pages of all lists.
const (
	defaultPage = 100
	maxPage     = 1000
)
