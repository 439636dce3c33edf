// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/aip-gateway/aip-gateway/internal/egress"
)

// Pool has the connections to brokers. It belongs to the process. It may be used by any number of goroutines at once.
type Pool struct {
	timeout time.Duration   // of Join
	ctx     context.Context // of handshakes
	end     context.CancelFunc
	work    sync.WaitGroup // joins, connections and links

	mu          sync.Mutex
	closed      bool
	connections map[key][]*connection // connections for new links
	declaring   map[queueKey]chan struct{}
}

// queueKey names a queue at a broker. A join that may make the queue may delete it, too, after its caller has given up.
// So the next join for the queue waits until Pool.declaring is closed.
type queueKey struct {
	address Address
	queue   string
}

// key is the common part of links sharing a connection.
type key struct {
	owner   string
	name    string
	address Address
	login   Login
	dialer  *egress.Dialer
}

// NewPool makes a Pool. Its joins take at most timeout; 0 is DefaultTimeout.
func NewPool(timeout time.Duration) *Pool {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, end := context.WithCancel(context.Background())
	return &Pool{
		timeout: timeout, ctx: ctx, end: end, connections: make(map[key][]*connection),
		declaring: make(map[queueKey]chan struct{}),
	}
}

// Close ends all links and connections, and waits for them. Queues stay.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.end()
	for _, shared := range p.connections {
		for _, c := range shared {
			p.work.Go(func() {
				<-c.ready
				c.close()
			})
		}
	}
	p.mu.Unlock()
	p.work.Wait()
}

// connection is a connection to a broker, with links.
type connection struct {
	pool    *Pool
	key     key
	ready   chan struct{} // closed when the handshake has ended; the fields below are set by then
	err     *Error        // the reason for having no connection
	amqp    *amqp.Connection
	socket  *socket
	info    Info
	abandon context.CancelFunc // ends a handshake no join waits for

	users int           // links, and joins about to become one; under Pool.mu
	given int           // joins among them without their callers; under Pool.mu
	joins chan struct{} // has an element for each join asking the broker now

	declares atomic.Bool // a join has asked for a queue to be made

	mu      sync.Mutex
	links   map[*Link]struct{}
	blocked chan struct{} // closed while the broker takes nothing on the connection
	made    uint64        // consumers
}

// acquire returns a connection for one more link. It must be released. It waits for the handshake.
func (p *Pool) acquire(ctx context.Context, c Config) (*connection, *Error) {
	k := key{owner: c.Owner, name: c.Name, address: c.Address, login: c.Login, dialer: c.Dialer}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, c.Address.fail(Closed, nil, "the gateway is shutting down")
	}
	var shared *connection
	for _, other := range p.connections[k] {
		if other.users < other.capacity() {
			shared = other
			break
		}
	}
	if shared == nil {
		shared = &connection{
			pool: p, key: k, ready: make(chan struct{}), links: make(map[*Link]struct{}),
			joins: make(chan struct{}, joinsPerConnection), blocked: make(chan struct{}),
		}
		p.connections[k] = append(p.connections[k], shared)
		handshake, cancel := context.WithTimeout(p.ctx, p.timeout)
		shared.abandon = cancel
		p.work.Go(func() { shared.run(handshake, c) })
	}
	shared.users++
	p.mu.Unlock()

	select {
	case <-shared.ready:
	case <-ctx.Done():
		shared.release()
		select {
		case <-shared.ready: // at the same time
			if shared.err != nil {
				return nil, shared.err
			}
		default:
		}
		return nil, c.Address.fail(NoAnswer, context.Cause(ctx), "there was no connection in time")
	}
	if shared.err != nil {
		shared.release()
		return nil, shared.err
	}
	return shared, nil
}

// release gives back a connection of acquire. The last user closes the connection.
func (c *connection) release() {
	c.pool.mu.Lock()
	c.users--
	last := c.users == 0
	if last {
		c.withdraw()
	}
	c.pool.mu.Unlock()
	if last {
		c.abandon()
		<-c.ready
		c.close()
	}
}

// withdraw keeps new links from using the connection. It is called under Pool.mu.
func (c *connection) withdraw() {
	rest := c.pool.connections[c.key]
	for i, other := range rest {
		if other == c {
			rest = append(rest[:i:i], rest[i+1:]...)
			break
		}
	}
	if len(rest) == 0 {
		delete(c.pool.connections, c.key)
	} else {
		c.pool.connections[c.key] = rest
	}
}

// capacity is the most links of the connection: none if it has ended, or if the broker takes nothing on it.
func (c *connection) capacity() int {
	select {
	case <-c.ready:
		if c.err != nil || c.amqp.IsClosed() || c.isBlocked() {
			return 0
		}
		return max(1, min(linksPerConnection, int(c.amqp.Config.ChannelMax)-1)) // one is for isGone
	default:
		return linksPerConnection
	}
}

// close closes the connection, if there is one.
func (c *connection) close() {
	if c.amqp == nil {
		return
	}
	stop := time.AfterFunc(closeTimeout, c.kill)
	_ = c.amqp.Close()
	stop.Stop()
	c.kill()
}

// kill closes the socket, and does not wait.
func (c *connection) kill() { _ = c.socket.Close() }

// run makes the connection and watches it until it has ended.
func (c *connection) run(handshake context.Context, config Config) {
	c.connect(handshake, config)
	c.abandon()
	if c.err != nil {
		c.pool.mu.Lock()
		c.withdraw()
		c.pool.mu.Unlock()
		close(c.ready)
		return
	}
	closed := c.amqp.NotifyClose(make(chan *amqp.Error, 1))
	blocked := c.amqp.NotifyBlocked(make(chan amqp.Blocking, 16))
	close(c.ready)
	for b := range blocked { // closed with the connection
		c.block(b.Active)
	}
	<-closed
	c.pool.mu.Lock()
	c.withdraw()
	c.pool.mu.Unlock()
}

// connect makes the connection. It sets err if there is none.
func (c *connection) connect(ctx context.Context, config Config) {
	connection, socket, err := dial(ctx, config)
	if err != nil {
		c.err = err
		return
	}
	c.amqp, c.socket = connection, socket
	c.info = Info{Product: text(connection.Properties["product"]), Version: text(connection.Properties["version"]),
		ClusterName: text(connection.Properties["cluster_name"]), VHost: connection.Config.Vhost}
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

// nextConsumer returns a tag unlike any other of the connection, past or present.
func (c *connection) nextConsumer() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	return strconv.FormatUint(c.made, 10)
}

// tokenExpired is in RabbitMQ's words when it refuses an operation because of the login.
const tokenExpired = "token has expired"

// fail returns the error of an operation failed with err, an error of the AMQP library. missing is its kind if the
// broker misses the exchange or queue of the operation.
func (c *connection) fail(err error, missing Kind) *Error {
	a := c.key.address
	said, ok := err.(*amqp.Error)
	switch {
	case !ok:
		return a.fail(Closed, err, "the operation failed")
	case !said.Server:
		return a.fail(Closed, err, "the connection was lost")
	case said.Code == amqp.AccessRefused && (c.amqp.IsClosed() || strings.Contains(said.Reason, tokenExpired)):
		return a.fail(LoginRefused, err, said.Reason)
	case said.Code == amqp.AccessRefused:
		return a.fail(PermissionDenied, err, said.Reason)
	case said.Code == amqp.NotFound && !passes(said.Reason):
		return a.fail(missing, err, said.Reason)
	case said.Code == amqp.ConnectionForced:
		return a.fail(Closed, err, said.Reason)
	default:
		return a.fail(Refused, err, said.Reason)
	}
}
