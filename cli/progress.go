// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progress shows that a command waits, and for how long, in a line removed before anything else is printed.
type progress struct {
	out  io.Writer
	what string
	stop func() // removes the line for good; it may be called twice

	mu     sync.Mutex
	since  time.Time
	shown  bool
	paused bool
}

// progress begins to show that the command waits, if stderr is a terminal and people read the output.
func (c *leaderCall) progress(what string) *progress {
	out := c.cmd.ErrOrStderr()
	if f, ok := out.(*os.File); !ok || c.json || !isTerminal(f) {
		out = nil
	}
	return newProgress(out, what)
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// newProgress returns a progress. It writes to out every second; to nothing if out is nil.
func newProgress(out io.Writer, what string) *progress {
	p := &progress{out: out, what: what, since: time.Now(), stop: func() {}}
	if out == nil {
		return p
	}
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				p.show()
			case <-done:
				return
			}
		}
	})
	p.stop = sync.OnceFunc(func() {
		close(done)
		ticking.Wait()
		p.pause()
	})
	return p
}

func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if waited := time.Since(p.since).Truncate(time.Second); !p.paused && waited > 0 {
		fmt.Fprintf(p.out, "\r\x1b[K%s, %s; Ctrl-C ends this command, not the task", p.what, waited)
		p.shown = true
	}
}

// pause removes the line until resume.
func (p *progress) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
	p.shown, p.paused = false, true
}

// resume shows the line again, with the time passed from now on.
func (p *progress) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused, p.since = false, time.Now()
}
