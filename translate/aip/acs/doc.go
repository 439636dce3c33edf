// SPDX-License-Identifier: Apache-2.0

// Package acs has the Agent Capability Specification of ACPs, the document by which an agent is registered and found:
// its form, how one is made for a Partner (Make), what a registry would refuse in one (Check), and where two of them
// differ (Diff). Versions 01.00 and 02.x are told apart by the member protocolVersion.
//
// Check follows the specification, and what the registry and the CA of ACPs refuse beside it: a member that they do not
// know, an endpoint without mutualTLS, a URL whose scheme does not fit its transport, and a provider without an
// organization, which the registry accepts but for which the CA issues no certificate.
//
// An ACS that is approved can never change. What a registry writes into one by itself (its time, whether it is active,
// and the AIC in place of {AIC}) is no difference.
package acs
