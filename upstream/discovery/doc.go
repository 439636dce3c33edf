// SPDX-License-Identifier: Apache-2.0

// Package discovery finds out which dialect an agent speaks and at which URL, and keeps its card. It asks over HTTP,
// and hands what it found to the driver of turns as a Resolver.
//
// An agent's card is fetched once for all callers that wait, and no lock is held meanwhile. An old card is served while
// a new one is fetched. A turn waits at most 500 ms for the first card, which says whether the agent has streams, and
// whether it pushes. An agent that has no card is asked for it no more often than one that has.
//
// The version of an a2a agent is found when it is first needed (discovery.Resolver): by the card, then by requests that
// change nothing. On an unknown method another version is tried, once: such an answer proves that nothing ran.
package discovery
