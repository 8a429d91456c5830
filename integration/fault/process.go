package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/internal/failpoint"
)

const (
	// restPause is how long a process that has ended by itself is left alone before it is started again, as a supervisor would.
	restPause = 200 * time.Millisecond
	// stopPatience is how long a process that is told to end may take.
	stopPatience = 10 * time.Second
)

// process is one that is started again whenever it ends, until it is to be down.
type process struct {
	name, path string
	args, env  []string
	dir        string
	log        *os.File
	// words are those that say something about it, such as that it can be used.
	words []string

	mu      sync.Mutex
	cmd     *exec.Cmd
	wanted  bool
	orders  failpoint.Orders
	said    map[string]time.Time
	struck  map[failpoint.Name]int
	rest    []byte // of a line
	started time.Time
	starts  int
	kills   int // that it was killed
	// changed is told whenever it starts or ends.
	changed chan struct{}
	over    chan struct{}
	closing bool
}

// supervise begins to look after the process; it is not started yet.
func (p *process) supervise() {
	p.said, p.struck = map[string]time.Time{}, map[failpoint.Name]int{}
	p.changed, p.over = make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(p.over)
		for {
			p.mu.Lock()
			wanted, closing := p.wanted, p.closing
			p.mu.Unlock()
			switch {
			case closing:
				return
			case !wanted:
				<-p.changed
				continue
			}
			p.once()
		}
	}()
}

// once runs it until it ends.
func (p *process) once() {
	p.mu.Lock()
	cmd := exec.Command(p.path, p.args...)
	cmd.Env, cmd.Dir = p.env, p.dir
	if len(p.orders) > 0 {
		cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], failpoint.EnvPoints+"="+p.orders.String())
	}
	p.orders = nil
	cmd.Stdout, cmd.Stderr = p, p
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Start()
	if err == nil {
		p.cmd, p.started = cmd, time.Now()
		p.starts++
	}
	p.mu.Unlock()
	if err != nil {
		_, _ = p.Write([]byte("can't be started: " + err.Error() + "\n")) // a log that is lost says nothing
		time.Sleep(restPause)
		return
	}
	_ = cmd.Wait() // however it ended, it is started again
	p.mu.Lock()
	p.cmd = nil
	byItself := p.wanted && cmd.ProcessState.ExitCode() >= 0
	p.mu.Unlock()
	if byItself {
		time.Sleep(restPause)
	}
}

// Write takes in what the process says.
func (p *process) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = append(p.rest, data...)
	for {
		line, after, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			break
		}
		p.line(string(line))
		p.rest = after
	}
	return p.log.Write(data)
}

func (p *process) line(text string) {
	for _, w := range p.words {
		if strings.Contains(text, w) {
			p.said[w] = time.Now()
		}
	}
	if name, ok := strings.CutPrefix(text, "failpoint "); ok {
		name, _, _ = strings.Cut(name, ":")
		p.struck[failpoint.Name(name)]++
	}
}

// saidSince says whether and when the process has said a word after a moment.
func (p *process) saidSince(word string, after time.Time) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.said[word]
	return at, at.After(after)
}

// start lets the process run, with orders for its first start.
func (p *process) start(orders failpoint.Orders) {
	p.mu.Lock()
	p.wanted, p.orders = true, orders
	p.mu.Unlock()
	p.tell()
}

func (p *process) tell() {
	select {
	case p.changed <- struct{}{}:
	default: // it is told already
	}
}

// signal sends a signal, and says whether there was a process to send it to.
func (p *process) signal(s syscall.Signal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := p.cmd != nil && p.cmd.Process.Signal(s) == nil
	if done && s == syscall.SIGKILL {
		p.kills++
	}
	return done
}

// kill ends it as a crash does; it is started again unless it is down.
func (p *process) kill() bool { return p.signal(syscall.SIGKILL) }

// restart kills it and starts it with orders.
func (p *process) restart(orders failpoint.Orders) {
	p.mu.Lock()
	p.orders = orders
	p.mu.Unlock()
	p.kill()
}

// down ends it and keeps it so. It waits until the process is gone.
func (p *process) down(s syscall.Signal) {
	p.mu.Lock()
	p.wanted = false
	p.mu.Unlock()
	p.signal(s)
	p.signal(syscall.SIGCONT) // one that is stopped would not hear of it
	late := time.Now().Add(stopPatience)
	for {
		p.mu.Lock()
		gone := p.cmd == nil
		p.mu.Unlock()
		if gone {
			return
		}
		if time.Now().After(late) {
			p.kill()
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// close ends the supervision too.
func (p *process) close() error {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	p.down(syscall.SIGKILL)
	p.tell()
	<-p.over
	return errors.Wrap(p.log.Close(), "close a log")
}
