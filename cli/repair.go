// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/caddymodule/storefiles"
	"github.com/aip-gateway/aip-gateway/operator/survey"
)

// repairReport is the work of a repair, as JSON.
type repairReport struct {
	Dir   string      `json:"dir"`
	Bytes int64       `json:"bytes"` // of the journal, not readable
	Files []string    `json:"files"` // damaged ones, put aside
	Ended []endedTask `json:"ended"` // logs with missing records
	Cut   int         `json:"cut"`   // logs with their last records perhaps lost
}

// endedTask names a log: a task's, as a rule.
type endedTask struct {
	Kind string `json:"kind"`
	Log  string `json:"log"`
}

func repairCommand() *cobra.Command {
	var dir string
	var accept, asJSON bool
	cmd := &cobra.Command{
		Use:   "repair --accept-loss --store <directory>",
		Short: "Makes a damaged store one that can be opened",
		Long: `
Makes a store whose journal is damaged one that can be opened. What cannot be read is
lost, although it was acknowledged: mostly one event of one task. Copy the directory
before, and restore a backup instead where you have one that is recent enough.

A task that is seen to miss events has ended, and cannot be read any more. The store
cannot tell which other task has lost its last event. So the turns of all unfinished
tasks go on only where the agent knows them: no message is sent again. No event's number is used
again. A store that is not damaged stays as it is.
`,
		Example: `  $ caddy aip store repair --accept-loss --store /var/lib/caddy/aip`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case dir == "":
				return errors.New("--store is missing: the directory of the damaged store")
			case !accept:
				return errors.New("a repair loses what cannot be read; copy the directory first, then add --accept-loss")
			}
			files, err := storefiles.Find()
			if err != nil {
				return err
			}
			done, err := files.Repair(dir)
			if err != nil {
				return err
			}
			if dir, err = filepath.Abs(dir); err != nil {
				return err
			}
			report := reportOf(dir, done)
			if asJSON {
				return printJSON(cmd, report)
			}
			return printRepair(cmd.OutOrStdout(), report)
		},
	}
	cmd.Flags().StringVar(&dir, "store", "", "the directory of a store that no process uses")
	cmd.Flags().BoolVar(&accept, "accept-loss", false, "lose what cannot be read")
	outputFlag(cmd, &asJSON)
	return cmd
}

func reportOf(dir string, done *storefiles.Repaired) *repairReport {
	r := &repairReport{Dir: dir, Bytes: done.Bytes, Files: []string{}, Ended: []endedTask{}, Cut: done.Cut}
	for _, file := range done.Files {
		r.Files = append(r.Files, filepath.Base(file))
	}
	for _, log := range done.Logs {
		kind, name := survey.NameOf(log)
		r.Ended = append(r.Ended, endedTask{kind, name})
	}
	return r
}

func printRepair(w io.Writer, r *repairReport) error {
	p := printer{w: w}
	p.line("store", clean(r.Dir))
	if len(r.Files) == 0 && r.Bytes == 0 && r.Cut == 0 && len(r.Ended) == 0 {
		p.line("damage", "none in its journal; it was left as it is")
		return p.err
	}
	p.line("lost", humanize.IBytes(uint64(r.Bytes))+" of the journal")
	for _, file := range r.Files {
		p.line("put aside", file)
	}
	for _, one := range r.Ended {
		p.line("ended", one.Kind+" "+one.Log+": it misses records, and cannot be read")
	}
	p.line("doubtful", fmt.Sprintf("%d unfinished logs may miss what came last", r.Cut))
	return p.err
}
