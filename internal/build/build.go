// SPDX-License-Identifier: Apache-2.0

// Package build has the modules and the version of this program.
package build

import (
	"reflect"
	"runtime/debug"
	"strings"
)

// Module is the path of the gateway's module, also the place of its publication.
var Module = strings.TrimSuffix(reflect.TypeFor[of]().PkgPath(), "/internal/build")

// Docs is the address of the folder of the documentation.
var Docs = "https://" + Module + "/blob/main/docs/"

// of is a type of this package.
type of struct{}

// Version returns the version of a module in this program: of Module, or of a dependency of it. It is empty if it is
// not known, and v0.0.0 for a build from a folder.
func Version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module {
			return m.Version
		}
	}
	return ""
}
