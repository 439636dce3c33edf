// SPDX-License-Identifier: Apache-2.0

// Package endpoint names the addresses of a Partner of AIP. Each method has a path below the mount point (§6, §7).
// The endpoint in an ACS is the address of rpc, and Leaders look for the other methods beside it.
package endpoint

import "strings"

// rpc is the last segment of an endpoint.
const rpc = "/rpc"

// Of returns the endpoint of the Partner at a mount point.
func Of(mount string) string { return strings.TrimRight(mount, "/") + rpc }

// Mount returns the mount point of the Partner at an address: the part before its last segment, if that segment is rpc,
// else the address itself. A slash at its end marks a mount point.
func Mount(address string) string {
	if mount, is := strings.CutSuffix(address, rpc); is && !strings.HasSuffix(mount, ":/") { // else it is a host
		return mount
	}
	return strings.TrimRight(address, "/")
}

// Same reports whether a registered address is the endpoint of a Partner, or its mount point, as ACS had in its place
// before.
func Same(registered, endpoint string) bool {
	return registered == endpoint || Of(registered) == endpoint
}
