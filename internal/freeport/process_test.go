// SPDX-License-Identifier: Apache-2.0

package freeport

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// printsPorts is the variable to have the binary of the tests print ports.
const printsPorts = "FREEPORT_PRINTS"

func TestMain(m *testing.M) {
	if os.Getenv(printsPorts) == "" {
		os.Exit(m.Run())
	}
	for range 300 {
		port, err := Take()
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(port)
	}
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the other process has taken ports, too
}

// TestProcesses takes ports in two processes. None of them gets a port of the other.
func TestProcesses(t *testing.T) {
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), printsPorts+"=1")
	var out strings.Builder
	other.Stdout = &out
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	mine := make(map[string]bool)
	for range 300 {
		port, err := Take()
		if err != nil {
			t.Fatal(err)
		}
		mine[fmt.Sprint(port)] = true
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err != nil {
		t.Fatalf("the other process: %v, %s", err, out.String())
	}
	for _, port := range strings.Fields(out.String()) {
		if mine[port] {
			t.Errorf("two processes have the port %s", port)
		}
	}
}
