// SPDX-License-Identifier: Apache-2.0

// Package rules has the settings of what callers may do: a Policy of rules, its DecisionPoint, and Quotas over time.
package rules
