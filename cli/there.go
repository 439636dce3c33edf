// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// The bounds of the words about entries left out by a filter.
const (
	thereEntries = 1000 // are read
	thereValues  = 5    // of one parameter are named
)

// there says what there is without the filter, if the filter leaves nothing: how many entries, and their values of the
// filter's parameters. It is empty if there are none, or no filter.
func (l *listing[P, E]) there(a *asking, filter url.Values) string {
	if len(filter) == 0 {
		return ""
	}
	count := 0
	values := make(map[string]map[string]bool)
	err := l.pages(a, make(url.Values), thereEntries, func(entries []E, _ []byte) error {
		for i := range entries {
			count++
			raw, err := json.Marshal(&entries[i])
			var entry map[string]any
			if err == nil {
				err = json.Unmarshal(raw, &entry)
			}
			if err != nil {
				return err
			}
			for name := range filter {
				value, _ := entry[name].(string)
				if name == "partner" {
					people, _ := entry["agent_name"].(string)
					value = cmp.Or(people, value)
				}
				if value == "" {
					continue
				}
				if values[name] == nil {
					values[name] = make(map[string]bool)
				}
				values[name][value] = true
			}
		}
		return nil
	})
	if err != nil || count == 0 {
		return "" // the list itself has been read, as requested
	}
	number := fmt.Sprint(count)
	if count >= thereEntries {
		number = "at least " + number
	}
	var named []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all := slices.Sorted(maps.Keys(values[name]))
		text := name + " " + strings.Join(all[:min(len(all), thereValues)], ", ")
		if more := len(all) - thereValues; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		named = append(named, text)
	}
	sentence := "Without this filter: " + number
	if len(named) > 0 {
		sentence += ", with " + strings.Join(named, "; ")
	}
	return clean(sentence) + "."
}
