// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/logname"
)

// derive makes a name that is the same for the same parts, for ever, and tells nothing of them.
func derive(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(kind + logname.Separator + strings.Join(parts, logname.Separator)))
	return kind + "-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:15]))
}
