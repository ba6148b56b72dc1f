// Package connectreport holds and prints what ken connect did.
package connectreport

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/cli/output"
	"ken/internal/connect"
	"ken/internal/connect/permission"
	"ken/internal/serve/mcpserver"
)

// A Report is what connecting a client came to, for --json.
type Report struct {
	Client  string         `json:"client"`
	Files   []string       `json:"files"`
	Servers []Start        `json:"servers"`
	Kept    []connect.Kept `json:"kept"`
	Secrets []string       `json:"secrets"` // names that were sealed
	Unset   []string       `json:"unset"`   // names that a person has to set
	Notes   []string       `json:"notes"`
	Before  int            `json:"tokensBefore"` // of the definitions of all tools that moved
	After   int            `json:"tokensAfter"`  // that the client now has in every turn
	Surface string         `json:"surface,omitempty"`
	Others  []Neighbour    `json:"others"`         // servers of others that the client has now too
	HTTP    *Listener      `json:"http,omitempty"` // with --http
	Would   int            `json:"wouldMove"`

	Rules        []permission.Rule    `json:"rules"`        // for this client, from its settings
	Untranslated []permission.Refused `json:"untranslated"` // settings of the client that Ken has no rule for

	DryRun bool `json:"dryRun,omitempty"`
}

// A Neighbour is how many servers of another client, or of a person, are shared.
type Neighbour struct {
	Client  string `json:"client,omitempty"` // empty: a person wrote them
	Servers int    `json:"servers"`
}

// A Listener is where a client asks over HTTP.
type Listener struct {
	Addr    string `json:"addr"`
	Answers string `json:"answers"` // "ken", "other" or "nobody"
}

// A Start is how a server started.
type Start struct {
	Name   string `json:"name"`
	Tools  int    `json:"tools"`
	Tokens int    `json:"tokens"`
	Error  string `json:"error,omitempty"`
	Fix    string `json:"fix,omitempty"`
}

// ClientInfo returns the name that a client gives itself in MCP, of those whose
// surface may depend on it; empty for the rest.
func ClientInfo(client string) string {
	switch client {
	case "claude":
		return "claude-code"
	case "codex":
		return "codex-mcp-client"
	case "vscode":
		return "Visual Studio Code"
	}
	return ""
}

// searches reports whether a client itself keeps the definitions of tools back until
// its model searches for them.
func searches(client string) bool { return client == "qwen" || ClientInfo(client) != "" }

// PrintStarts says how each server started. What failed is told in full: it is
// what a person has to act on.
func (r Report) PrintStarts(p *output.Printer) {
	var rows [][]string
	for _, s := range r.Servers {
		row := []string{"ok", s.Name, output.Plural(s.Tools, "tool"), output.Plural(s.Tokens, "token")}
		if s.Error != "" {
			row = []string{"failed", s.Name, "", ""}
		}
		rows = append(rows, row)
	}
	p.Table([]output.Column{{Styles: map[string]string{"ok": output.Green, "failed": output.Red}}, {Style: output.Bold}, {}, {}}, rows)
	for _, s := range r.Servers {
		if s.Error == "" {
			continue
		}
		line := output.Line(s.Error)
		if s.Fix != "" {
			line += "; " + output.Line(s.Fix)
		}
		p.Linef("%s %s: %s", p.Style(output.Red, "failed"), output.Line(s.Name), line)
	}
	for _, n := range r.Others {
		of := "that you wrote yourself"
		if n.Client != "" {
			of = "of " + output.Line(n.Client)
		}
		p.Linef("… and %s %s, which this client now has as well", output.Plural(n.Servers, "server"), of)
	}
}

// MenuWords says what the model of the client had before its eyes, and has. A
// client that keeps tools back itself did so before, and Ken saves it nothing
// there. Inlines says that it does not, with the model that it has. Tools of a
// server that did not start are not counted, which is said.
func (r Report) MenuWords(menu mcpserver.Menu, inlines bool) string {
	before, now := output.Plural(r.Before, "token"), output.Plural(r.After, "token")
	failed := 0
	for _, s := range r.Servers {
		if s.Error != "" {
			failed++
		}
	}
	switch {
	case failed > 0 && failed == len(r.Servers):
		return fmt.Sprintf("No server started, so Ken does not know what the tools cost. Ken's own menu: %s in every turn. Correct what failed, then run ken doctor.", now)
	case failed > 0:
		before += fmt.Sprintf(" (without %s that failed)", output.Plural(failed, "server"))
	}
	defers := searches(r.Client) && !inlines
	switch {
	case menu.Surface == "direct" && defers:
		return fmt.Sprintf("Tool definitions: %s. %s loads them only when searched for; Ken's own %s add %s.", before, r.Client, output.Plural(menu.Tools-menu.Deferred, "tool"), now)
	case menu.Surface == "direct":
		return fmt.Sprintf("Menu before: %s in every turn. Now: the same and %s, since mcp.surface is direct.", before, now)
	case defers:
		return fmt.Sprintf("Tool definitions: %s, which %s loaded only when searched for. Menu now: %s in every turn.", before, r.Client, now)
	case failed == 0 && r.After > r.Before:
		return fmt.Sprintf("Menu before: %s in every turn. Now: %s. With so few tools Ken costs more tokens than it saves.", before, now)
	}
	return fmt.Sprintf("Menu before: %s in every turn. Now: %s.", before, now)
}

// Untranslated returns the error for a client with settings that Ken has no rule
// for.
func Untranslated(p *connect.Plan) error {
	var all []string
	for _, r := range p.Refused {
		all = append(all, r.String())
	}
	return &capability.Error{
		Kind: capability.Invalid, Op: "connect", Target: p.Client,
		Err: fmt.Errorf("nothing was changed, because Ken has no rule for %s of the client: %s", output.Plural(len(all), "setting"), strings.Join(all, "; ")),
		Fix: "write a rule of your own (policy.rules) and pass --skip-untranslated",
	}
}

// Listen asks who answers at the address that a client will use.
func Listen(ctx context.Context, addr string) *Listener {
	l := &Listener{Addr: addr, Answers: "nobody"}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/healthz", nil)
	if err != nil {
		return l
	}
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy: it is this machine
	res, err := plain.Do(req)
	if err != nil {
		return l
	}
	res.Body.Close()
	l.Answers = "other"
	if res.StatusCode == http.StatusOK {
		l.Answers = "ken"
	}
	return l
}

// PrintHTTP says what must run for a client that asks over HTTP.
func (r Report) PrintHTTP(p *output.Printer) {
	if r.HTTP == nil {
		return
	}
	now := map[string]string{"ken": "It answers there now.", "other": "Something else answers there now.", "nobody": "Nothing answers there now."}
	p.Linef("%s asks over HTTP: ken serve must run at %s whenever it does. %s", r.Client, output.Line(r.HTTP.Addr), now[r.HTTP.Answers])
}

// PrintDisconnected says what disconnecting a client did.
func PrintDisconnected(p *output.Printer, client string, d connect.Disconnection) {
	for _, f := range d.Files {
		p.Linef("%s %s", p.Style(output.Green, f.How+":"), output.Line(f.Path))
		for _, n := range f.Notes {
			p.Linef("  %s", output.Line(n))
		}
	}
	if d.Token {
		p.Linef("the token of %s is removed; a client that still shows it is refused", output.Line(client))
	}
	if d.Rules > 0 {
		p.Linef("removed: %s that came from the settings of %s, which apply there again", output.Plural(d.Rules, "rule"), output.Line(client))
	}
	if len(d.Removed) > 0 {
		p.Linef("Ken no longer has %s", output.Line(strings.Join(d.Removed, ", ")))
	}
	if len(d.Secrets) > 0 {
		p.Linef("removed with them, as the client's own file has them again: the secrets %s", output.Line(strings.Join(d.Secrets, ", ")))
	}
	for _, name := range d.Stay {
		p.Linef("the secret %s stays, since you set it; ken secret rm %s removes it", output.Line(name), output.Line(name))
	}
}
