// SPDX-License-Identifier: Apache-2.0

package part

import (
	"slices"

	"github.com/aip-gateway/aip-gateway/task"
)

// IsEmpty reports whether an artifact says nothing at all, so that it is no product. Some agents end with one, also
// with the id of an artifact that has content.
func IsEmpty(p *task.Product) bool {
	if p.Name != "" || p.Description != "" || len(p.Extensions) > 0 {
		return false
	}
	return !slices.ContainsFunc(p.DataItems, func(it task.DataItem) bool {
		return it.Kind != task.TextItem || it.Text != "" || len(it.Metadata) > 0
	})
}
