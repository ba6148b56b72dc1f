package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ken/internal/app"
	"ken/internal/govern/review"
)

// extensionCommand is ken extension: it reviews extensions and MCP servers.
type extensionCommand struct{ *environment }

func newExtension(env *environment) *cobra.Command {
	c := &extensionCommand{env}
	return group("extension", "Review, enable and disable extension packages and MCP servers",
		c.list(), c.review(), c.enable(), c.disable())
}

var reviewStyles = map[string]string{
	string(review.Enabled): green, string(review.Unreviewed): yellow, string(review.Differs): yellow, string(review.Disabled): dim, string(review.Unknown): red,
	app.ServerFailed: red, app.ServerUnlisted: yellow,
}

func (c *extensionCommand) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List extension packages and MCP servers with their state", Args: args(cobra.NoArgs),
		RunE: c.withApp(func(ctx context.Context, a *app.App, _ []string) error {
			list, err := a.Extensions(ctx)
			if err != nil {
				return err
			}
			servers, err := a.ServerReviews(ctx)
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
			c.out.table([]column{{styles: reviewStyles}, {style: bold}, {style: dim}, {style: cyan}, {style: dim, grow: true}}, rows)
			c.printFailed(servers)
			if len(rows) == 0 {
				fmt.Fprintf(c.err, "ken: there are no extensions; put packages into %s\n", foreign(a.Places.Home+"/extensions"))
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
			x, err := a.Extension(ctx, given[0], place)
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
func (c *extensionCommand) printReview(x app.Extension, all bool) {
	p := c.out
	for _, line := range x.Manifest.Lines() {
		if !all && strings.TrimSpace(line.Name) == "schema" {
			continue
		}
		p.linef("%s  %s", p.style(bold, fmt.Sprintf("%-14s", line.Name)), line.Text)
	}
	c.printUnavailable(x)
	p.linef("")
	p.linef("%s  %s", p.style(reviewStyles[string(x.Status.State)], fmt.Sprintf("%-14s", x.Status.State)), x.Status.Why)
	for _, d := range x.Status.Differences {
		p.linef("%s  %s", p.style(yellow, fmt.Sprintf("%-14s", "differs")), d)
	}
}

// printUnavailable prints the actions that cannot be used here, and why.
func (c *extensionCommand) printUnavailable(x app.Extension) {
	for _, u := range x.Unavailable {
		c.out.linef("%s  %s: %s", c.out.style(yellow, fmt.Sprintf("%-14s", "unavailable")), foreign(string(u.ID)), foreign(u.Why))
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
			x, err := a.Extension(ctx, given[0], place)
			if err != nil {
				return err
			}
			if x.Status.State == review.Enabled {
				return c.enabled(x, "was on already")
			}
			if err := c.accept(ctx, x, digest); err != nil {
				return err
			}
			if err := a.Enable(ctx, a.Principal, x, why); err != nil {
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
func (c *extensionCommand) accept(ctx context.Context, x app.Extension, digest string) error {
	switch {
	case digest != "" && digest != x.Manifest.Digest:
		return usageError{fmt.Errorf("the extension is not the one of --digest; look again with ken extension review %s", foreign(x.Manifest.ID))}
	case digest != "":
		return nil
	case !c.interactive():
		return usageError{fmt.Errorf("look at it with ken extension review %s, then say --digest with what that prints", foreign(x.Manifest.ID))}
	}
	c.printReview(x, false)
	fmt.Fprintf(c.out, "\n%s [y/N]: ", c.out.style(yellow, "Switch it on?"))
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

func (c *extensionCommand) enabled(x app.Extension, how string) error {
	if c.json {
		return c.printJSON(map[string]any{"id": x.Manifest.ID, "place": x.Manifest.Place, "on": true, "unavailable": listOf(x.Unavailable)})
	}
	c.out.linef("%s %s", foreign(x.Manifest.ID), how)
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
			off, err := a.Disable(ctx, a.Principal, name, place, why)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(map[string]any{"off": listOf(off)})
			}
			for _, s := range off {
				c.out.linef("%s is off (%s)", foreign(s.ID), foreign(s.Place))
			}
			if len(off) == 0 {
				c.out.linef("%s was never on", foreign(name))
			}
			return nil
		}),
	}
	placeFlag(cmd, &place)
	cmd.Flags().StringVar(&why, "why", "", "`reason` for the audit log")
	return cmd
}
