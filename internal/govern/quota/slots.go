package quota

import "sync"

// Slots divide the places of things of one kind: how many calls of each extension run
// at once, over all processes.
type Slots struct {
	quota *Quota
	kind  string

	mu       sync.Mutex
	onChange func(name string, err error)
}

// Slots returns the places of a kind of things.
func (q *Quota) Slots(kind string) *Slots { return &Slots{quota: q, kind: kind} }

// OnChange sets what is told that there may be more places for a name, or why there
// are none. It is called without a lock, never from within Use.
func (s *Slots) OnChange(f func(name string, err error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onChange = f
}

// Use says how many of the places of a name are taken here, and how many would be if
// none had to wait. It returns how many may be taken now. It does not block.
func (s *Slots) Use(of string, limit, using, want int) int {
	return s.quota.use(name(s.kind, of), limit, using, want, func(err error) {
		s.mu.Lock()
		f := s.onChange
		s.mu.Unlock()
		if f != nil {
			f(of, err)
		}
	})
}
