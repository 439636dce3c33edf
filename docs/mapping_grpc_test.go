// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"testing"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// TestDocsMappingGRPC: an error over gRPC has the reason of the other bindings of 1.0, and the code that the page says.
func TestDocsMappingGRPC(t *testing.T) {
	server := a2a.V1GRPCServer(false)
	var want [][]string
	for _, kind := range answeredKinds() {
		err := task.Errorf(kind, "x")
		st, info := new(status.Status), new(errdetails.ErrorInfo)
		if err := proto.Unmarshal(server.AppendError(nil, nil, err), st); err != nil {
			t.Fatal(err)
		}
		if len(st.Details) != 1 || st.Details[0].UnmarshalTo(info) != nil {
			t.Errorf("%s has the details %v", kind, st.Details)
		}
		rest := word(mappedServers[inREST].AppendError(nil, nil, err), "error", "details", "0", "reason")
		if info.Reason != rest {
			t.Errorf("%s has the reason %s, and %s in REST", kind, info.Reason, rest)
		}
		want = append(want, []string{kind.String(), code.Code(st.Code).String()})
	}
	mapped(t, kindsHeader, want, 0, 3)
}
