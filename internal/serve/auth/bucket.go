package auth

import (
	"sync"
	"time"
)

const (
	burst  = 20              // failed attempts at once
	refill = 2 * time.Second // for one more
)

// A bucket counts failures. The right token is always let in: a stranger's
// failures do not lock the user out, they only stop being answered and logged
// one by one. The zero bucket is full.
type bucket struct {
	mu   sync.Mutex
	used int
	last time.Time // when used was right
}

// take reports whether one more failure is within the rate.
func (b *bucket) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	back := int(now.Sub(b.last) / refill)
	if back >= b.used {
		b.used, b.last = 0, now
	} else {
		b.used -= back
		b.last = b.last.Add(time.Duration(back) * refill)
	}
	if b.used == burst {
		return false
	}
	b.used++
	return true
}
