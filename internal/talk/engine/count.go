package engine

import (
	"sync"

	"ken/internal/tokenizer"
)

// counts remembers how many tokens the texts of tools are: sessions begin with
// the same ones, and each text is counted for the plan, the prefix and the
// account.
type counts struct {
	mu    sync.Mutex
	made  map[string]int
	bytes int // of the texts
}

const mostCounted = 1 << 20 // bytes; then it is begun anew

// with returns a counter that remembers.
func (c *counts) with(count tokenizer.Counter) tokenizer.Counter {
	return func(text string) int {
		c.mu.Lock()
		n, ok := c.made[text]
		c.mu.Unlock()
		if ok {
			return n
		}
		n = count(text)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.made == nil || c.bytes+len(text) > mostCounted {
			c.made, c.bytes = map[string]int{}, 0
		}
		c.made[text] = n
		c.bytes += len(text)
		return n
	}
}
