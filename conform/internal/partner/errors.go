// SPDX-License-Identifier: Apache-2.0

package partner

// Error is one of JSON-RPC.
type Error struct {
	Name    string
	Code    int
	Message string
	Data    any
}

var errorTable = []struct {
	name    string
	code    int
	message string
}{
	{"ParseError", -32700, "Invalid JSON payload"},
	{"InvalidRequest", -32600, "Invalid JSON-RPC Request"},
	{"MethodNotFound", -32601, "Method not found"},
	{"InvalidParams", -32602, "Invalid method parameters"},
	{"InternalError", -32603, "Internal server error"},
	{"TaskNotFoundError", -32001, "Task not found"},
	{"TaskNotCancelableError", -32002, "Task cannot be canceled"},
	{"UnsupportedOperationError", -32004, "This operation is not supported"},
	{"GroupNotSupportedError", -32007, "Group communication is not supported"},
	{"AuthenticationRequiredError", -32008, "Authentication required"},
	{"AuthorizationFailedError", -32009, "Authorization failed"},
}

func codes() map[string]int {
	all := make(map[string]int)
	for _, e := range errorTable {
		all[e.name] = e.code
	}
	return all
}

func (p *Partner) failure(name string, data any) *Error {
	for _, e := range errorTable {
		if e.name == name {
			return &Error{name, p.Codes[name], e.message, data}
		}
	}
	panic("no error " + name)
}

// Failure returns an error by its name.
func (p *Partner) Failure(name string) *Error { return p.failure(name, nil) }

func (p *Partner) invalid(member string) *Error {
	return p.failure("InvalidParams", Object{"member": member})
}
