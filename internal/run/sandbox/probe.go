package sandbox

import (
	"context"
	"errors"
	"sync"
)

// A Report is what [Probe] found.
type Report struct {
	// Isolation is what a best-effort run gets.
	Isolation Isolation `json:"isolation"`
	// Attempts are the canary's tries under that profile.
	Attempts []Attempt `json:"attempts"`

	// Unclear says why nothing was found out, for want of files, memory, disk or
	// time. Programs that require any isolation are not started then, not even
	// with best-effort, and the next call tries again.
	Unclear string `json:"unclear,omitempty"`
}

// An Attempt is one try to get out.
type Attempt struct {
	Name    string `json:"name"`
	Stopped bool   `json:"stopped"`
	Detail  string `json:"detail,omitempty"` // what stopped it, or what it did
}

// Probe finds the strongest profile that holds here: it lets a canary try to
// get out of each, strongest first, and looks at what came of it. That is done
// once for the process, unless it is unclear what holds; later calls return the
// same Report.
func Probe(context.Context) Report { return probed() }

// untilClear returns a function that probes once, and again as long as that was
// unclear.
func untilClear(probe func() Report) func() Report {
	once := onceGood(func() (Report, error) {
		r := probe()
		if r.Unclear != "" {
			return r, errors.New(r.Unclear)
		}
		return r, nil
	})
	return func() Report {
		r, _ := once() // the report has the error
		return r
	}
}

// onceGood is [sync.OnceValues], except that a failure is not kept: what a process
// that has no files left cannot do, it can do later.
func onceGood[T any](find func() (T, error)) func() (T, error) {
	var mu sync.Mutex
	var known *T
	return func() (T, error) {
		mu.Lock()
		defer mu.Unlock()
		if known != nil {
			return *known, nil
		}
		v, err := find()
		if err == nil {
			known = &v
		}
		return v, err
	}
}
