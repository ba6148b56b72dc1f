package app

import (
	"context"
	"errors"
	"time"
)

// tidyEvery is how often a program that stays clears up behind itself.
const tidyEvery = time.Hour

// tidy removes expired data, at once and then every tidyEvery, until ctx ends:
// results that can no longer be read, sessions older than chat.keep allows, and
// chains of the audit log older than audit.keep allows. Errors are logged, and
// what failed is tried again the next time.
func (a *App) tidy(ctx context.Context) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		if err := a.sweep(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("tidy up", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (a *App) sweep(ctx context.Context) error {
	kept, err := a.results.Get()
	if err == nil {
		_, err = kept.Sweep(ctx)
	}
	if sessions, made := a.chatParts.sessions.Peek(); made {
		_, serr := sessions.Sweep(ctx)
		err = errors.Join(err, serr)
	}
	if log, made := a.trail.Peek(); made {
		err = errors.Join(err, a.Archive.SaveHead(log))
	}
	keep := a.effective().Audit.Keep
	if keep <= 0 {
		return err
	}
	log, lerr := a.trail.Get()
	if lerr == nil {
		_, lerr = log.Retire(ctx, time.Now().Add(-keep))
	}
	return errors.Join(err, lerr)
}
