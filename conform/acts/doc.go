// SPDX-License-Identifier: Apache-2.0

// Package acts reads documents of ACTS, the conformance tests of A2A as data, and of the extension in FORMAT.md. It
// knows no network: it loads, checks and resolves, and it says how a value differs from an assertion.
//
//	Load ──▶ Document ──▶ Suite ──▶ Test ──▶ Step          (document.go, load.go)
//	                                          │ params ──▶ Vars.Resolve      (vars.go)
//	                                          │ expect ──▶ Match ──▶ []Mismatch   (match.go)
//	                                          └ capture ──▶ Path.Of          (path.go)
//
// Values are those of encoding/json with UseNumber, so that a number keeps its digits: map[string]any, []any, string,
// json.Number, bool and nil. Load turns YAML into them, too.
package acts
