package cli

import (
	"context"
	"path/filepath"
	"strings"

	"ken/internal/app"
	"ken/internal/cli/connectreport"
	"ken/internal/cli/output"
	"ken/internal/connect"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpservers/toolreview"
)

// startConnected starts every server that moved once, and says what the menu
// was and is.
func (c *connectCommand) startConnected(ctx context.Context, plan *connect.Plan, names []string, out connectreport.Report) error {
	client := plan.Client
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
		out.Servers = append(out.Servers, connectreport.Start{Name: name, Tools: costs[name].Tools, Tokens: costs[name].Tokens, Error: s.Err, Fix: s.Fix})
		out.Before += costs[name].Tokens
	}
	for _, n := range a.Servers.FromOthers(client) {
		out.Others = append(out.Others, connectreport.Neighbour{Client: n.Client, Servers: n.Servers})
	}
	who := a.Principal
	who.Agent = client
	menu, err := a.MCP().Menu(ctx, who, connectreport.ClientInfo(client), plan.Surface)
	if err != nil {
		return err
	}
	out.After, out.Surface = menu.Tokens, menu.Surface
	if c.json {
		return c.printJSON(out)
	}
	out.PrintStarts(c.out)
	c.out.Linef("\n%s", out.MenuWords(menu, plan.Surface != ""))
	out.PrintHTTP(c.out)
	c.out.Linef("Restart %s to use it. ken disconnect %s undoes it; ken doctor shows the sandbox profile of each server.", client, client)
	return nil
}

// shortPath writes a path as people do.
func shortPath(a *app.App, path string) string {
	if rel, err := filepath.Rel(a.Places.UserHome, path); a.Places.UserHome != "" && err == nil && filepath.IsLocal(rel) {
		return "~/" + filepath.ToSlash(rel)
	}
	return strings.TrimSpace(output.Line(path))
}
