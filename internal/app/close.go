package app

import (
	"errors"
	"sync"
)

// closers are functions to call when Ken closes. The zero value is ready.
type closers struct {
	mu      sync.Mutex
	list    []func() error
	closing sync.Mutex // held by Close, before mu
}

// Add adds a function. It is called before those that were added earlier.
func (c *closers) Add(f func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, f)
}

// Close calls the functions, the last first, also those that are added while it
// runs: a call that ends may make a part on its way.
func (c *closers) Close() error {
	c.closing.Lock()
	defer c.closing.Unlock()
	var errs []error
	for {
		c.mu.Lock()
		n := len(c.list)
		if n == 0 {
			c.mu.Unlock()
			return errors.Join(errs...)
		}
		last := c.list[n-1]
		c.list = c.list[:n-1]
		c.mu.Unlock()
		errs = append(errs, last())
	}
}
