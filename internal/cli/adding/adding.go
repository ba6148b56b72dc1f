// Package adding is the commands ken add and ken remove.
package adding

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ken/internal/add"
	"ken/internal/add/addplan"
	"ken/internal/cli/output"
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
	With func(cmd *cobra.Command, run func(context.Context, addplan.App) error) error
}

// addCommand is ken add: it shows what an API, a package or an MCP server asks
// for, and adds it.
type addCommand struct {
	Config
	request add.Request
	servers addplan.ServerRequest
	yes     bool
	dry     bool
}

// NewAdd returns ken add.
func NewAdd(cfg Config) *cobra.Command {
	c := &addCommand{Config: cfg}
	cmd := &cobra.Command{
		Use: "add NAME|npm:PKG|URL|openapi:URL|openapi:FILE|graphql:URL|graphql:FILE|PATH|git:URL", Short: "Add an MCP server, an API or an extension package, after showing what it asks for",
		Long: "Add an MCP server: npm:PKG names an npm package, URL a remote server. NAME is looked up in\n" +
			"the registry of mcp.registry; a server.json, or its address, has one entry. Ken shows the\n" +
			"command and what the server asks for, starts it once in the narrowest sandbox profile, and\n" +
			"shows its tools. Then it writes the server into ken.yaml. Put arguments of the server after --.\n\n" +
			"Add an API: openapi:URL or openapi:FILE names its OpenAPI document. Ken shows its\n" +
			"operations, the hosts they reach, the secrets they need and how your rules treat them.\n" +
			"Then it asks you. graphql:URL asks a GraphQL server for its schema; graphql:FILE names a\n" +
			"schema, as an introspection answer (JSON) or in the schema language, and needs --server.\n" +
			"Each query and mutation becomes an operation.\n\n" +
			"Add an extension package: a folder, an archive (.tar, .tar.gz, .zip), or a git\n" +
			"repository. Ken shows its permissions, programs, actions and install steps, and asks\n" +
			"you. Then it runs the steps in the sandbox and enables the package.\n\n" +
			"Ken adds a copy and pins its digest. Later changes to the original have no effect\n" +
			"until you add it again.",
		Example: "  ken add npm:@modelcontextprotocol/server-filesystem -- ~/notes\n  ken add npm:tavily-mcp --env TAVILY_API_KEY --host api.tavily.com\n" +
			"  ken add https://mcp.example.com/mcp\n  ken add io.github.example/weather\n  ken add openapi:https://api.example.com/openapi.json\n  ken add openapi:./openapi.yaml --name shop --yes\n" +
			"  ken add graphql:https://api.example.com/graphql --name shop --auth bearer\n" +
			"  ken add ./my-package\n  ken add git:https://git.example.com/package.git#v1.2",
		Args: func(cmd *cobra.Command, given []string) error {
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				given, c.servers.Args = given[:at], given[at:]
			}
			return c.arguments(1, 1)(cmd, given)
		},
		RunE: func(cmd *cobra.Command, given []string) error {
			run := c.api
			document, isAPI := strings.CutPrefix(given[0], "openapi:")
			if schema, ok := strings.CutPrefix(given[0], "graphql:"); ok {
				document, isAPI, c.request.GraphQL = schema, true, true
			}
			switch {
			case isAPI && document != "":
				c.request.From = document
			case addplan.IsPackage(given[0]) && !addplan.IsDocument(given[0]):
				run, c.request.From = c.extension, given[0]
			case addplan.IsMissing(given[0]):
				return c.Usage(fmt.Errorf("%s: no such file or folder; name a folder or an archive that exists, openapi:FILE or graphql:FILE", given[0]))
			case addplan.IsServer(given[0]):
				run, c.request.From = c.server, given[0]
			case addplan.IsDocument(given[0]):
				return c.Usage(fmt.Errorf("%q looks like a document; write openapi: or graphql: before it to add an API", given[0]))
			default:
				return c.Usage(fmt.Errorf("%q is not something that Ken can add; use npm:PKG, the URL or registry name of an MCP server, openapi:URL, openapi:FILE, graphql:URL, graphql:FILE, an existing folder or archive, or git:URL. "+localServer, given[0]))
			}
			if err := c.onlyServers(cmd, addplan.IsServer(given[0])); err != nil {
				return err
			}
			return c.usage(c.With(cmd, run))
		},
	}
	cmd.Flags().StringVar(&c.request.Name, "name", "", "`name` to keep it under, instead of one made from its title")
	cmd.Flags().StringVar(&c.request.Server, "server", "", "`address` of the API, for a document that names none")
	cmd.Flags().StringVar(&c.request.Auth, "auth", "", "how a GraphQL API gets its credentials: bearer, basic or header:`NAME`")
	cmd.Flags().StringVar(&c.servers.Registry, "registry", "", "`address` or file of the MCP registry that has the name, instead of mcp.registry")
	cmd.Flags().StringVar(&c.servers.Profile, "profile", "", "sandbox `profile` of the MCP server: confined, or imported (your files and the network)")
	cmd.Flags().StringArrayVar(&c.servers.Env, "env", nil, "`NAME=VALUE` for the MCP server, or NAME for the secret of that name; may be repeated")
	cmd.Flags().StringArrayVar(&c.servers.Read, "read", nil, "`path` that the MCP server may read; may be repeated")
	cmd.Flags().StringArrayVar(&c.servers.Write, "write", nil, "`path` that the MCP server may change; may be repeated")
	cmd.Flags().StringArrayVar(&c.servers.Hosts, "host", nil, "`host` that the MCP server may reach; may be repeated")
	cmd.Flags().BoolVar(&c.dry, "dry-run", false, "only show what would be added")
	cmd.Flags().BoolVar(&c.yes, "yes", false, "add it without asking; required without a terminal")
	return cmd
}

// localServer tells how to add an MCP server that is a program on this machine,
// which ken add does not do.
const localServer = "For an MCP server that you start with a command, run: ken config set mcp.servers.NAME '{command: PROGRAM, args: [ARGUMENTS]}'"

// usage makes the errors of usage among those of plans errors of usage here.
func (c Config) usage(err error) error {
	if wrong, ok := errors.AsType[*addplan.UsageError](err); ok {
		return c.Usage(wrong.Err)
	}
	return err
}

// onlyServers returns an error if something else than an MCP server is given what
// only servers take, or a server what only APIs take.
func (c *addCommand) onlyServers(cmd *cobra.Command, is bool) error {
	if len(c.servers.Args) > 0 && !is {
		return c.Usage(errors.New("arguments after -- are for MCP servers"))
	}
	for _, name := range []string{"registry", "profile", "env", "read", "write", "host"} {
		if cmd.Flags().Changed(name) && !is {
			return c.Usage(fmt.Errorf("--%s is for MCP servers", name))
		}
	}
	if cmd.Flags().Changed("server") && is {
		return c.Usage(errors.New("--server is for APIs"))
	}
	if cmd.Flags().Changed("auth") && !c.request.GraphQL {
		return c.Usage(errors.New("--auth is for GraphQL APIs; an OpenAPI document names its credentials, and --env passes secrets to an MCP server"))
	}
	return nil
}

// NewRemove returns ken remove.
func NewRemove(cfg Config) *cobra.Command {
	return &cobra.Command{
		Use: "remove [NAME]", Short: "Remove what ken add added; without a name, list it", Args: cfg.arguments(0, 1),
		Long: "Remove an MCP server, an API or an extension package that ken add added. Without a name,\n" +
			"list them.\n\n" +
			"To remove Ken itself: run ken disconnect CLIENT for each client that you connected, then\n" +
			"ken mcp --stop, delete ~/.ken and ~/.ken-servers, and delete the program.",
		RunE: func(cmd *cobra.Command, given []string) error {
			return cfg.With(cmd, func(ctx context.Context, a addplan.App) error {
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
