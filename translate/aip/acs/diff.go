// SPDX-License-Identifier: Apache-2.0

package acs

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/endpoint"
)

// Difference is a place of a difference between two documents. A value is JSON, or empty if a document has none there.
type Difference struct {
	Path       string          `json:"path"`
	Served     json.RawMessage `json:"served,omitempty"`
	Registered json.RawMessage `json:"registered,omitempty"`
}

// AtMount reports whether a difference is an endpoint with the mount point in the registered ACS, as ACS had it before.
func (d *Difference) AtMount() bool {
	var served, registered string
	return strings.HasPrefix(d.Path, "endPoints[") && strings.HasSuffix(d.Path, "].url") &&
		json.Unmarshal(d.Served, &served) == nil && json.Unmarshal(d.Registered, &registered) == nil &&
		served == endpoint.Of(registered)
}

// byRegistry are the members kept by a registry itself.
var byRegistry = []string{"active", "lastModifiedTime", "entityUserId", "entityMeta"}

// Diff returns the differences between the served ACS and the registered one. The order of members, null in place of a
// missing one, the case of an AIC, and the members written by a registry itself are no differences.
func Diff(served, registered []byte) ([]Difference, error) {
	ours, err := read(served)
	if err != nil {
		return nil, fmt.Errorf("the ACS that is served: %w", err)
	}
	theirs, err := read(registered)
	if err != nil {
		return nil, fmt.Errorf("the ACS that is registered: %w", err)
	}
	for _, name := range byRegistry {
		delete(ours, name)
		delete(theirs, name)
	}
	a, _ := ours["aic"].(string)
	b, _ := theirs["aic"].(string)
	if a == Unassigned {
		a = ""
	}
	if b == Unassigned {
		b = ""
	}
	if a == "" || b == "" || strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) {
		delete(ours, "aic") // one is a draft, without an AIC assigned yet
		delete(theirs, "aic")
	}
	aic := a
	if aic == "" {
		aic = b
	}
	var found []Difference
	compare(&found, "", fill(ours, aic), fill(theirs, aic))
	return found, nil
}

// fill puts an AIC into the texts of a document, and removes null members.
func fill(v any, aic string) any {
	switch v := v.(type) {
	case string:
		return assigned(v, aic)
	case []any:
		for i := range v {
			v[i] = fill(v[i], aic)
		}
	case map[string]any:
		for name, value := range v {
			if value == nil {
				delete(v, name)
				continue
			}
			v[name] = fill(value, aic)
		}
	}
	return v
}

// compare adds the places below a path with a difference between two values.
func compare(found *[]Difference, path string, a, b any) {
	am, aOK := a.(map[string]any)
	bm, bOK := b.(map[string]any)
	if aOK && bOK {
		names := slices.Collect(maps.Keys(am))
		for name := range bm {
			if _, there := am[name]; !there {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			compare(found, join(path, name), am[name], bm[name])
		}
		return
	}
	al, aOK := a.([]any)
	bl, bOK := b.([]any)
	if aOK && bOK {
		for i := range max(len(al), len(bl)) {
			compare(found, fmt.Sprintf("%s[%d]", path, i), at(al, i), at(bl, i))
		}
		return
	}
	if !reflect.DeepEqual(a, b) {
		*found = append(*found, Difference{path, encoded(a), encoded(b)})
	}
}

// at returns a value of a list; nil beyond its end.
func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

// encoded returns a value as JSON; nothing for none.
func encoded(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	text, _ := json.Marshal(v) // it was read from JSON
	return text
}
