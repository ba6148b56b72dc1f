package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/connect"
	"ken/internal/run/mcpgateway"
	"ken/internal/serve/auth"
)

func (c *command) connectCommand() *cobra.Command {
	var how app.Connection
	var dry, yes bool
	cmd := &cobra.Command{
		Use: "connect CLIENT", Short: "Put Ken into a client's configuration, in front of its MCP servers",
		Long: "Put Ken into the configuration of a client (" + clientNames() + "): its MCP servers\n" +
			"move behind Ken, which takes their place. ken disconnect undoes it, byte for byte.",
		Args: args(cobra.ExactArgs(1)), ValidArgs: clients(),
		RunE: func(cmd *cobra.Command, given []string) error {
			how.Client = given[0]
			c.serving = true // what is there already need not be started for the plan
			return c.with(func(ctx context.Context, a *app.App, _ []string) error {
				return c.connect(ctx, a, how, dry, yes)
			})(cmd, given)
		},
	}
	cmd.Flags().StringVar(&how.File, "file", "", "the client's configuration `file`, where it is not in the usual place")
	cmd.Flags().StringVar(&how.Project, "project", "", "take the files of this `folder` too, which may be shared with others")
	cmd.Flags().BoolVar(&how.HTTP, "http", false, "have the client ask a running ken serve, with its token, instead of starting ken mcp")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would change")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask before changing anything")
	return cmd
}

func clients() []string {
	var out []string
	for _, k := range connect.Clients() {
		out = append(out, k.Name)
	}
	return out
}

func clientNames() string { return strings.Join(clients(), ", ") }

// A connected is what connecting a client came to, for --json.
type connected struct {
	Client  string         `json:"client"`
	Files   []string       `json:"files"`
	Servers []serverStart  `json:"servers"`
	Kept    []connect.Kept `json:"kept"`
	Secrets []string       `json:"secrets"` // names that were sealed
	Unset   []string       `json:"unset"`   // names that a person has to set
	Notes   []string       `json:"notes"`
	Before  int            `json:"tokensBefore"`
	After   int            `json:"tokensAfter"`
	DryRun  bool           `json:"dryRun,omitempty"`
}

type serverStart struct {
	Name   string `json:"name"`
	Tools  int    `json:"tools"`
	Tokens int    `json:"tokens"`
	Error  string `json:"error,omitempty"`
	Fix    string `json:"fix,omitempty"`
}

func (c *command) connect(ctx context.Context, a *app.App, how app.Connection, dry, yes bool) error {
	plan, err := c.planConnection(a, how)
	if err != nil {
		return err
	}
	out := connected{Client: plan.Client, Files: []string{}, Servers: []serverStart{}, Kept: listOf(plan.Kept), Secrets: []string{}, Unset: []string{}, Notes: listOf(plan.Notes), DryRun: dry}
	for _, f := range plan.Files {
		out.Files = append(out.Files, f.Path)
	}
	for _, s := range plan.Secrets {
		if s.Value.Reveal() == "" {
			out.Unset = append(out.Unset, s.Name)
		} else {
			out.Secrets = append(out.Secrets, s.Name)
		}
	}
	if !c.json {
		c.printPlan(plan)
	}
	if len(plan.Files) == 0 || dry {
		if c.json {
			return c.printJSON(out)
		}
		if len(plan.Files) == 0 {
			c.out.linef("Nothing changes: %s asks Ken already.", plan.Client)
		}
		return nil
	}
	if ok, err := c.agree(ctx, yes); err != nil || !ok {
		return err
	}
	names, err := a.Connect(ctx, plan)
	if err != nil {
		return err
	}
	return c.startConnected(ctx, plan.Client, names, out)
}

func (c *command) planConnection(a *app.App, how app.Connection) (*connect.Plan, error) {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	if strings.Contains(program, string(filepath.Separator)+"go-build") {
		return nil, usageError{fmt.Errorf("this ken was made by go run and is gone when it ends; build it first (make build), and run bin/ken connect %s", how.Client)}
	}
	how.Program = program
	if how.Project != "" {
		if how.Project, err = filepath.Abs(how.Project); err != nil {
			return nil, err
		}
	}
	if how.HTTP {
		if err := os.MkdirAll(a.Places.State, 0o700); err != nil {
			return nil, err
		}
		tokens, err := auth.Open(a.Places.State, a.Principal)
		if err != nil {
			return nil, err
		}
		how.Token = tokens.Token().Reveal()
	}
	return a.PlanConnection(how)
}

func (c *command) printPlan(p *connect.Plan) {
	c.out.linef("%s", strings.TrimRight(p.Diff(), "\n"))
	for _, k := range p.Kept {
		c.out.linef("%s %s", c.out.style(dim, "stays:"), foreign(k.String()))
	}
	for _, s := range p.Secrets {
		if s.Value.Reveal() == "" {
			c.out.linef("%s ken secret set %s    %s", c.out.style(yellow, "set it:"), foreign(s.Name), foreign(s.About))
		} else {
			c.out.linef("%s %s is sealed as %s", c.out.style(dim, "secret:"), foreign(s.Where), foreign(s.Name))
		}
	}
	for _, n := range p.Notes {
		c.out.linef("%s %s", c.out.style(dim, "note:"), foreign(n))
	}
}

// agree asks a person who is there; a program that calls said yes by calling.
func (c *command) agree(ctx context.Context, yes bool) (bool, error) {
	if yes || !c.interactive() {
		return true, nil
	}
	fmt.Fprintf(c.out, "\n%s [Y/n]: ", c.out.style(yellow, "Change it so?"))
	line, err := readLine(ctx, c.in)
	if err != nil {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "", "y", "yes":
		return true, nil
	}
	c.out.linef("Nothing was changed.")
	return false, nil
}

// clientInfo is the name that a client gives itself in MCP.
var clientInfo = map[string]string{"claude": "claude-code", "codex": "codex-mcp-client", "vscode": "Visual Studio Code"}

// startConnected starts every server that moved once, and says what the menu
// was and is.
func (c *command) startConnected(ctx context.Context, client string, names []string, out connected) error {
	a, err := app.Open(ctx, app.Config{ConfigFile: c.configFile})
	if err != nil {
		return err
	}
	defer a.Close()
	stands := map[string]mcpgateway.Status{}
	if len(names) > 0 {
		if !c.json {
			c.out.linef("\nStarting %s once …", plural(len(names), "server"))
		}
		for _, s := range a.ListServers(ctx, names...) {
			stands[s.Name] = s
		}
	}
	if err := a.Reload(ctx); err != nil {
		return err
	}
	costs := map[string]app.ServerCost{}
	for _, k := range a.ServerCosts(ctx) {
		costs[k.Server] = k
	}
	for _, name := range names {
		s := stands[name]
		out.Servers = append(out.Servers, serverStart{Name: name, Tools: costs[name].Tools, Tokens: costs[name].Tokens, Error: s.Err, Fix: s.Fix})
		out.Before += costs[name].Tokens
	}
	menu, err := a.MCP().Menu(ctx, a.Principal, clientInfo[client])
	if err != nil {
		return err
	}
	out.After = menu.Tokens
	if c.json {
		return c.printJSON(out)
	}
	var rows [][]string
	for _, s := range out.Servers {
		row := []string{"ok", s.Name, plural(s.Tools, "tool"), plural(s.Tokens, "token"), ""}
		if s.Error != "" {
			row = []string{"failed", s.Name, "", "", foreign(s.Error)}
			if s.Fix != "" {
				row[4] += "; " + foreign(s.Fix)
			}
		}
		rows = append(rows, row)
	}
	c.out.table([]column{{styles: map[string]string{"ok": green, "failed": red}}, {style: bold}, {}, {}, {grow: true}}, rows)
	c.out.linef("\nMenu before: %s in every turn. Now: %s.", plural(out.Before, "token"), plural(out.After, "token"))
	if menu.Deferred > 0 {
		c.out.linef("%s itself keeps the %s back until they are searched for (mcp.surface: bridge has Ken do that).", client, plural(menu.Deferred, "tool"))
	}
	c.out.linef("Start %s anew to use it. ken disconnect %s undoes it; ken doctor says how the servers are held.", client, client)
	return nil
}

func (c *command) disconnectCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "disconnect CLIENT", Short: "Take Ken out of a client's configuration again", Args: args(cobra.ExactArgs(1)), ValidArgs: clients(),
		RunE: func(cmd *cobra.Command, given []string) error {
			c.serving = true
			return c.with(func(ctx context.Context, a *app.App, given []string) error {
				d, err := a.Disconnect(ctx, given[0], force)
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(d)
				}
				for _, f := range d.Files {
					c.out.linef("%s %s", c.out.style(green, f.How+":"), foreign(f.Path))
					for _, n := range f.Notes {
						c.out.linef("  %s", foreign(n))
					}
				}
				if len(d.Removed) > 0 {
					c.out.linef("Ken no longer has %s", foreign(strings.Join(d.Removed, ", ")))
				}
				return nil
			})(cmd, given)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "restore the old bytes even where the file was changed since")
	return cmd
}
