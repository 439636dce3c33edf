// SPDX-License-Identifier: Apache-2.0

// Package rabbittest runs a private RabbitMQ for tests and benchmarks: real, from Debian's packages, with a node name,
// ports and data of its own. It ends with the process of its start, however that ends.
package rabbittest

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/freeport"
)

// StartLimit is the time for a node to start or to stop. It takes 4 s on an otherwise idle machine.
const StartLimit = 5 * time.Minute

// Config has the differences between brokers.
type Config struct {
	// CA, Cert and Key are files in PEM form. With them the broker listens for TLS, too, and takes the common name of a
	// client's certificate as its user name (EXTERNAL).
	CA, Cert, Key string
	// Security returns the lines of rabbitmq.conf about TLS, authentication and authorization, for a broker with its ports
	// set. By default, clients log in by a password, by a Token, or by a certificate. Of other brokers, Token makes no
	// tokens.
	Security func(*Broker) string
	// Schedulers is the most cores used by the node; default 1.
	Schedulers int
	// Parent is the folder for the node's own; default the one for temporary files.
	Parent string
}

// Broker is a RabbitMQ node. While Run, Stop, Kill or Close runs, no other method may be called.
type Broker struct {
	Port, TLSPort int    // of AMQP 0-9-1, on 127.0.0.1; TLSPort is 0 without TLS
	Node          string // the node's name, and by default the cluster's

	root     string // the folder of Debian's packages, unpacked
	dir      string // everything written by the node, its cookie included
	cookie   string
	epmdPort int
	distPort int
	threads  int // schedulers

	asking sync.Mutex // the node refuses two calls at once, since both have the same name

	node  *exec.Cmd
	ended chan struct{} // closed when the node has ended
	// end is read by the process set up to end the node: when it is closed, by Kill or because this process has ended, the
	// node's process group is killed.
	end     io.WriteCloser
	watcher *exec.Cmd
}

// Start starts a broker, and returns when it accepts connections.
func Start(config Config) (*Broker, error) {
	root, err := packages()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(config.Parent, "aip-rabbitmq-")
	if err != nil {
		return nil, err
	}
	b := &Broker{root: root, dir: dir, threads: max(1, config.Schedulers)}
	ports := []*int{&b.Port, &b.epmdPort, &b.distPort}
	if config.Cert != "" {
		ports = append(ports, &b.TLSPort)
	}
	for _, port := range ports {
		if *port, err = freeport.Take(); err != nil {
			os.RemoveAll(dir)
			return nil, err
		}
	}
	b.Node = fmt.Sprintf("aip%d@localhost", b.Port)
	b.cookie = "COOKIE" + filepath.Base(dir)
	if err := b.configure(config); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return b, b.Run()
}

// packages returns the folder of the packages, as unpacked by install.sh.
func packages() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "aip-gateway", "rabbitmq-"+packagesVersion)
	if _, err := os.Stat(root); err != nil {
		return "", fmt.Errorf("there is no RabbitMQ for tests: %w; run make rabbitmq", err)
	}
	return root, nil
}

// Python returns a command to run a script of Python 3, with pika.
func Python(ctx context.Context, script string) (*exec.Cmd, error) {
	root, err := packages()
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(root, "usr/bin/python3.*"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%s has no Python", root)
	}
	cmd := exec.CommandContext(ctx, found[0], script)
	cmd.Env = append(os.Environ(), "PYTHONHOME="+filepath.Join(root, "usr"),
		"PYTHONPATH="+filepath.Join(root, "usr/lib/python3/dist-packages"), libraries(root))
	return cmd, nil
}

// libraries returns the variable of the environment for the packages' programs to find their shared libraries.
func libraries(root string) string {
	found, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*")) // fails for a malformed pattern only
	more, _ := filepath.Glob(filepath.Join(root, "lib/*-linux-gnu*"))
	return "LD_LIBRARY_PATH=" + strings.Join(append(found, more...), ":")
}

// erlang returns the path of something in the folder of Erlang.
func (b *Broker) erlang(path ...string) string {
	return filepath.Join(append([]string{b.root, "usr/lib/erlang"}, path...)...)
}

// executable returns the command to run a program of Erlang's runtime.
func (b *Broker) executable(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	found, err := filepath.Glob(b.erlang("erts-*", "bin", name))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%s has no %s", b.root, name)
	}
	cmd := exec.CommandContext(ctx, found[0], args...)
	cmd.Dir = b.dir
	cmd.Env = []string{
		"PATH=" + filepath.Dir(found[0]) + ":/usr/bin:/bin", "HOME=" + b.dir, "LANG=C.UTF-8",
		"ROOTDIR=" + b.erlang(), "BINDIR=" + filepath.Dir(found[0]), "EMU=beam", "PROGNAME=erl",
		fmt.Sprint("ERL_EPMD_PORT=", b.epmdPort), "ERL_EPMD_ADDRESS=127.0.0.1", libraries(b.root),
	}
	return cmd, nil
}

// Run starts the node again after Stop or Kill, with its earlier data.
func (b *Broker) Run() error {
	var said output
	// By itself the node would start the daemon for mapping names to ports, and leave it behind.
	epmd, err := b.executable(context.Background(), "epmd", "-port", strconv.Itoa(b.epmdPort), "-address", "127.0.0.1")
	if err != nil {
		return err
	}
	epmd.SysProcAttr = inGroup(0)
	if err := epmd.Start(); err != nil {
		return err
	}
	group := epmd.Process.Pid
	kill := func() { killGroup(group) }

	// The packages' script would start a shell waiting for the node; this is its command.
	b.node, err = b.executable(context.Background(), "erlexec", "-noinput", "-s", "rabbit", "boot",
		"-boot", "start_sasl", "+W", "w", "+S", fmt.Sprintf("%d:%[1]d", b.threads), "+A", "16", "+sbwt", "none",
		"+P", "65536", "+B", "i",
		"-syslog", "logger", "[]", "-syslog", "syslog_error_logger", "false",
		"-kernel", "inet_dist_use_interface", "{127,0,0,1}")
	if err != nil {
		kill()
		return err
	}
	in := func(name string) string { return filepath.Join(b.dir, name) }
	home, err := filepath.Glob(filepath.Join(b.root, "usr/lib/rabbitmq/lib/rabbitmq_server-*"))
	if err != nil || len(home) != 1 {
		kill()
		return fmt.Errorf("%s has no RabbitMQ", b.root)
	}
	b.node.Env = append(b.node.Env,
		"ERL_LIBS="+filepath.Join(home[0], "plugins"), "ERL_MAX_PORTS=8192", "RABBITMQ_HOME="+home[0],
		"RABBITMQ_NODENAME="+b.Node, fmt.Sprint("RABBITMQ_DIST_PORT=", b.distPort),
		"RABBITMQ_CONFIG_FILE="+in("rabbitmq.conf"), "RABBITMQ_ADVANCED_CONFIG_FILE="+in("advanced.config"),
		"RABBITMQ_CONF_ENV_FILE=/dev/null", "RABBITMQ_LOG_BASE="+in("log"), "RABBITMQ_LOGS=-",
		"RABBITMQ_MNESIA_BASE="+in("data"), "RABBITMQ_ENABLED_PLUGINS_FILE="+in("enabled_plugins"),
		"RABBITMQ_PLUGINS_DIR="+filepath.Join(home[0], "plugins"), "RABBITMQ_PID_FILE="+in("pid"),
		"RABBITMQ_GENERATED_CONFIG_DIR="+in("generated"))
	b.node.Stdout, b.node.Stderr = &said, &said
	b.node.SysProcAttr = inGroup(group)
	if err := b.node.Start(); err != nil {
		kill()
		return err
	}
	b.watcher = exec.Command("/bin/sh", "-c", `how=$(cat); kill -KILL "-$1"; [ -n "$how" ] || rm -rf "$2"`,
		"sh", strconv.Itoa(group), b.dir)
	b.watcher.SysProcAttr = inGroup(0) // an interrupt of the terminal does not end it
	b.end, err = b.watcher.StdinPipe()
	if err == nil {
		err = b.watcher.Start()
	}
	if err != nil {
		kill()
		return err
	}
	b.ended = make(chan struct{})
	go func() {
		b.node.Wait()
		epmd.Process.Kill()
		epmd.Wait()
		close(b.ended)
	}()
	return b.waitUntilReady(&said)
}

func (b *Broker) waitUntilReady(said *output) error {
	limit := time.NewTimer(StartLimit)
	defer limit.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for _, port := range []int{b.Port, b.TLSPort} {
		for port != 0 {
			conn, err := net.Dial("tcp", b.address(port))
			if err == nil {
				conn.Close()
				break
			}
			select {
			case <-again.C:
			case <-b.ended:
				return fmt.Errorf("RabbitMQ did not start: %s", said.tail())
			case <-limit.C:
				return errors.Join(fmt.Errorf("RabbitMQ did not start in %v: %s", StartLimit, said.tail()), b.Kill())
			}
		}
	}
	return nil
}

func (b *Broker) address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Address returns host and port of AMQP without TLS.
func (b *Broker) Address() string { return b.address(b.Port) }

// Stop ends the node as its service does: it closes connections, and its data stays.
func (b *Broker) Stop() error {
	if err := b.node.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-b.ended:
	case <-time.After(StartLimit):
	}
	return b.Kill()
}

// Kill ends the node as a loss of power does. Its data stays.
func (b *Broker) Kill() error {
	_, err := io.WriteString(b.end, "keep the data")
	err = errors.Join(err, b.end.Close())
	b.watcher.Wait() // its status is kill's, and kill finds no process after Stop
	<-b.ended
	return err
}

// Close ends the node and removes its data.
func (b *Broker) Close() error {
	return errors.Join(b.Kill(), os.RemoveAll(b.dir))
}

// Eval evaluates an expression of Erlang in the node, and returns its value in Erlang's syntax.
func (b *Broker) Eval(expression string) (string, error) {
	return b.text(fmt.Sprintf(`io_lib:format("~0tp", [%s])`, expression))
}

// text evaluates an expression with a text as its value.
func (b *Broker) text(expression string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), StartLimit)
	defer cancel()
	cmd, err := b.executable(ctx, "erl_call", "-sname", b.Node, "-c", b.cookie, "-e")
	if err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	// In base64 the text is printed as it is, whatever is in it.
	cmd.Stdin = strings.NewReader("binary_to_list(base64:encode(unicode:characters_to_binary(" + expression + "))).\n")
	cmd.Stdout, cmd.Stderr = &out, &errs
	b.asking.Lock()
	err = cmd.Run()
	b.asking.Unlock()
	value, ok := strings.CutPrefix(strings.TrimSpace(out.String()), `{ok, "`)
	if !ok {
		value, ok = strings.CutPrefix(strings.TrimSpace(out.String()), `{ok, [`) // an empty list is no string
	}
	if err != nil || !ok {
		return "", fmt.Errorf("RabbitMQ answered to %s: %s%s, %v", expression, out.String(), errs.String(), err)
	}
	text, err := base64.StdEncoding.DecodeString(strings.TrimRight(value, `"]}`))
	return string(text), err
}
