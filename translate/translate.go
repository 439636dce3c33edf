// SPDX-License-Identifier: Apache-2.0

package translate

// Field is a header field.
type Field struct{ Name, Value string }
