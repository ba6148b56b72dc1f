package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/connectreport"
	"ken/internal/cli/output"
	"ken/internal/connect"
	"ken/internal/serve/auth"
	"ken/internal/setup"
)

// connectCommand is ken connect: it puts Ken into a client's configuration.
type connectCommand struct{ *environment }

func newConnect(env *environment) *cobra.Command {
	c := &connectCommand{env}
	var how connect.Request
	var dry, yes, without bool
	cmd := &cobra.Command{
		Use: "connect [CLIENT]", Short: "Put Ken into a client's configuration, in front of its MCP servers",
		Long: "Put Ken into the configuration of a client: its MCP servers move behind Ken, which takes\n" +
			"their place. ken disconnect undoes it, byte for byte. Without a client, list those that are\n" +
			"on this machine.\n\n" + connectreport.Wrapped("Clients: ", clients()) + ".",
		Example: "  ken connect claude --dry-run\n  ken connect claude",
		Args:    args(cobra.MaximumNArgs(1)), ValidArgs: clients(),
		RunE: func(cmd *cobra.Command, given []string) error {
			if len(given) == 0 {
				c.serving = true
				return c.withApp(func(_ context.Context, a *app.App, _ []string) error { return c.listClients(a) })(cmd, given)
			}
			if given[0] == "generic" && how.File == "" {
				return usageError{errors.New("name the client's configuration with --file FILE")}
			}
			how.Client = connect.NameOf(given[0], how.File)
			c.serving = true // what is there already need not be started for the plan
			return c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
				return c.connect(ctx, a, how, dry, yes, without)
			})(cmd, given)
		},
	}
	cmd.Flags().StringVar(&how.File, "file", "", "change only this configuration `file`; required for generic, which is any client with a JSON, TOML or YAML file")
	cmd.Flags().StringVar(&how.Project, "project", "", "also change the project files in this `folder`, which may be shared with others")
	cmd.Flags().BoolVar(&how.HTTP, "http", false, "connect the client to a running ken serve, with its own agent token, instead of starting ken mcp")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only show what would change")
	cmd.Flags().BoolVar(&yes, "yes", false, "change without asking; required without a terminal")
	cmd.Flags().BoolVar(&without, "skip-untranslated", false, "connect even if Ken has no rule for some of the client's permissions, which then no longer apply")
	return cmd
}

func clients() []string {
	var out []string
	for _, k := range connect.Clients() {
		out = append(out, k.Name)
	}
	return append(out, "generic")
}

// listClients lists the clients that have a configuration on this machine.
func (c *connectCommand) listClients(a *app.App) error {
	found := setup.Clients(a.Clients.Plan)
	if c.json {
		return c.printJSON(map[string]any{"clients": found})
	}
	connectreport.PrintClients(c.out, found)
	return nil
}

func (c *connectCommand) connect(ctx context.Context, a *app.App, how connect.Request, dry, yes, without bool) (err error) {
	written := false
	if how.HTTP && !dry {
		if had, err := auth.NamedAgent(a.Places.State, how.Client, true); err == nil && had == "" {
			defer func() {
				if !written { // no file contains the token that was created for the plan
					_, gone := auth.RemoveAgent(a.Places.State, how.Client)
					err = errors.Join(err, gone)
				}
			}()
		}
	}
	self, err := ownProgram(how.Client)
	if err != nil {
		return err
	}
	how.Program = self
	if inNPXCache(self) && !how.HTTP {
		how.Program = lastingProgram(a.Places.Home, self)
	}
	plan, err := c.planConnection(a, how, dry)
	if err != nil {
		return err
	}
	if how.Program != self {
		plan.Notes = append(plan.Notes, "npx deletes old programs, so the client gets a copy of this one: "+how.Program)
	}
	out := connectreport.Report{Client: plan.Client, Files: []string{}, Servers: []connectreport.Start{}, Kept: listOf(plan.Kept), Secrets: []string{}, Unset: []string{}, Notes: listOf(plan.Notes), Others: []connectreport.Neighbour{}, Rules: listOf(plan.Rules), Untranslated: listOf(plan.Refused), Would: len(plan.Servers), DryRun: dry}
	if how.HTTP {
		out.HTTP = connectreport.Listen(ctx, a.Settings.Serve.Addr)
	}
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
	if len(plan.Refused) > 0 && !without && !dry {
		return connectreport.Untranslated(plan)
	}
	if len(plan.Files) == 0 && !plan.NewRules || dry {
		if c.json {
			return c.printJSON(out)
		}
		out.PrintHTTP(c.out)
		if len(plan.Files) == 0 && !plan.NewRules {
			c.out.Linef("Nothing changes: %s asks Ken already.", plan.Client)
		} else {
			c.out.Linef("Nothing was changed; %s would move to %s", output.Plural(len(plan.Servers), "server"), shortPath(a, filepath.Join(a.Places.Home, "mcp.json")))
		}
		return nil
	}
	if !c.json && len(plan.Servers) > 0 {
		c.out.Linef("%s to %s, behind Ken. ken disconnect %s undoes it, byte for byte.", connectreport.Moves(len(plan.Servers)), shortPath(a, filepath.Join(a.Places.Home, "mcp.json")), plan.Client)
	}
	if ok, err := c.agree(ctx, yes, "Make this change?"); err != nil || !ok {
		return err
	}
	if how.Program != self {
		if err := copyProgram(how.Program, self); err != nil {
			return err
		}
	}
	written = true
	names, err := a.Clients.Connect(ctx, plan)
	if err != nil {
		return err
	}
	return c.startConnected(ctx, plan, names, out)
}

// ownProgram returns the path of this program, for a client to start.
func ownProgram(client string) (string, error) {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if strings.Contains(program, string(filepath.Separator)+"go-build") {
		return "", usageError{fmt.Errorf("ken was started by go run, which deletes it when it ends; build it first (make build), and run bin/ken connect %s", client)}
	}
	return program, nil
}

func (c *connectCommand) planConnection(a *app.App, how connect.Request, dry bool) (*connect.Plan, error) {
	var err error
	if how.Project != "" {
		if how.Project, err = filepath.Abs(how.Project); err != nil {
			return nil, err
		}
	}
	if how.HTTP {
		if how.Token, err = c.tokenFor(a, how.Client, dry); err != nil {
			return nil, err
		}
	}
	return a.Clients.Plan(how)
}

// tokenFor returns the token for a client: an agent token of its own, so that
// the audit log can tell clients apart. A dry run creates none.
func (c *connectCommand) tokenFor(a *app.App, client string, dry bool) (string, error) {
	if !dry {
		if err := os.MkdirAll(a.Places.State, 0o700); err != nil {
			return "", err
		}
	}
	token, err := auth.NamedAgent(a.Places.State, client, dry)
	if err == nil && token == "" {
		return "a token that is made then", nil
	}
	return token, err
}

func (c *connectCommand) printPlan(p *connect.Plan) {
	if diff := strings.TrimRight(p.Diff(), "\n"); diff != "" {
		c.out.Linef("%s", diff)
	}
	for _, k := range p.Kept {
		c.out.Linef("%s %s", c.out.Style(output.Dim, "stays:"), output.Line(k.String()))
	}
	for _, s := range p.Secrets {
		if s.Value.Reveal() == "" {
			c.out.Linef("%s ken secret set %s    %s", c.out.Style(output.Yellow, "set it:"), output.Line(s.Name), output.Line(s.About))
		} else {
			c.out.Linef("%s %s is sealed as %s", c.out.Style(output.Dim, "secret:"), output.Line(s.Where), output.Line(s.Name))
		}
	}
	for _, r := range p.Rules {
		c.out.Linef("%s %s", c.out.Style(output.Dim, "rule:"), output.Line(r.String()))
	}
	for _, r := range p.Refused {
		c.out.Linef("%s %s", c.out.Style(output.Red, "no rule:"), output.Line(r.String()))
	}
	for _, n := range p.Notes {
		c.out.Linef("%s %s", c.out.Style(output.Dim, "note:"), output.Line(n))
	}
}

// agree asks for confirmation on a terminal. Without a terminal, only --yes
// changes anything.
func (c *environment) agree(ctx context.Context, yes bool, question string) (bool, error) {
	switch {
	case yes:
		return true, nil
	case !c.interactive():
		return false, usageError{errors.New("nothing was changed; pass --yes to make this change, or --dry-run to only see it")}
	}
	fmt.Fprintf(c.out, "\n%s [y/N]: ", c.out.Style(output.Yellow, question))
	line, err := readLine(ctx, c.in)
	if err != nil {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	c.out.Linef("Nothing was changed.")
	return false, nil
}

func newDisconnect(env *environment) *cobra.Command {
	c := &connectCommand{env}
	var force bool
	var file string
	cmd := &cobra.Command{
		Use: "disconnect CLIENT", Short: "Remove Ken from a client's configuration and restore its servers", Args: args(cobra.ExactArgs(1)), ValidArgs: clients(),
		RunE: func(cmd *cobra.Command, given []string) error {
			switch {
			case given[0] == "generic" && file == "":
				return usageError{errors.New("name the client's configuration with --file FILE")}
			case given[0] != "generic" && file != "":
				return usageError{errors.New("--file is only for generic; disconnecting restores every file of " + output.Line(given[0]))}
			}
			given[0] = connect.NameOf(given[0], file)
			c.serving = true
			return c.withApp(func(ctx context.Context, a *app.App, given []string) error {
				d, err := a.Clients.Disconnect(ctx, given[0], force)
				if err != nil {
					return err
				}
				if c.json {
					return c.printJSON(d)
				}
				connectreport.PrintDisconnected(c.out, given[0], d)
				return nil
			})(cmd, given)
		},
	}
	cmd.Flags().Bool("yes", false, "accepted as in ken connect; disconnecting asks nothing")
	cmd.Flags().StringVar(&file, "file", "", "the configuration `file` of a generic client")
	cmd.Flags().BoolVar(&force, "force", false, "restore the original bytes even if the file was changed since")
	return cmd
}
