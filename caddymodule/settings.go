// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// secretSettings are the settings of a Partner that hold secrets, by name, with those below them.
var secretSettings = []string{"agent.header_up", "group.token_key"}

// showAgentSettings answers with the settings of a Partner that are in force.
func showAgentSettings(o *openStore, r *http.Request) (any, error) {
	name := r.URL.Query().Get("partner")
	g := o.member(name)
	if g == nil {
		return nil, errUnknownPartner(name)
	}
	return adminapi.AgentSettings{Partner: g.name(), Settings: settingsOf(reflect.ValueOf(g), "")}, nil
}

// settingsOf returns the settings in a value of the configuration that are not empty, in the order of its fields. Their
// names begin with name.
func settingsOf(v reflect.Value, name string) (all []adminapi.Setting) {
	if v.IsZero() {
		return nil
	}
	below := func(part string) string { return strings.TrimPrefix(name+"."+part, ".") }
	switch v.Kind() {
	case reflect.Pointer:
		if to := v.Elem(); to.IsZero() && to.Kind() != reflect.Struct {
			return []adminapi.Setting{settingOf(name, textOf(to))} // it is set to nothing
		}
		return settingsOf(v.Elem(), name)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			switch tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
			case f.Anonymous:
				all = append(all, settingsOf(v.Field(i), name)...)
			case tag != "" && f.IsExported():
				all = append(all, settingsOf(v.Field(i), below(tag))...)
			}
		}
		return all
	case reflect.Map:
		for _, key := range slices.Sorted(maps.Keys(stringKeys(v))) {
			all = append(all, settingsOf(v.MapIndex(reflect.ValueOf(key)), below(key))...)
		}
		return all
	case reflect.Slice:
		var words []string
		for i := range v.Len() {
			if one := v.Index(i); one.Kind() == reflect.Struct {
				all = append(all, settingsOf(one, name+"["+strconv.Itoa(i)+"]")...)
			} else {
				words = append(words, textOf(one))
			}
		}
		if words != nil {
			all = append(all, settingOf(name, words...))
		}
		return all
	}
	return []adminapi.Setting{settingOf(name, textOf(v))}
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
	if d, ok := v.Interface().(caddy.Duration); ok {
		return time.Duration(d).String()
	}
	return fmt.Sprint(v.Interface())
}

// settingOf returns a setting. Of a secret, only its placeholders are shown.
func settingOf(name string, words ...string) adminapi.Setting {
	s := adminapi.Setting{Name: name}
	for _, secret := range secretSettings {
		s.Secret = s.Secret || name == secret || strings.HasPrefix(name, secret+".")
	}
	if s.Secret {
		for i, w := range words {
			words[i] = masked(w)
		}
	}
	s.Value = strings.Join(words, " ")
	return s
}

// masked returns a secret without what stands beside its placeholders.
func masked(secret string) string {
	names := conf.Placeholders(secret)
	if shown := strings.Join(names, ""); shown == secret {
		return secret
	}
	return strings.Join(append([]string{"***"}, names...), " ")
}
