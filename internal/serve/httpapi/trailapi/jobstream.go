package trailapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"ken/internal/run/queue"
	"ken/internal/serve/httpapi/wire"
)

// jobNews is the event of a job's stream: the job as it is now.
type jobNews struct {
	Type string `json:"type"` // job
	job
}

// followJob sends a job as it is, and again each time it changes, until it has
// ended. Each event is the whole job, so that a client that comes again misses
// nothing. One that has the last event of a job that has ended is answered with
// 204, after which browsers do not ask again.
func (a *api) followJob(w http.ResponseWriter, r *wire.Request) error {
	q, j, err := a.ownJob(r)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	news, err := q.Follow(ctx, j.ID)
	if err != nil {
		return err
	}
	if j, err = q.Get(ctx, j.ID); err != nil { // it may have changed before it was followed
		return err
	}
	out, id, err := a.jobEvent(r, q, j)
	if err != nil {
		return err
	}
	sent := cmp.Or(r.Header.Get("Last-Event-ID"), r.Text("after"))
	if id == sent && j.State.Final() {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	events, err := wire.NewEvents(w)
	if err != nil {
		return err
	}
	for {
		if id != sent {
			data, err := json.Marshal(out)
			if err != nil {
				return err
			}
			if events.Event(id, "", data) != nil {
				return nil // the client has gone
			}
			sent = id
		}
		if j.State.Final() {
			return nil
		}
		var more bool
		if j, more = a.nextNews(ctx, events, news); !more {
			return nil
		}
		if out, id, err = a.jobEvent(r, q, j); err != nil {
			return nil // the client reads it again
		}
	}
}

// nextNews waits for the next change. It reports false when the client or the
// server goes.
func (a *api) nextNews(ctx context.Context, events *wire.Events, news <-chan queue.Job) (queue.Job, bool) {
	alive := time.NewTicker(a.keepAlive)
	defer alive.Stop()
	for {
		select {
		case <-ctx.Done():
			return queue.Job{}, false
		case <-a.Waiting.Done():
			_ = events.Leave() // the client may have gone
			return queue.Job{}, false
		case j, ok := <-news:
			return j, ok
		case <-alive.C:
			if events.Comment("still waiting") != nil {
				return queue.Job{}, false
			}
		}
	}
}

// jobEvent returns the event of a job and its id, which changes with the job and
// its progress.
func (a *api) jobEvent(r *wire.Request, q queue.Queue, j queue.Job) (jobNews, string, error) {
	out, err := a.whole(r, q, j)
	id := fmt.Sprint(j.Version)
	if p := out.Progress; p != nil {
		id = fmt.Sprintf("%s-%d", id, p.At.UnixMicro())
	}
	return jobNews{"job", out}, id, err
}
