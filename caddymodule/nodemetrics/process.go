// SPDX-License-Identifier: Apache-2.0

package nodemetrics

import (
	"runtime"

	"github.com/aip-gateway/aip-gateway/acps/amp"
	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/caddymodule/metric"
	"github.com/aip-gateway/aip-gateway/internal/build"
	"github.com/aip-gateway/aip-gateway/node"
)

var ofProcess metric.Set

// The metrics of the process.
var (
	metricBuild = ofProcess.Gauge("build_info",
		"Always 1; its labels are the versions of the gateway, of Caddy and of Go.", "version", "caddy", "go")

	metricStreams = ofProcess.Gauge("streams_open", "Open streams.")
	metricMemory  = ofProcess.Gauge("memory_bytes", "Memory that requests, answers, streams and running tasks hold.")

	metricAUN = ofProcess.Gauge("aun_connections",
		"Connections of AUN: of clients to the gateway, or to agents.", "peer")
	metricFrames = ofProcess.Counter("aun_frames_total", "Frames of AUN.", "peer", "direction")

	metricPushable = ofProcess.Gauge("callbacks_open", "Turns that agents may push to.")
	metricPushes   = ofProcess.Counter("callbacks_total", "Push notifications of agents, by their result.", "result")

	metricRecords = ofProcess.Counter("amp_records_total",
		"Records for a monitor, by their type; the outcome lost is for those that could not be written.", "type", "outcome")
)

// process adds what all configurations share.
func (s samples) process(p *node.Process, records []string) {
	s.Add(metricBuild, 1, build.Version(build.Module), build.Version("github.com/caddyserver/caddy/v2"), runtime.Version())
	s.Add(metricStreams, float64(p.Streams.Total()))
	s.Add(metricMemory, float64(p.Memory.Total()))
	s.aun(p)
	s.callbacks(p)
	for _, r := range records {
		written, lost := p.Reported.Of(amp.Type(r))
		s.Add(metricRecords, float64(written), r, "written")
		s.Add(metricRecords, float64(lost), r, "lost")
	}
}

// aun adds what concerns AUN.
func (s samples) aun(p *node.Process) {
	s.Add(metricAUN, float64(p.Clients.Open()), "client")
	s.Add(metricAUN, float64(p.AUN.Connections()), "agent")
	for peer, frames := range map[string]*aun.Frames{"client": &p.Clients.Frames, "agent": &p.AUN.Frames} {
		s.Add(metricFrames, float64(frames.Received.Load()), peer, "received")
		s.Add(metricFrames, float64(frames.Sent.Load()), peer, "sent")
	}
}

// callbacks adds what concerns the push notifications of agents.
func (s samples) callbacks(p *node.Process) {
	c := p.Callbacks.Counts()
	s.Add(metricPushable, float64(c.Open))
	s.Add(metricPushes, float64(c.Taken), "taken")
	s.Add(metricPushes, float64(c.Refused), "refused")
}
