package confine

import (
	"testing"
	"time"
)

// TestPauseAfter: a tool that is far from its limit is looked at seldom, and as
// soon as it could have got there.
func TestPauseAfter(t *testing.T) {
	for _, tt := range []struct {
		left       int64
		took       time.Duration
		processors int
		want       time.Duration
	}{
		{0, 0, 2, memoryPause},
		{32 << 20, 0, 2, memoryPause},
		{512 << 20, 0, 2, 125 * time.Millisecond},
		{512 << 20, 0, 8, 31250 * time.Microsecond},
		{512 << 20, 0, 256, 31250 * time.Microsecond},
		{12 << 30, 0, 2, memoryFar},
		{1 << 50, 0, 1, memoryFar},
		{0, 5 * time.Millisecond, 2, 50 * time.Millisecond},
		{12 << 30, 40 * time.Millisecond, 2, 400 * time.Millisecond},
		{12 << 30, time.Minute, 2, memoryLongest},
	} {
		if got := pauseAfter(tt.left, tt.took, tt.processors); got != tt.want {
			t.Errorf("pauseAfter(%d, %v, %d) = %v, want %v", tt.left, tt.took, tt.processors, got, tt.want)
		}
	}
}
