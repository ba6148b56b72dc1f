// Package adding is the commands ken add and ken remove.
package adding

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/cli/output"
	"ken/internal/govern/extensions"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
)

// A Config is what the commands need of the program.
type Config struct {
	Out       *output.Printer
	Err       io.Writer
	JSON      *bool // whether --json was given
	PrintJSON func(any) error
	Usage     func(error) error // makes an error one of usage

	// Agree asks for confirmation on a terminal; yes answers without.
	Agree func(ctx context.Context, yes bool, question string) (bool, error)

	// With runs a command with the program open.
	With func(cmd *cobra.Command, run func(context.Context, App) error) error

	// Enable opens the program again and switches a package on that was added.
	Enable func(context.Context, *add.Package) (extensions.Extension, error)
}

// An App is the open program, as far as the commands need it.
type App struct {
	Places     add.Places
	Tools      add.Tools
	By         capability.Principal
	Catalog    *catalog.Catalog
	Extensions *extensions.Set
	Networks   []netip.Prefix // that calls may reach though they are private
	HasSecret  func(name string) bool

	// Standing returns what the rules say of a model's call of a capability that
	// reaches these hosts.
	Standing func(c *capability.Capability, hosts []string) policy.Decision

	// Record records in the audit log that something was added or removed.
	Record func(ctx context.Context, action, kind, name, digest string, notes map[string]string) error
}

// addCommand is ken add: it shows what an API or a package asks for, and adds it.
type addCommand struct {
	Config
	request add.Request
	yes     bool
	dry     bool
}

// NewAdd returns ken add.
func NewAdd(cfg Config) *cobra.Command {
	c := &addCommand{Config: cfg}
	cmd := &cobra.Command{
		Use: "add openapi:URL|openapi:FILE|PATH|git:URL", Short: "Add an API or an extension package, after showing what it asks for",
		Long: "Add an API: openapi:URL or openapi:FILE names its OpenAPI document. Ken shows its\n" +
			"operations, the hosts they reach, the secrets they need and what your rules say about\n" +
			"them, and asks.\n\n" +
			"Add an extension package: a folder, an archive (.tar, .tar.gz, .zip), or a git\n" +
			"repository. Ken shows its permissions, programs and actions and the steps of its\n" +
			"install plan, asks, runs the steps in the sandbox, and switches it on.\n\n" +
			"What is added is a copy that is pinned by its digest: what changes elsewhere has no\n" +
			"effect until you add it again.",
		Example: "  ken add openapi:https://api.example.com/openapi.json\n  ken add openapi:./openapi.yaml --name shop --yes\n" +
			"  ken add ./my-package\n  ken add git:https://git.example.com/package.git#v1.2",
		Args: c.arguments(1, 1),
		RunE: func(cmd *cobra.Command, given []string) error {
			run := c.api
			document, isAPI := strings.CutPrefix(given[0], "openapi:")
			switch {
			case isAPI && document != "":
				c.request.From = document
			case isPackage(given[0]) && !isDocument(given[0]):
				run, c.request.From = c.extension, given[0]
			case isDocument(given[0]):
				return c.Usage(fmt.Errorf("%q looks like a document; write openapi: before it to add an API", given[0]))
			case strings.HasPrefix(given[0], "npm:"), strings.HasPrefix(given[0], "https://"), strings.HasPrefix(given[0], "http://"):
				return c.Usage(fmt.Errorf("ken add does not add MCP servers yet; write %s into mcp.json in Ken's folder, under mcpServers, or write openapi: before the address of an API", serverLine(given[0])))
			default:
				return c.Usage(fmt.Errorf("%q is neither openapi: with an address or file, nor a folder or archive that is there, nor git: with an address", given[0]))
			}
			return c.With(cmd, run)
		},
	}
	cmd.Flags().StringVar(&c.request.Name, "name", "", "`name` to keep it under, instead of one made from its title")
	cmd.Flags().StringVar(&c.request.Server, "server", "", "`address` of the API, for a document that names none")
	cmd.Flags().BoolVar(&c.dry, "dry-run", false, "only show what would be added")
	cmd.Flags().BoolVar(&c.yes, "yes", false, "add it without asking; required without a terminal")
	return cmd
}

// serverLine returns the definition of an MCP server, as mcp.json has it.
func serverLine(given string) string {
	if name, ok := strings.CutPrefix(given, "npm:"); ok {
		return fmt.Sprintf(`"NAME": {"command": "npx", "args": ["-y", %q]}`, name)
	}
	return fmt.Sprintf(`"NAME": {"url": %q}`, given)
}

// NewRemove returns ken remove.
func NewRemove(cfg Config) *cobra.Command {
	return &cobra.Command{
		Use: "remove [NAME]", Short: "Remove what ken add added; without a name, list it", Args: cfg.arguments(0, 1),
		RunE: func(cmd *cobra.Command, given []string) error {
			return cfg.With(cmd, func(ctx context.Context, a App) error {
				if len(given) == 0 {
					return cfg.printAdded(a)
				}
				return cfg.remove(ctx, a, given[0])
			})
		},
	}
}

// arguments checks their number.
func (c Config) arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) < least || len(given) > most {
			_, wanted, _ := strings.Cut(cmd.Use, " ")
			return c.Usage(fmt.Errorf("%s takes %s; see %s --help", cmd.CommandPath(), wanted, cmd.CommandPath()))
		}
		return nil
	}
}

// listOf returns a list that is empty, and not null, as JSON.
func listOf[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
