// SPDX-License-Identifier: Apache-2.0

// Package acs has the Agent Capability Specification of ACPs, the document for registering and finding an agent: its
// form, one made for a Partner (Make), the mistakes in one as a registry sees them (Check), and the differences between
// two of them (Diff). The member protocolVersion distinguishes versions 01.00 and 02.x.
//
// Check follows the specification, and the further refusals of the registry and the CA of ACPs: an unknown member, an
// endpoint without mutualTLS, a URL with a scheme not fitting its transport, and a provider without an organization.
// The registry accepts the latter, but the CA issues no certificate for it.
//
// An approved ACS can never change. The values written into one by a registry itself (its time, whether it is active,
// and the AIC in place of {AIC}) are no difference.
package acs
