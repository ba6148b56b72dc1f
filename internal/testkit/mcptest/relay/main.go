// Relay is the least that stands between a client and a server: it offers the
// tools of the command that it is given under their own names and passes each
// call on. Ken is measured against it.
//
//	relay [-http ADDR] COMMAND [ARG…]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	addr := flag.String("http", "", "serve streamable HTTP at this address; the URL is printed")
	flag.Parse()
	if err := run(context.Background(), *addr, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr string, command []string) error {
	if len(command) == 0 {
		return errors.New("missing command; usage: relay [-http ADDR] COMMAND [ARG…]")
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "relay", Version: "1"}, nil)
	back, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return err
	}
	defer back.Close()
	server, err := inFrontOf(ctx, back)
	if err != nil {
		return err
	}
	if addr != "" {
		return serve(server, addr)
	}
	if err := server.Run(ctx, &mcp.StdioTransport{}); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// inFrontOf returns a server with the tools of another.
func inFrontOf(ctx context.Context, back *mcp.ClientSession) (*mcp.Server, error) {
	server := mcp.NewServer(&mcp.Implementation{Name: "relay", Version: "1"}, nil)
	pass := func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return back.CallTool(ctx, &mcp.CallToolParams{Name: req.Params.Name, Arguments: req.Params.Arguments})
	}
	for tool, err := range back.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		server.AddTool(tool, pass)
	}
	return server, nil
}

func serve(server *mcp.Server, addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/mcp\n", l.Addr())
	return http.Serve(l, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
}
