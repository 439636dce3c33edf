// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"encoding/json"
	"net/http"
)

// Refuse answers with an error as the admin API of Caddy does.
func Refuse(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"error": reason}) // the client may have left
}
