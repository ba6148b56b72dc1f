package cli

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpservers/toolreview"
	"ken/internal/serve/mcpserver"
)

// clientInfo is the name that a client gives itself in MCP, of those that keep
// long lists of tools away from their model until it searches; empty for the
// rest.
func clientInfo(client string) string {
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

// startConnected starts every server that moved once, and says what the menu
// was and is.
func (c *connectCommand) startConnected(ctx context.Context, client string, names []string, out connected) error {
	a, err := app.Open(ctx, app.Config{ConfigFile: c.configFile})
	if err != nil {
		return err
	}
	defer a.Close()
	stands := map[string]mcpgateway.Status{}
	if len(names) > 0 {
		if !c.json {
			c.out.Linef("\nStarting %s once …", output.Plural(len(names), "server"))
		}
		for _, s := range a.Servers.List(ctx, names...) {
			stands[s.Name] = s
		}
	}
	if err := a.Catalog.Load(ctx); err != nil {
		return err
	}
	costs := map[string]toolreview.Cost{}
	for _, k := range a.ToolReviews.Costs(ctx) {
		costs[k.Server] = k
	}
	for _, name := range names {
		s := stands[name]
		out.Servers = append(out.Servers, serverStart{Name: name, Tools: costs[name].Tools, Tokens: costs[name].Tokens, Error: s.Err, Fix: s.Fix})
		out.Before += costs[name].Tokens
	}
	for _, n := range a.Servers.FromOthers(client) {
		out.Others = append(out.Others, neighbour{n.Client, n.Servers})
	}
	menu, err := a.MCP().Menu(ctx, a.Principal, clientInfo(client))
	if err != nil {
		return err
	}
	out.After, out.Surface = menu.Tokens, menu.Surface
	if c.json {
		return c.printJSON(out)
	}
	c.printStarts(out)
	c.out.Linef("\n%s", menuWords(client, out, menu))
	c.printHTTP(out)
	c.out.Linef("Restart %s to use it. ken disconnect %s undoes it; ken doctor says how the servers are held.", client, client)
	return nil
}

// printStarts says how each server started. What failed is told in full: it is
// what a person has to act on.
func (c *connectCommand) printStarts(out connected) {
	var rows [][]string
	for _, s := range out.Servers {
		row := []string{"ok", s.Name, output.Plural(s.Tools, "tool"), output.Plural(s.Tokens, "token")}
		if s.Error != "" {
			row = []string{"failed", s.Name, "", ""}
		}
		rows = append(rows, row)
	}
	c.out.Table([]output.Column{{Styles: map[string]string{"ok": output.Green, "failed": output.Red}}, {Style: output.Bold}, {}, {}}, rows)
	for _, s := range out.Servers {
		if s.Error == "" {
			continue
		}
		line := output.Line(s.Error)
		if s.Fix != "" {
			line += "; " + output.Line(s.Fix)
		}
		c.out.Linef("%s %s: %s", c.out.Style(output.Red, "failed"), output.Line(s.Name), line)
	}
	for _, n := range out.Others {
		of := "that you wrote yourself"
		if n.Client != "" {
			of = "of " + output.Line(n.Client)
		}
		c.out.Linef("… and %s %s, which this client now has as well", output.Plural(n.Servers, "server"), of)
	}
}

// menuWords says what the model of a client had before its eyes, and has. A
// client that keeps tools back itself did so before, and Ken saves it nothing
// there.
func menuWords(client string, out connected, menu mcpserver.Menu) string {
	before, now := output.Plural(out.Before, "token"), output.Plural(out.After, "token")
	defers := clientInfo(client) != ""
	switch {
	case menu.Surface == "direct" && defers:
		return fmt.Sprintf("Tool definitions: %s. %s loads them only when searched for; Ken's own %s add %s.", before, client, output.Plural(menu.Tools-menu.Deferred, "tool"), now)
	case menu.Surface == "direct":
		return fmt.Sprintf("Menu before: %s in every turn. Now: the same and %s, since mcp.surface is direct.", before, now)
	case defers:
		return fmt.Sprintf("Tool definitions: %s, which %s loaded only when searched for. Menu now: %s in every turn.", before, client, now)
	}
	return fmt.Sprintf("Menu before: %s in every turn. Now: %s.", before, now)
}

// listening looks who answers where a client will ask.
func listening(ctx context.Context, addr string) *listener {
	l := &listener{Addr: addr, Answers: "nobody"}
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

// printHTTP says what must run for a client that asks over HTTP.
func (c *connectCommand) printHTTP(out connected) {
	if out.HTTP == nil {
		return
	}
	now := map[string]string{"ken": "It answers there now.", "other": "Something else answers there now.", "nobody": "Nothing answers there now."}
	c.out.Linef("%s asks over HTTP: ken serve must run at %s whenever it does. %s", out.Client, output.Line(out.HTTP.Addr), now[out.HTTP.Answers])
}

// shortPath writes a path as people do.
func shortPath(a *app.App, path string) string {
	if rel, err := filepath.Rel(a.Places.UserHome, path); a.Places.UserHome != "" && err == nil && filepath.IsLocal(rel) {
		return "~/" + filepath.ToSlash(rel)
	}
	return strings.TrimSpace(output.Line(path))
}
