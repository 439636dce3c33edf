// SPDX-License-Identifier: Apache-2.0

package handover

// MaxServed is the number of calls of one Leader a node executes for others.
var MaxServed = int(maxServed.PerLeader)
