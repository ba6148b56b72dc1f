package account

import (
	"sync"

	"ken/internal/tokenizer"
)

// maxCounted is how many bytes of text a [Counts] remembers; then it starts from
// empty.
const maxCounted = 1 << 20

// A Counts remembers how many tokens the texts of tools have: sessions begin with
// the same ones, and each text is counted for the plan, the prefix and the
// account. The zero value is empty. A Counts is safe for concurrent use.
type Counts struct {
	mu     sync.Mutex
	counts map[string]int
	bytes  int // of the texts
}

// Counter returns a counter that counts with count and remembers.
func (c *Counts) Counter(count tokenizer.Counter) tokenizer.Counter {
	return func(text string) int {
		c.mu.Lock()
		n, ok := c.counts[text]
		c.mu.Unlock()
		if ok {
			return n
		}
		n = count(text)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.counts == nil || c.bytes+len(text) > maxCounted {
			c.counts, c.bytes = map[string]int{}, 0
		}
		c.counts[text] = n
		c.bytes += len(text)
		return n
	}
}
