package trailapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/serve/httpapi/wire"
)

// The events of a feed.
type (
	catalogNews struct {
		Type    string `json:"type"` // catalog
		Version uint64 `json:"version"`
		Count   int    `json:"count"` // of what the caller sees
	}
	approvalNews struct {
		Type    string `json:"type"` // approvals
		Pending int    `json:"pending"`
	}
	trailNews struct {
		Type   string          `json:"type"` // trail
		Record json.RawMessage `json:"record"`
	}
	// jobsNews says which job of the caller changed last.
	jobsNews struct {
		Type  string `json:"type"` // jobs
		ID    string `json:"id"`
		State string `json:"state"`
	}
	// resetNews says that records are missing from the feed: read the trail.
	resetNews struct {
		Type string `json:"type"` // reset
	}
)

// feed sends the state of things, and then every change of it, until the client
// or the server goes. A client that comes again gets the state again: it needs
// to name no event. Of the audit log only new records are sent; a client that reads the
// trail after the first event misses none.
func (a *api) feed(w http.ResponseWriter, r *wire.Request) error {
	if r.Who.Principal.ID == "" {
		return &capability.Error{Kind: capability.Denied, Op: "follow", Target: "the feed", Err: errors.New("missing principal"), Fix: "say who does"}
	}
	f, err := a.hub.join(r.Who)
	if err != nil {
		return err
	}
	defer a.hub.leave(f)
	events, err := wire.NewEvents(w)
	if err != nil {
		return err
	}
	send := func(v any) error {
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return events.Event("", "", data)
	}
	sent := catalogNews{Type: "catalog"}
	sent.Version, sent.Count = a.catalogOf(r)
	if err := send(sent); err != nil {
		return nil // the client has gone
	}
	pending := -1
	alive := time.NewTicker(a.keepAlive)
	defer alive.Stop()
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-a.Waiting.Done():
			_ = events.Leave() // the client may have gone
			return nil
		case <-alive.C:
			err = events.Comment("still here")
		case line := <-f.records:
			err = send(trailNews{"trail", line})
		case <-f.wake:
			now, version, jobs, lost := a.hub.state(f)
			if lost {
				err = send(resetNews{"reset"})
			}
			if err == nil && now >= 0 && now != pending {
				pending = now
				err = send(approvalNews{"approvals", now})
			}
			for i := 0; err == nil && i < len(jobs); i++ {
				err = send(jobs[i])
			}
			if err == nil && version > sent.Version {
				sent.Version, sent.Count = a.catalogOf(r)
				err = send(sent)
			}
		}
		if err != nil {
			return nil // the client has gone
		}
	}
}

// catalogOf returns the version of the catalog and how much of it a caller sees.
func (a *api) catalogOf(r *wire.Request) (version uint64, count int) {
	var st door.Stats
	if r.Who.Operator {
		st = a.Door.OperatorView(r.Who.Principal).Stats()
	} else {
		st = a.Door.View(r.Who.Principal).RedactedStats()
	}
	return st.Version, st.Capabilities
}
