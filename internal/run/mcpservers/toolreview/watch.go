package toolreview

import (
	"context"
	"time"

	"ken/internal/govern/pin"
)

// every is how often the pins are looked at.
const every = time.Second

// checkAnyway is after how many looks tools that wait are checked again although
// their pins have not changed: the store may have failed the last time.
const checkAnyway = 30

// Watch checks the tools that wait again when their pins change, until ctx ends.
// Another process may have accepted them.
func (v *Reviews) Watch(ctx context.Context) {
	if v.gateway() == nil || v.cfg.Servers.Shared() {
		return
	}
	seen := map[string]int64{} // by server: the revision of the pins at the last check
	policy := v.cfg.Policy()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for turn := 1; ; turn++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := v.cfg.Policy()
		if turn%checkAnyway == 0 || now != policy {
			clear(seen)
		}
		policy = now
		for _, s := range v.gateway().Status() {
			if s.Quarantined+s.Barred == 0 {
				continue
			}
			if err := v.checkAgain(ctx, s.Name, seen); err != nil && ctx.Err() == nil {
				v.cfg.Log.Warn("whether tools that wait were accepted cannot be seen", "server", s.Name, "error", err)
			}
		}
	}
}

// checkAgain checks the tools of a server if their pins have changed.
func (v *Reviews) checkAgain(ctx context.Context, name string, seen map[string]int64) error {
	key := v.cfg.Servers.PinKey(name)
	desk, err := v.cfg.Pins()
	if err != nil {
		return err
	}
	now, err := desk.Revision(ctx, key)
	if err != nil {
		return err
	}
	others, err := desk.Revision(ctx, pin.OffersKey(key))
	if err != nil {
		return err
	}
	now = max(now, others) // revisions of one store only grow
	if was, ok := seen[name]; ok && was == now {
		return nil
	}
	if err := v.gateway().Review(ctx, name); err != nil {
		return err
	}
	seen[name] = now
	return nil
}
