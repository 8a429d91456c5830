package es

import "sync"

// Promise is a [Pending] whose outcome its maker gives, once. Make it with [NewPromise].
type Promise struct {
	once sync.Once
	done chan struct{}
	err  error
}

// NewPromise returns a promise without an outcome.
func NewPromise() *Promise { return &Promise{done: make(chan struct{})} }

// Resolve gives the outcome; nil means stored. Only the first call counts.
func (p *Promise) Resolve(err error) {
	p.once.Do(func() {
		p.err = err
		close(p.done)
	})
}

// Done is closed when the outcome is known.
func (p *Promise) Done() <-chan struct{} { return p.done }

// Err gives the outcome after Done, and nil before.
func (p *Promise) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}
