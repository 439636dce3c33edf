// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"reflect"
	"testing"
	"time"
)

// TestCallsAreData: the arguments and results of Execute could be sent to another process: no function, channel,
// interface or lock is in them, and nothing unexported, so nothing of a call is lost on the way.
func TestCallsAreData(t *testing.T) {
	seen := make(map[reflect.Type]bool)
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		if seen[of] || of == reflect.TypeFor[time.Time]() {
			return
		}
		seen[of] = true
		switch of.Kind() {
		case reflect.Func, reflect.Chan, reflect.Interface, reflect.UnsafePointer, reflect.Uintptr:
			t.Errorf("%s is a %s", path, of)
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(path, of.Elem())
		case reflect.Map:
			walk(path, of.Key())
			walk(path, of.Elem())
		case reflect.Struct:
			for f := range of.Fields() {
				if !f.IsExported() && f.Tag.Get("json") == "-" {
					continue // a value without it says the same
				}
				if !f.IsExported() {
					t.Errorf("%s.%s is not exported", path, f.Name)
				}
				walk(path+"."+f.Name, f.Type)
			}
		}
	}
	walk("Call", reflect.TypeFor[Call]())
	walk("Result", reflect.TypeFor[Result]())
}
