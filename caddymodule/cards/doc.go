// SPDX-License-Identifier: Apache-2.0

// Package cards has the settings of a Partner's cards, beside the content of its agent's card.
package cards
