// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// showCluster prints the gateways sharing a store, and its shards.
func showCluster(a *asking) func([]string) error {
	a.jsonFlag("")
	return func([]string) error {
		var r adminapi.ClusterReport
		raw, err := a.ask(a.route, nil, nil, &r)
		if err != nil {
			return err
		}
		if a.asJSON {
			return writeJSON(a.OutOrStdout(), raw)
		}
		if len(r.Nodes) == 0 {
			return a.print(raw, "The gateway shares its store with no other one.")
		}
		table := tabwriter.NewWriter(a.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "NODE\tSTATE\tSHARDS\tSTARTED\tHEARD\tVERSION\tPARTNERS")
		for i := range r.Nodes {
			n := &r.Nodes[i]
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", clean(n.Name), clean(n.State), n.Shards, second(n.Started),
				second(n.Heard), clean(orDash(n.Version)), clean(orDash(strings.Join(n.Partners, " "))))
		}
		fmt.Fprintln(table)
		fmt.Fprintln(table, "SHARD\tOWNER\tSHOULD\tEPOCH\tSINCE\tLAG\tDOWN\tMESSAGES\tBYTES\tLEADER\tSTREAM")
		for i := range r.Shards {
			s := &r.Shards[i]
			fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%s\t%d\t%s\t%d\t%s\t%s\t%s\n", s.Shard, clean(orDash(s.Owner)),
				clean(orDash(s.Should)), s.Epoch, second(s.Since), s.Lag, clean(orDash(strings.Join(s.Down, " "))), s.Messages,
				strings.ReplaceAll(humanize.IBytes(s.Bytes), " ", ""), clean(orDash(s.Leader)), clean(s.Stream))
		}
		return table.Flush()
	}
}

// second returns a time in the local time zone, in seconds.
func second(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.RFC3339)
}

// shardMove names the shard in an argument, and its new gateway.
func shardMove(a *asking, _ url.Values, args []string) (any, error) {
	shard, err := strconv.Atoi(args[0])
	if err != nil {
		return nil, fmt.Errorf("the shard is %q, but must be a number, as caddy aip cluster shows it", args[0])
	}
	to := a.text("to")
	if to == "" {
		return nil, errors.New("say by --to which gateway is to own the shard")
	}
	return adminapi.ShardMove{Shard: &shard, To: to}, nil
}

func sayMoved(m *adminapi.ShardMove) (string, error) {
	return fmt.Sprintf("the shard %d moves to %s", *m.Shard, clean(m.To)), nil
}

// drainNode begins or ends the handing over of a gateway's shards.
func drainNode(a *asking) func([]string) error {
	var end bool
	a.Flags().BoolVar(&end, "end", false, "let it have shards again")
	a.jsonFlag("")
	return func(args []string) error {
		method, says := http.MethodPost, "%s hands its shards to the others"
		if end {
			method, says = http.MethodDelete, "%s gets its shards back"
		}
		var node adminapi.NodeName
		if len(args) > 0 {
			node.Node = args[0]
		}
		raw, err := a.admin.ask(method, a.route.Path, nil, node, &node)
		if err != nil {
			return err
		}
		return a.print(raw, fmt.Sprintf(says, clean(node.Node)))
	}
}
