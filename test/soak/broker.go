// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
)

// broker is a RabbitMQ with one virtual host, for the group of the attack.
type broker struct{ *rabbittest.Broker }

const ownerLogin = "owner"

// memory is a file system in memory, where there is one. The disk is the gateway's alone: a broker has its own.
const memory = "/dev/shm"

// newBroker starts a broker, which the caller must close.
func newBroker() (*broker, error) {
	var config rabbittest.Config
	if _, err := os.Stat(memory); err == nil {
		config.Parent = memory
	}
	node, err := rabbittest.Start(config)
	if err != nil {
		return nil, err
	}
	b := &broker{node}
	err = errors.Join(b.AddVhost(groupVhost), b.AddUser(ownerLogin, ownerLogin), b.AddUser(memberLogin, memberLogin),
		b.Permit(ownerLogin, groupVhost, ".*", ".*", ".*"),
		b.Permit(memberLogin, groupVhost, "^group_.*", "^group_.*", "^group_.*"))
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// dial connects as the owner of the virtual host.
func (b *broker) dial() (*amqp.Connection, error) {
	return amqp.DialConfig("amqp://"+b.Address(), amqp.Config{
		SASL: []amqp.Authentication{&amqp.PlainAuth{Username: ownerLogin, Password: ownerLogin}}, Vhost: groupVhost,
	})
}
