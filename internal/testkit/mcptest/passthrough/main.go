// Passthrough shows which features of MCP survive a gateway. It is a server
// with something of everything, and a client that checks what arrives of it:
// directly, and through every gateway that is given by a command.
//
//	passthrough -serve              be the server, on standard input and output
//	passthrough NAME=COMMAND…       check, and print JSON; "direct" is always the first column
//
// The command starts a gateway that speaks MCP on its standard input and
// output and has "passthrough -serve" behind it under the name site.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "passthrough:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("passthrough", flag.ContinueOnError)
	serve := flags.Bool("serve", false, "be the server")
	protocol := flags.String("protocol", "", "speak this version of the protocol and older ones only")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *serve {
		err := newSite(upTo(*protocol)).server.Run(ctx, &mcp.StdioTransport{})
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil
		}
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	columns := []column{{Name: "direct", command: []string{self, "-serve", "-protocol", *protocol}}}
	for _, arg := range flags.Args() {
		name, command, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=COMMAND", arg)
		}
		columns = append(columns, column{Name: name, command: []string{"sh", "-c", command}})
	}
	for i := range columns {
		if err := columns[i].measure(ctx, stderr); err != nil {
			return fmt.Errorf("%s: %w", columns[i].Name, err)
		}
	}
	e := json.NewEncoder(stdout)
	e.SetIndent("", "  ")
	return e.Encode(columns)
}

// upTo returns the versions of the protocol up to newest; nil means all.
func upTo(newest string) []string {
	if newest == "" {
		return nil
	}
	return slices.DeleteFunc(mcp.SupportedProtocolVersions(), func(v string) bool { return v > newest })
}

// A column is one way to the server.
type column struct {
	Name string
	Rows []row

	command []string
}

// A row says whether one feature arrives.
type row struct {
	Part, Feature string
	OK            bool
	Why           string `json:",omitempty"` // it does not
	Bridge        string `json:",omitempty"` // why it cannot, at a gateway that lists no tools
}

func (c *column) measure(ctx context.Context, stderr io.Writer) error {
	starting, cancel := context.WithTimeout(ctx, 3*patience)
	defer cancel()
	t, err := connect(starting, exec.CommandContext(ctx, c.command[0], c.command[1:]...), stderr)
	if err != nil {
		return err
	}
	defer t.session.Close()
	for _, f := range features() {
		r := row{Part: f.part, Feature: f.name}
		if t.bridge != "" {
			r.Bridge = f.bridge
		}
		one, cancel := context.WithTimeout(ctx, patience)
		err := f.check(one, t)
		cancel()
		if r.OK = err == nil; err != nil {
			r.Why = err.Error()
		}
		c.Rows = append(c.Rows, r)
	}
	return nil
}
