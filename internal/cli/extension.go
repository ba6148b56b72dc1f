package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/cli/output"
	"ken/internal/govern/extensions"
	"ken/internal/govern/review"
	"ken/internal/run/mcpservers/toolreview"
)

// extensionCommand is ken extension: it reviews extensions and MCP servers.
type extensionCommand struct{ *environment }

func newExtension(env *environment) *cobra.Command {
	c := &extensionCommand{env}
	return group("extension", "Review, enable and disable extension packages and MCP servers",
		c.list(), c.review(), c.enable(), c.disable())
}

var reviewStyles = map[string]string{
	string(review.Enabled): output.Green, string(review.Unreviewed): output.Yellow, string(review.Differs): output.Yellow, string(review.Disabled): output.Dim, string(review.Unknown): output.Red,
	toolreview.Failed: output.Red, toolreview.Unlisted: output.Yellow,
}

func (c *extensionCommand) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List extension packages and MCP servers with their state", Args: args(cobra.NoArgs),
		RunE: c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
			list, err := a.Extensions.List(ctx)
			if err != nil {
				return err
			}
			servers, err := a.ToolReviews.List(ctx)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"extensions": listOf(list), "servers": listOf(servers)})
			}
			rows := [][]string{}
			for _, x := range list {
				m := x.Manifest
				rows = append(rows, []string{string(x.Status.State), m.ID, m.Package.Version, strings.Join(m.Package.Permissions, ", "), m.Place})
			}
			for _, s := range servers {
				rows = append(rows, serverRow(s))
			}
			c.out.Table([]output.Column{{Styles: reviewStyles}, {Style: output.Bold}, {Style: output.Dim}, {Style: output.Cyan}, {Style: output.Dim, Grow: true}}, rows)
			c.printFailed(servers)
			if len(rows) == 0 {
				fmt.Fprintf(c.err, "ken: there are no extension packages and no MCP servers; ken add adds one, and ken connect takes over the servers of a client\n")
			}
			return nil
		}),
	}
}

// place adds the flag that tells packages of one name apart.
func placeFlag(cmd *cobra.Command, place *string) {
	cmd.Flags().StringVar(place, "place", "", "`folder` of the package, if several have this name")
}

func (c *extensionCommand) review() *cobra.Command {
	var place string
	var all bool
	cmd := &cobra.Command{
		Use: "review NAME", Short: "Show what an extension requests, and what changed since it was accepted", Args: args(cobra.ExactArgs(1)),
		RunE: c.withApp(func(ctx context.Context, a *app.App, given []string) error {
			if name, ok := strings.CutPrefix(given[0], "mcp:"); ok {
				return c.reviewServer(ctx, a, name)
			}
			x, err := a.Extensions.Find(ctx, given[0], place)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"extension": x, "lines": x.Manifest.Lines()})
			}
			c.printReview(x, all)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "include the schemas of all actions")
	placeFlag(cmd, &place)
	return cmd
}

// printReview prints a review. Schemas, which repeat what each action takes,
// are left out unless all is asked for.
func (c *extensionCommand) printReview(x extensions.Extension, all bool) {
	p := c.out
	for _, line := range x.Manifest.Lines() {
		if !all && strings.TrimSpace(line.Name) == "schema" {
			continue
		}
		p.Linef("%s  %s", p.Style(output.Bold, fmt.Sprintf("%-14s", line.Name)), line.Text)
	}
	c.printUnavailable(x)
	p.Linef("")
	p.Linef("%s  %s", p.Style(reviewStyles[string(x.Status.State)], fmt.Sprintf("%-14s", x.Status.State)), x.Status.Why)
	for _, d := range x.Status.Differences {
		p.Linef("%s  %s", p.Style(output.Yellow, fmt.Sprintf("%-14s", "differs")), d)
	}
}

// printUnavailable prints the actions that cannot be used here, and why.
func (c *extensionCommand) printUnavailable(x extensions.Extension) {
	for _, u := range x.Unavailable {
		c.out.Linef("%s  %s: %s", c.out.Style(output.Yellow, fmt.Sprintf("%-14s", "unavailable")), output.Line(string(u.ID)), output.Line(u.Why))
	}
}

func (c *extensionCommand) enable() *cobra.Command {
	var place, digest, why string
	cmd := &cobra.Command{
		Use: "enable NAME", Short: "Show what an extension requests, and enable it", Args: args(cobra.ExactArgs(1)),
		Long: "Enable an extension. On a terminal, Ken shows what the extension requests and asks.\n" +
			"Elsewhere, pass --digest with the digest that ken extension review prints.",
		RunE: c.withApp(func(ctx context.Context, a *app.App, given []string) error {
			if name, ok := strings.CutPrefix(given[0], "mcp:"); ok {
				return c.acceptServer(ctx, a, name, digest, why)
			}
			x, err := a.Extensions.Find(ctx, given[0], place)
			if err != nil {
				return err
			}
			if x.Status.State == review.Enabled {
				return c.enabled(x, "was on already")
			}
			if err := c.accept(ctx, x, digest); err != nil {
				return err
			}
			if err := a.Extensions.Enable(ctx, a.Principal, x, why); err != nil {
				return err
			}
			return c.enabled(x, "is on")
		}),
	}
	placeFlag(cmd, &place)
	cmd.Flags().StringVar(&digest, "digest", "", "`digest` printed by ken extension review")
	cmd.Flags().StringVar(&why, "why", "", "`reason` for the audit log")
	return cmd
}

// accept makes sure that a person has seen what the extension asks for.
func (c *extensionCommand) accept(ctx context.Context, x extensions.Extension, digest string) error {
	switch {
	case digest != "" && digest != x.Manifest.Digest:
		return usageError{fmt.Errorf("the extension does not match --digest; review it again with ken extension review %s", output.Line(x.Manifest.ID))}
	case digest != "":
		return nil
	case !c.interactive():
		return usageError{fmt.Errorf("run ken extension review %s, then pass the digest that it prints with --digest", output.Line(x.Manifest.ID))}
	}
	c.printReview(x, false)
	fmt.Fprintf(c.out, "\n%s [y/N]: ", c.out.Style(output.Yellow, "Switch it on?"))
	answer, err := readLine(ctx, c.in)
	if err != nil {
		return err
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		fmt.Fprintln(c.err, "ken: it stays off")
		return errSilent
	}
	return nil
}

func (c *extensionCommand) enabled(x extensions.Extension, how string) error {
	if c.json {
		return c.printJSON(map[string]any{"id": x.Manifest.ID, "place": x.Manifest.Place, "on": true, "unavailable": listOf(x.Unavailable)})
	}
	c.out.Linef("%s %s", output.Line(x.Manifest.ID), how)
	c.printUnavailable(x)
	return nil
}

func (c *extensionCommand) disable() *cobra.Command {
	var place, why string
	cmd := &cobra.Command{
		Use: "disable NAME", Short: "Disable an extension", Args: args(cobra.ExactArgs(1)),
		RunE: c.withApp(func(ctx context.Context, a *app.App, given []string) error {
			if server, ok := strings.CutPrefix(given[0], "mcp:"); ok {
				return c.switchOff(ctx, a, server, why)
			}
			name := strings.TrimPrefix(given[0], "extension:")
			off, err := a.Extensions.Disable(ctx, a.Principal, name, place, why)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"off": listOf(off)})
			}
			for _, s := range off {
				c.out.Linef("%s is off (%s)", output.Line(s.ID), output.Line(s.Place))
			}
			if len(off) == 0 {
				c.out.Linef("%s is off; it was never enabled", output.Line(name))
			}
			return nil
		}),
	}
	placeFlag(cmd, &place)
	cmd.Flags().StringVar(&why, "why", "", "`reason` for the audit log")
	return cmd
}
