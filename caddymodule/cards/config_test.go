// SPDX-License-Identifier: Apache-2.0

package cards

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/translate/aip/acs"
)

// TestRegistered reads the ACS that is registered when it is asked for, and no more of it than one may have.
func TestRegistered(t *testing.T) {
	name := filepath.Join(t.TempDir(), "acs.json")
	t.Setenv("AIP_TEST_ACS", name)
	cards, err := (&Config{Registered: "{env.AIP_TEST_ACS}"}).Cards()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cards.Registered(t.Context()); err == nil {
		t.Error("there is no file, and no error")
	}
	if err := os.WriteFile(name, []byte(strings.Repeat("x", acs.MaxSize+10)), 0o600); err != nil {
		t.Fatal(err)
	}
	if body, err := cards.Registered(t.Context()); err != nil || len(body) != acs.MaxSize+1 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	if cards, err := (&Config{}).Cards(); err != nil || cards.Registered != nil {
		t.Errorf("without the option: %v", err)
	}
	if _, err := (&Config{Registered: "{env.AIP_NO_SUCH_FILE}"}).Cards(); err == nil {
		t.Error("a placeholder without a value is accepted")
	}
}
