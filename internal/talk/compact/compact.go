// Package compact shortens the history of a session by one entry that stands for
// the earlier part.
package compact

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
)

// timeout is how long a model may take to sum up.
const timeout = 2 * time.Minute

// A Plan is what to hide.
type Plan struct {
	prompt.Plan
	Entries  []session.Entry // all of the session
	MaxBytes int             // of a summary; less than zero: no limit
}

// A Model is who sums up.
type Model struct {
	llm.Model
	Row model.Row
}

// Run returns the entry that carries out a plan: a summary by the model or, if
// the plan asks for none, a marker. If the model does not sum up, Run returns the
// marker, which always works, and an error that says why.
func Run(ctx context.Context, p Plan, m Model) (session.Entry, error) {
	marker := prompt.Marker(p.Entries, p.Plan)
	if p.Do != prompt.Condense {
		return marker, nil
	}
	e, err := summary(ctx, p, m)
	if err != nil {
		return marker, err
	}
	return e, nil
}

// summary lets a model sum up what a plan hides. Its entry has the usage and the
// cost of the request. A panic of the model becomes an error.
func summary(ctx context.Context, p Plan, m Model) (e session.Entry, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the model: panic: %s", untrusted.Line(fmt.Sprint(r), 200))
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	window := m.Row.Window
	if window == 0 {
		window = 2 * p.Before
	}
	var text strings.Builder
	var usage llm.Usage
	for c, err := range m.Generate(ctx, prompt.CondenseRequest(p.Entries, p.Plan, window*9/10)) {
		if err != nil {
			return session.Entry{}, err
		}
		text.WriteString(c.Text)
		if c.Usage != nil {
			usage = *c.Usage
		}
		if p.MaxBytes >= 0 && text.Len() > p.MaxBytes {
			return session.Entry{}, errors.New("the summary would not end")
		}
	}
	e, ok := prompt.Summary(p.Entries, p.Plan, text.String())
	if !ok {
		return session.Entry{}, errors.New("the summary is empty or too long")
	}
	e.Usage, e.Cost = &usage, m.Row.Price.Cost(usage)
	return e, nil
}
