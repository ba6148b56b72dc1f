// Package statsreport prints what ken stats found.
package statsreport

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ken/internal/cli/output"
	"ken/internal/door"
	"ken/internal/duration"
	"ken/internal/find/outcome"
)

// Print prints a report about the time since.
func Print(p *output.Printer, r door.Report, since time.Duration) {
	p.Linef("%s", p.Style(output.Bold, "The last "+duration.Text(since)))
	m := r.Metrics
	if m.Requests+m.Searched+m.Described+m.Calls+m.Errors == 0 {
		p.Linef("Nothing was recorded; messages of a session are: ken discover --session NAME \"…\"")
	} else {
		printMetrics(p, m)
	}
	if r.KillSwitch.Why != "" {
		p.Linef("kill switch: %s", output.Line(r.KillSwitch.Why))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Experiments)) {
		e := r.Experiments[name]
		p.Linef("experiment %s: %s; %s; %s", output.Line(name), output.Line(e.Success.Words), output.Line(e.Tokens.Words), output.Line(e.Misses.Words))
	}
	learned := false
	for _, id := range slices.Sorted(maps.Keys(r.Priors)) {
		if prior := r.Priors[id]; prior.LogOdds != 0 {
			if !learned {
				learned = true
				p.Linef("learned, from %+.2f to %+.2f; it orders what is about equally relevant:", -outcome.MaxLogOdds, outcome.MaxLogOdds)
			}
			p.Linef("%+.2f %s %s", prior.LogOdds, output.Line(string(id)), p.Style(output.Dim, output.Line(prior.Why)))
		}
	}
	if r.Log.Error != "" {
		p.Linef("%s", p.Style(output.Yellow, output.Line("the log: "+r.Log.Error)))
	}
}

// printMetrics prints what was recorded. An agent that only searches and calls
// has no messages.
func printMetrics(p *output.Printer, m outcome.Metrics) {
	if m.Requests > 0 {
		printMessages(p, m)
	}
	p.Linef("searched for: %d, not shown before: %d", m.Searched, m.Misses)
	p.Linef("calls that ran: %d, failed: %d %s", m.Calls, m.FailedCalls,
		p.Style(output.Dim, "(calls that did not start are in ken audit query: denied, invalid, not found)"))
	p.Linef("errors: %d; requests that continued without a part: %d", m.Errors, m.Degraded)
}

// printMessages prints what was chosen for messages, and whether it was used.
func printMessages(p *output.Printer, m outcome.Metrics) {
	p.Linef("%s in %s; cards triggered in %.0f%% of them, injected in %.0f%%",
		output.Plural(m.Requests, "message"), output.Plural(m.Sessions, "session"), 100*m.TriggerRate, 100*m.InjectionRate)
	p.Linef("tokens selected: %.0f per message, %.0f of them for cards %s", m.TokensMean, m.CardTokensMean,
		p.Style(output.Dim, "(counted when chosen, even if no model was reached)"))
	us := func(n int64) string { return duration.Text(time.Duration(n) * time.Microsecond) }
	line := fmt.Sprintf("time: half within %s, 95%% within %s, at most %s", us(m.P50US), us(m.P95US), us(m.MaxUS))
	if m.OverTarget > 0 {
		line += fmt.Sprintf("; %d of them over the target of %s", m.OverTarget, us(m.TargetUS))
	}
	p.Linef("%s", line)
	if m.Selections > 0 {
		p.Linef("used when chosen: %d of %d (%.0f%%); sent and not used: %d of %d", m.SelectedUsed, m.Selections, 100*m.Accuracy, m.Wasted, m.Shown)
	}
	if t := m.Texts; t.Sent > 0 {
		p.Linef("cards and other texts: %d sent; used %d of %d (%.0f%%) %s", t.Sent, t.Used, t.Judged, 100*t.Rate,
			p.Style(output.Dim, "(used: a tool that it names was called in the same turn, or it was read)"))
		if t.Unjudged > 0 {
			p.Linef("not judged: %d of them, because they name no tool", t.Unjudged)
		}
	}
}
