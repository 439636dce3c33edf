// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/internal/egress"
)

// loopback lets tests connect to this host.
var loopback = &egress.Dialer{Policy: egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}

// server listens and has each connection served; it returns its address. All connections are closed at the end.
func server(t *testing.T, serve func(net.Conn)) broker.Address {
	t.Helper()
	return serverAt(t, "127.0.0.1:0", serve)
}

func serverAt(t *testing.T, address string, serve func(net.Conn)) broker.Address {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		connections.Wait()
	})
	at := listener.Addr().(*net.TCPAddr)
	return broker.Address{Host: at.IP.String(), Port: uint16(at.Port), VHost: "/"}
}

// frame is a frame of a method on channel 0.
func frame(payload string) string {
	n := len(payload)
	return "\x01\x00\x00" + string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + payload + "\xce"
}

// begin is connection.start with the properties given, offering PLAIN; tune is connection.tune.
func begin(properties string) string {
	n := len(properties)
	return frame("\x00\x0a\x00\x0a\x00\x09" + string([]byte{0, 0, byte(n >> 8), byte(n)}) + properties +
		"\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US")
}

const (
	tune   = "\x00\x0a\x00\x1e\x00\x10\x00\x02\x00\x00\x00\x0a"
	closes = "\x00\x0a\x00\x32" // connection.close: a code, a text, a class and a method follow
)

// saysWhy is a table: capabilities of a server with reasons for refused logins.
const saysWhy = "\x0ccapabilitiesF\x00\x00\x00\x1f\x1cauthentication_failure_closet\x01"

// greet reads the client's greeting, and writes the given text.
func greet(conn net.Conn, says string) {
	_, _ = io.ReadFull(conn, make([]byte, 8))
	_, _ = io.WriteString(conn, says)
}

// answer reads n frames of the client, and writes the given text.
func answer(conn net.Conn, n int, says string) {
	for range n {
		head := make([]byte, 7)
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		size := int64(head[3])<<24 | int64(head[4])<<16 | int64(head[5])<<8 | int64(head[6])
		_, _ = io.CopyN(io.Discard, conn, size+1)
	}
	_, _ = io.WriteString(conn, says)
}

func silent(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// linked starts a broker. It answers each method of a link with the result of reply, or not at all if that is empty.
func linked(t *testing.T, reply func(method, rest string) string) broker.Address {
	return server(t, func(c net.Conn) {
		greet(c, begin(""))
		answer(c, 1, frame(tune))
		answer(c, 2, frame("\x00\x0a\x00\x29\x00"))
		for channel, method, rest := readMethod(c); method != "" && method != closes; channel, method, rest = readMethod(c) {
			if payload := reply(method, rest); payload != "" {
				_, _ = io.WriteString(c, onChannel(channel, payload))
			}
		}
	})
}

// answers are the answers of a broker to the methods of a link.
var answers = map[string]string{
	"\x00\x14\x00\x0a": "\x00\x14\x00\x0b\x00\x00\x00\x00",                        // channel.open
	"\x00\x14\x00\x28": "\x00\x14\x00\x29",                                        // channel.close
	"\x00\x28\x00\x0a": "\x00\x28\x00\x0b",                                        // exchange.declare
	"\x00\x32\x00\x0a": "\x00\x32\x00\x0b\x03own\x00\x00\x00\x00\x00\x00\x00\x00", // queue.declare
	"\x00\x32\x00\x28": "\x00\x32\x00\x29\x00\x00\x00\x00",                        // queue.delete
	"\x00\x32\x00\x14": "\x00\x32\x00\x15",                                        // queue.bind
	"\x00\x55\x00\x0a": "\x00\x55\x00\x0b",                                        // confirm.select
	"\x00\x3c\x00\x0a": "\x00\x3c\x00\x0b",                                        // basic.qos
	"\x00\x3c\x00\x14": "\x00\x3c\x00\x15\x01x",                                   // basic.consume
}

// onChannel is a frame of a method on a channel.
func onChannel(channel uint16, payload string) string {
	f := []byte(frame(payload))
	binary.BigEndian.PutUint16(f[1:], channel)
	return string(f)
}

// readMethod reads a frame, and returns its channel, its method, and the method's arguments. The method is empty at the
// end of the connection.
func readMethod(conn net.Conn) (channel uint16, method, arguments string) {
	head := make([]byte, 7)
	if _, err := io.ReadFull(conn, head); err != nil {
		return 0, "", ""
	}
	payload := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
	if _, err := io.ReadFull(conn, payload); err != nil {
		return 0, "", ""
	}
	if head[0] != 1 { // a heartbeat
		return readMethod(conn)
	}
	return binary.BigEndian.Uint16(head[1:]), string(payload[:4]), string(payload[4:])
}
