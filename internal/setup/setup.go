// Package setup finds what a new user can begin with: models, MCP clients with
// their servers, skills and API descriptions on this machine. It only looks: it
// starts nothing, changes nothing, and asks no other machine.
package setup

import (
	"context"
	"os"
	"path/filepath"

	"ken/internal/connect"
	"ken/internal/talk/opener"
)

// Config says where to look. All fields are required.
type Config struct {
	Model     string // the one that is configured; empty: none is
	UserHome  string
	Workspace string

	// Choices returns the providers of models; see [opener.Opener.Choices].
	Choices func(context.Context) []opener.Choice

	// Plan returns what connecting a client would change; see
	// [connect.Connector.Plan].
	Plan func(connect.Request) (*connect.Plan, error)
}

// Found is what is there.
type Found struct {
	Model     string          `json:"model"`
	Providers []opener.Choice `json:"providers"`
	Clients   []Client        `json:"clients"`
	Skills    int             `json:"skills"` // that other agents have; Ken reads them already
	APIs      []string        `json:"apis"`   // files of the workspace that describe one
}

// A Client is an MCP client with a configuration on this machine.
type Client struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Servers   int    `json:"servers"`   // that would move behind Ken
	Connected bool   `json:"connected"` // it asks Ken already
}

// Find looks.
func Find(ctx context.Context, cfg Config) Found {
	f := Found{Model: cfg.Model, Providers: cfg.Choices(ctx), Clients: Clients(cfg.Plan), APIs: []string{}}
	for _, dir := range []string{filepath.Join(cfg.UserHome, ".claude"), filepath.Join(cfg.UserHome, ".agents"), filepath.Join(cfg.Workspace, ".claude"), filepath.Join(cfg.Workspace, ".agents")} {
		f.Skills += skills(filepath.Join(dir, "skills"))
	}
	for _, dir := range []string{"", "api", "docs"} {
		for _, name := range []string{"openapi.yaml", "openapi.yml", "openapi.json", "swagger.yaml", "swagger.json"} {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(filepath.Join(cfg.Workspace, path)); err == nil && info.Mode().IsRegular() {
				f.APIs = append(f.APIs, filepath.ToSlash(path))
			}
		}
	}
	return f
}

// Clients returns the MCP clients that have a configuration on this machine. plan
// returns what connecting one would change.
func Clients(plan func(connect.Request) (*connect.Plan, error)) []Client {
	program, err := os.Executable()
	if err != nil {
		program = "ken"
	}
	out := []Client{}
	for _, c := range connect.Clients() {
		p, err := plan(connect.Request{Client: c.Name, Program: program})
		if err != nil {
			continue // it is not on this machine, or ken connect says what is wrong with its file
		}
		out = append(out, Client{Name: c.Name, Title: c.Title, Servers: len(p.Servers), Connected: len(p.Files) == 0})
	}
	return out
}

// skills counts the skills of a folder.
func skills(dir string) int {
	entries, _ := os.ReadDir(dir) // one that is not there has none
	n := 0
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(dir, e.Name(), "SKILL.md")); err == nil {
			n++
		}
	}
	return n
}

// Steps says in order of use what to do next, one command each.
func (f Found) Steps() []string {
	var steps []string
	if f.Model == "" {
		steps = append(steps, f.modelSteps()...)
	} else {
		steps = append(steps, "ken chat talks with "+f.Model+"; ken serve does so in the browser.")
	}
	for _, c := range f.Clients {
		if !c.Connected && c.Servers > 0 {
			steps = append(steps, "ken connect "+c.Name+" puts Ken in front of "+servers(c.Servers)+" of "+c.Title+".")
		}
	}
	for _, path := range f.APIs {
		steps = append(steps, "ken add openapi:"+path+" makes tools of that API.")
	}
	return steps
}

// modelSteps says how to use a model that is here, or where to look.
func (f Found) modelSteps() []string {
	var steps []string
	for _, p := range f.Providers {
		if p.Answers && len(p.Models) > 0 {
			steps = append(steps, "ken model set "+p.Models[0].Ref+" uses the model that runs on this machine.")
		}
	}
	for _, p := range f.Providers {
		if p.KeySet != "" && p.Name != "openai-chat" {
			steps = append(steps, "ken model list "+p.Name+" lists the models of "+p.Name+": its key "+p.Key+" is set.")
		}
	}
	if len(steps) == 0 {
		steps = append(steps, "ken model shows where a model can come from; ken serve helps to choose one in the browser.")
	}
	return steps
}

func servers(n int) string {
	if n == 1 {
		return "the MCP server"
	}
	return "the MCP servers"
}
