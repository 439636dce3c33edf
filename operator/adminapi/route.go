// SPDX-License-Identifier: Apache-2.0

package adminapi

import "slices"

// A Route is a route of the admin API, and the commands of caddy aip that ask it. The aip app has a handler for each
// path; the commands have what each of them prints.
type Route struct {
	Path   string
	Method string   // as in the header Allow: one, or several
	Query  []string // the parameters that it takes; nil for none
	// Console is the permission that the console needs to ask it; empty where the console does not.
	Console  Permission
	Commands []Command
}

// A Command is a command of caddy aip that asks a route. The flags that say where the gateway is, and those of any
// list, are left out.
type Command struct {
	Name string // the words after caddy aip
	// Args are its arguments and flags, as its help shows them: <one>, [<one or none>], [<any number>...].
	Args    string
	Short   string
	Long    string
	Example string
	Flags   []Flag
}

// A Flag is a flag of a command whose value is a text. With underscores, its name is that of a parameter, which each
// route gets that takes it.
type Flag struct {
	Name, Help string
	Many       bool // it may be repeated
}

// A Permission allows the console to ask a route.
type Permission string

// The permissions. All but MayRead must be given by an operator.
const (
	MayRead   Permission = "read"
	MayCancel Permission = "cancel"    // tasks
	MayFail   Permission = "fail"      // tasks: to end them as failed, whatever their agents answer
	MayReplay Permission = "replay"    // notifications that were not delivered
	MaySwitch Permission = "endpoints" // to disable and enable endpoints of webhooks
	MayLeave  Permission = "leave"     // groups
	MayTry    Permission = "try"       // Partners: to start and continue tasks as the operator
)

// Permissions returns all permissions that an operator can give.
func Permissions() []Permission {
	return []Permission{MayCancel, MayFail, MayReplay, MaySwitch, MayLeave, MayTry}
}

// RouteOf returns the route with a path; nil for none.
func RouteOf(path string) *Route {
	if i := slices.IndexFunc(Routes, func(r Route) bool { return r.Path == path }); i >= 0 {
		return &Routes[i]
	}
	return nil
}
