// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/shown"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// showAgentSettings answers with the settings of a Partner that are in force.
func showAgentSettings(a *Admin, r *http.Request) (any, error) {
	name := r.URL.Query().Get("partner")
	if a.Partners().Named(name) == nil {
		return nil, errUnknownPartner(name)
	}
	return adminapi.AgentSettings{Partner: name, Settings: a.current().Settings(name)}, nil
}

// SettingsOf returns the settings in a struct of the configuration that are not empty, in the order of its fields, by
// their names in JSON. Of secret ones, and those below them, only the placeholders are shown.
func SettingsOf(of any, secret ...string) []adminapi.Setting {
	l := settingsList{secret: secret}
	l.read(reflect.ValueOf(of), "")
	return l.all
}

// settingsList collects settings.
type settingsList struct {
	secret []string
	all    []adminapi.Setting
}

// read adds the settings in a value. Their names begin with name.
func (l *settingsList) read(v reflect.Value, name string) {
	if v.IsZero() {
		return
	}
	below := func(part string) string { return strings.TrimPrefix(name+"."+part, ".") }
	switch v.Kind() {
	case reflect.Pointer:
		if to := v.Elem(); to.IsZero() && to.Kind() != reflect.Struct {
			l.add(name, textOf(to)) // it is set to nothing
		} else {
			l.read(to, name)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
			case f.Anonymous:
				l.read(v.Field(i), name)
			case tag != "" && f.IsExported():
				l.read(v.Field(i), below(tag))
			}
		}
	case reflect.Map:
		for _, key := range slices.Sorted(maps.Keys(stringKeys(v))) {
			l.read(v.MapIndex(reflect.ValueOf(key)), below(key))
		}
	case reflect.Slice:
		var words []string
		for i := range v.Len() {
			if one := v.Index(i); one.Kind() == reflect.Struct {
				l.read(one, name+"["+strconv.Itoa(i)+"]")
			} else {
				words = append(words, textOf(one))
			}
		}
		if words != nil {
			l.add(name, words...)
		}
	default:
		l.add(name, textOf(v))
	}
}

// add adds a setting.
func (l *settingsList) add(name string, words ...string) {
	s := adminapi.Setting{Name: name, Secret: slices.ContainsFunc(l.secret, func(secret string) bool {
		return name == secret || strings.HasPrefix(name, secret+".")
	})}
	if s.Secret {
		for i, w := range words {
			words[i] = masked(w)
		}
	}
	s.Value = strings.Join(words, " ")
	l.all = append(l.all, s)
}

// stringKeys returns the keys of a map.
func stringKeys(v reflect.Value) map[string]bool {
	keys := make(map[string]bool, v.Len())
	for _, key := range v.MapKeys() {
		keys[key.String()] = true
	}
	return keys
}

// textOf returns a value as a Caddyfile has it.
func textOf(v reflect.Value) string {
	if v.Kind() == reflect.Int64 && v.Type().Name() == "Duration" { // of time, or of the host
		return time.Duration(v.Int()).String()
	}
	return fmt.Sprint(v.Interface())
}

// masked returns a secret without what stands beside its placeholders.
func masked(secret string) string {
	names := shown.Placeholders(secret)
	if strings.Join(names, "") == secret {
		return secret
	}
	return strings.Join(append([]string{"***"}, names...), " ")
}
