// SPDX-License-Identifier: Apache-2.0

package cluster

// MaxServing is how many calls of others a node carries out at once.
const MaxServing = maxServing
