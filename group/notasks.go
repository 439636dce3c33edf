// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"

	"github.com/aip-gateway/aip-gateway/group/broker"
)

// noTasks acknowledges everything and publishes nothing.
type noTasks struct{}

func newTasks(*membership) tasks { return noTasks{} }

func (noTasks) receive(d *broker.Delivery)   { d.Ack() }
func (noTasks) connect(link)                 {}
func (noTasks) mute(bool)                    {}
func (noTasks) cancel(context.Context) error { return nil }
func (noTasks) flush(context.Context) error  { return nil }
func (noTasks) drop(context.Context) error   { return nil }
func (noTasks) close()                       {}
func (noTasks) traffic() Traffic             { return Traffic{} }
