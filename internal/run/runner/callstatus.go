package runner

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"ken/capability"
	"ken/internal/store"
)

// A CallStatus is what is kept of a call that had a key and may have changed
// something. One that neither runs nor has ended was running when its process
// ended, or broke: whether it had its effect is unknown.
type CallStatus struct {
	Effect string // as the records of the trail have it
	Began  time.Time
	Runs   bool // it still does, or its process is alive
	Ended  bool // Result and Err are its end

	Result capability.Result
	Err    error
}

// settles is how long it may take that the end of a call is written.
const settles = 2 * time.Second

// CallStatus returns what is kept of an earlier call with the key of this one, which
// needs no more than its principal, its session and its key. It is false where
// nothing is: the call did not begin, changes nothing, or is forgotten by now.
// Nothing is called or claimed.
func (r *Runner) CallStatus(ctx context.Context, call capability.Call) (CallStatus, bool, error) {
	key := r.effects.keyOf(ctx, call)
	if key == "" || r.effects.store == nil {
		return CallStatus{}, false, nil
	}
	c := &claim{key: store.Key("effect", effectScope(call, key))}
	soon, cancel := context.WithTimeout(ctx, settles)
	defer cancel()
	here := r.effects.begin(soon, c) != nil // it still runs in this Runner
	if !here {
		defer r.effects.end(c)
	}
	item, ok, err := r.effects.store.Get(ctx, c.key)
	if err != nil || !ok {
		return CallStatus{}, false, err
	}
	var e effect
	if err := json.Unmarshal(item.Value, &e); err != nil {
		return CallStatus{}, false, errors.New("record of the call cannot be read")
	}
	if e.State == effectRunning && e.Owner == r.effects.owner && !here && r.effects.isUnused(c.key) {
		return CallStatus{}, false, nil
	}
	f := CallStatus{Effect: e.ID, Began: e.Began, Ended: e.State == effectDone}
	switch e.State {
	case effectDone:
		f.Result, f.Err = e.outcome(nil)
	case effectRunning:
		if f.Runs = here && e.Owner == r.effects.owner; !f.Runs {
			f.Runs, err = r.effects.lease.alive(ctx, e.Owner)
		}
	}
	return f, true, err
}
