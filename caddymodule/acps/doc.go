// SPDX-License-Identifier: Apache-2.0

// Package acps has the settings of servers of ACPs: the registry of the Partners, and the servers by which agents and
// Partners are found.
//
//   - Registry is the registry of the Partners, with the gateway's account there. An Ontology makes them its entities.
//   - Find finds agents by their AIC, at registries and discovery servers.
//   - Discovery names the discovery servers at which the Partners are to be found.
package acps
