// SPDX-License-Identifier: Apache-2.0

// Package locate finds agents of ACPs by their AIC: where they are, and which version of AIP they speak.
//
// A Finder asks registries, then discovery servers, in their order, for the agent's ACS, and at last looks into a map.
// An agent that one of them has as not active is not looked for elsewhere. That none knows it, or that one does not
// answer, is no reason not to ask the next.
//
// What was found is kept. While a registry's feed is heard, it counts until the registry has another ACS, or has the
// agent as not active; else for a minute. An agent that was found once goes on to count while no source answers.
//
// An ACS is not signed, and any user of a registry may register one that names any URL. So an agent is only reached by
// https, and the caller must check that the certificate of the server has the AIC.
package locate
