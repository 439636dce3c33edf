// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// report is what a run has found. It is printed while it grows, and can be written as JSON at the end.
type report struct {
	Cores  int      `json:"cores"`
	Tables []*table `json:"tables"`
}

// table holds the rows of one measurement. The columns say the units.
type table struct {
	Title   string   `json:"title"`
	Columns []string `json:"columns"`
	Rows    []row    `json:"rows"`
}

// row has a value for each column, but for the last ones where they mean nothing for it.
type row struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
}

func newReport() *report { return &report{Cores: runtime.NumCPU()} }

// table begins a table and prints its head.
func (r *report) table(title string, columns ...string) *table {
	t := &table{Title: title, Columns: columns}
	r.Tables = append(r.Tables, t)
	fmt.Printf("\n%s\n%-46s", title, "")
	for _, c := range columns {
		fmt.Printf(" %12s", c)
	}
	fmt.Println()
	return t
}

// row adds a row and prints it.
func (t *table) row(name string, values ...float64) {
	t.Rows = append(t.Rows, row{name, values})
	fmt.Printf("%-46s", name)
	for _, v := range values {
		fmt.Printf(" %12s", number(v))
	}
	fmt.Println()
}

// number shows three digits or all before the point, whichever is more.
func number(v float64) string {
	decimals := 2
	switch size := max(v, -v); {
	case size >= 100:
		decimals = 0
	case size >= 10:
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

func (r *report) write(path string) error {
	b, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// spread returns the median, the least and the greatest of some values.
func spread(values []float64) []float64 {
	return []float64{median(values), slices.Min(values), slices.Max(values)}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[half-1] + sorted[half]) / 2
	}
	return sorted[half]
}

// percentile returns the value below which a share of the sorted values lies.
func percentile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }
