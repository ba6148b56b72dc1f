package catalogapi

import (
	"net/http"
	"time"

	"ken/capability"
	"ken/internal/find/checkup"
	"ken/internal/serve/httpapi/wire"
)

const (
	checkupSpan = 90 * 24 * time.Hour // how far back the outcome log is read
	mostChecked = 2000                // capabilities: more take minutes
)

// A Checkup is what ken eval --json says of a catalog without cases.
type Checkup struct {
	checkup.Report
	LeftOut int `json:"leftOut"` // capabilities that were not asked for, as there are too many
}

// checkup asks for every capability in the words of its description, as a model
// that works for the caller would find it. Nothing is recorded.
func (s *server) checkup(r *wire.Request) (any, error) {
	if !s.measuring.CompareAndSwap(false, true) {
		return nil, &wire.Problem{Status: http.StatusConflict, Code: "busy", Detail: "another evaluation runs; ask again when it has ended"}
	}
	defer s.measuring.Store(false)
	e, err := s.Evaluate(r.Context(), r.Who)
	if err != nil {
		return nil, err
	}
	var corpus []*capability.Capability
	out := Checkup{}
	for entry := range s.Door.View(r.Who.Principal).All() {
		switch {
		case entry.State != "active":
		case len(corpus) == mostChecked:
			out.LeftOut++
		default:
			corpus = append(corpus, entry.Capability)
		}
	}
	out.Report, err = checkup.Run(r.Context(), e.Find, corpus, s.Door.Mistaken(time.Now().Add(-checkupSpan)))
	if err != nil {
		return nil, err
	}
	return out, nil
}
