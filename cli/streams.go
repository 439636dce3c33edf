// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// streams are the open streams of all callers.
var streams = &listing[adminapi.StreamPage, adminapi.Stream]{
	path:    adminapi.Streams,
	what:    "streams",
	entries: func(p *adminapi.StreamPage) ([]adminapi.Stream, string) { return p.Streams, string(p.Next) },
	header:  "TASK\tSINCE\tEVENTS\tBEHIND\tTRANSPORT\tDIALECT\tADDRESS\tLEADER\tAGENT",
	row: func(s *adminapi.Stream) string {
		behind := "-" // it is not known
		if s.Behind != nil {
			behind = strconv.FormatUint(*s.Behind, 10)
		}
		return fmt.Sprintf("%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s", clean(s.Task), stamp(s.Since), s.Events, behind,
			clean(s.Transport), s.Dialect, clean(s.Address), clean(s.Leader), agentOf(s.OfAgent, s.Partner))
	},
	none: "No such stream is open.",
}
