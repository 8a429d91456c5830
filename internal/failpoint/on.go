//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Enabled says whether the program was built to fail.
const Enabled = true

// exitMisled is the exit code of a process whose environment is not understood: that of settings that can't work.
const exitMisled = 2

// told is what the environment has told this process. It is read at the first passing, and belongs to the process as its environment does.
var told = sync.OnceValue(func() *process {
	orders, err := ParseOrders(os.Getenv(EnvPoints))
	var bugs []Bug
	if err == nil {
		bugs, err = ParsePlanted(os.Getenv(EnvPlanted))
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err) // the exit code says it too
		os.Exit(exitMisled)
	}
	return &process{orders: orders, bugs: bugs, passed: map[Name]int{}}
})

// process counts what it passes.
type process struct {
	orders Orders
	bugs   []Bug
	mu     sync.Mutex
	passed map[Name]int
}

// due counts a passing, and gives the order for it.
func (p *process) due(name Name) (o Order, passing int, ok bool) {
	if !slices.ContainsFunc(p.orders, func(o Order) bool { return o.Name == name }) {
		return o, 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed[name]++
	passing = p.passed[name]
	for _, o := range p.orders {
		if o.Name == name && (o.At == 0 || o.At == passing) {
			return o, passing, true
		}
	}
	return o, passing, false
}

// Pass is a moment that can be made to wait, stop or end.
func Pass(name Name) {
	_ = Fail(name) // a point that is only passed takes no order to fail
}

// Fail is a moment that can be made to fail, too. It gives [ErrInjected].
func Fail(name Name) error {
	o, passing, ok := told().due(name)
	if !ok {
		return nil
	}
	if o.At > 0 {
		_, _ = fmt.Fprintln(os.Stderr, struck(o, passing)) // who reads it learns what happened; the point is struck all the same
	}
	switch o.Action {
	case Kill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // a process may always kill itself
		select {}
	case Stop:
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case Delay:
		time.Sleep(o.For)
	case Error:
		return ErrInjected
	}
	return nil
}

// struck is what a process says when it passes a point that has an order.
func struck(o Order, passing int) string {
	return fmt.Sprintf("failpoint %s: %s at passing %d", o.Name, o.Action, passing)
}

// Planted says whether a bug is planted.
func Planted(bug Bug) bool { return slices.Contains(told().bugs, bug) }

// Clock gives the clock that a process goes by: the true one, and what the clock's file says that it is off by. A file that can't be read
// means that it is right.
func Clock(now func() time.Time) func() time.Time {
	path := os.Getenv(EnvClock)
	if path == "" {
		return now
	}
	var mu sync.Mutex
	var off time.Duration
	var read time.Time
	return func() time.Time {
		at := now()
		mu.Lock()
		defer mu.Unlock()
		if at.Sub(read).Abs() > clockLook {
			read = at
			text, err := os.ReadFile(path)
			if err == nil {
				off, err = time.ParseDuration(strings.TrimSpace(string(text)))
			}
			if err != nil {
				off = 0
			}
		}
		return at.Add(off)
	}
}

// clockLook is how often the clock's file is read at most.
const clockLook = 20 * time.Millisecond
