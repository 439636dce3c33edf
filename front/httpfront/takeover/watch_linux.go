// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// supported is true: this system can watch connections.
const supported = true

// connections watches the connections of all streams.
var connections watcher

// watcher reports readable connections. It has one epoll descriptor and one goroutine for all of them, and neither
// while there is none. The goroutine waits in the runtime's poller, which watches the descriptor, so it occupies no
// thread.
type watcher struct {
	mu     sync.Mutex
	last   uint64 // the id of the newest watch; ids are never used again, unlike descriptors
	byID   map[uint64]*watch
	epoll  *os.File
	done   chan struct{} // closed when the goroutine has ended
	number int           // the descriptor of epoll
}

// watch is one watched connection.
type watch struct {
	watcher *watcher
	id      uint64
	socket  syscall.RawConn
	gone    func()
	read    func()
}

// watchSocket watches a connection. gone is called when the other end has closed it. Otherwise read is called once
// after each call of arm, when the connection can be read. Neither must wait: the other connections would wait for it.
func (w *watcher) watchSocket(socket syscall.RawConn, gone, read func()) (*watch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.epoll == nil {
		if err := w.open(); err != nil {
			return nil, err
		}
	}
	w.last++
	x := &watch{watcher: w, id: w.last, socket: socket, gone: gone, read: read}
	if err := x.control(unix.EPOLL_CTL_ADD, 0); err != nil {
		if len(w.byID) == 0 {
			file, done := w.epoll, w.done
			w.epoll = nil
			go closeEpoll(file, done)
		}
		return nil, err
	}
	w.byID[x.id] = x
	return x, nil
}

// open makes the descriptor and begins to wait. w.mu is held.
func (w *watcher) open() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("takeover: %w", os.NewSyscallError("epoll_create1", err))
	}
	if err := unix.SetNonblock(fd, true); err != nil { // or os would not have the runtime watch it
		_ = unix.Close(fd)
		return fmt.Errorf("takeover: %w", os.NewSyscallError("fcntl", err))
	}
	w.epoll, w.number, w.done = os.NewFile(uintptr(fd), "epoll"), fd, make(chan struct{})
	w.byID = make(map[uint64]*watch)
	go w.wait(w.epoll, w.done)
	return nil
}

// control changes the reports about a connection. w.mu is held.
func (x *watch) control(operation int, events uint32) error {
	event := unix.EpollEvent{Events: events | unix.EPOLLONESHOT, Fd: int32(uint32(x.id)), Pad: int32(x.id >> 32)}
	var failed error
	err := x.socket.Control(func(fd uintptr) {
		failed = unix.EpollCtl(x.watcher.number, operation, int(fd), &event)
	})
	if err == nil {
		err = os.NewSyscallError("epoll_ctl", failed)
	}
	return err
}

// arm has gone or read called once more.
func (x *watch) arm() error {
	w := x.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID[x.id] == nil {
		return nil
	}
	return x.control(unix.EPOLL_CTL_MOD, unix.EPOLLIN|unix.EPOLLRDHUP)
}

// disarm takes back arm. A call of gone or read may still be running.
func (x *watch) disarm() {
	w := x.watcher
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID[x.id] != nil {
		_ = x.control(unix.EPOLL_CTL_MOD, 0)
	}
}

// remove ends the watch, before the connection is closed. A call of gone or read may still be running.
func (x *watch) remove() {
	w := x.watcher
	w.mu.Lock()
	if w.byID[x.id] == nil {
		w.mu.Unlock()
		return
	}
	_ = x.control(unix.EPOLL_CTL_DEL, 0) // it fails for a closed socket, which is no longer watched
	delete(w.byID, x.id)
	file, done := w.epoll, w.done
	if len(w.byID) == 0 {
		w.epoll = nil
	} else {
		file = nil
	}
	w.mu.Unlock()
	if file != nil {
		closeEpoll(file, done)
	}
}

// closeEpoll closes the descriptor and waits until the goroutine has ended.
func closeEpoll(file *os.File, done <-chan struct{}) {
	_ = file.Close()
	<-done
}

// wait reports events until the descriptor is closed.
func (w *watcher) wait(epoll *os.File, done chan<- struct{}) {
	defer close(done)
	poller, err := epoll.SyscallConn()
	if err != nil {
		return // it has been closed
	}
	events := make([]unix.EpollEvent, 128)
	_ = poller.Read(func(fd uintptr) (finished bool) {
		for {
			switch n, err := unix.EpollWait(int(fd), events, 0); {
			case err == unix.EINTR:
			case err != nil || n == 0:
				return false // wait until there is more
			default:
				w.report(events[:n])
			}
		}
	})
}

// report calls gone of the closed connections, and read of the others.
func (w *watcher) report(events []unix.EpollEvent) {
	for i := range events {
		w.mu.Lock()
		x := w.byID[uint64(uint32(events[i].Fd))|uint64(uint32(events[i].Pad))<<32]
		w.mu.Unlock()
		switch {
		case x == nil:
		case events[i].Events&(unix.EPOLLHUP|unix.EPOLLERR|unix.EPOLLRDHUP) != 0:
			x.gone()
		default:
			x.read()
		}
	}
}
