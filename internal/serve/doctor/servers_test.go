package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ken/capability"
)

func TestServers(t *testing.T) {
	const file = "/home/u/.ken/mcp.json:7"
	good := func() Server {
		return Server{
			Name: "files", Origin: file, Kind: "stdio", Protocol: "2025-11-25", Tools: 14, Prompts: 1,
			Profile: "imported", Held: "full", Open: []string{"files: as before", "network: open"},
		}
	}
	with := func(change func(*Server)) Servers {
		s := good()
		change(&s)
		return Servers{List: []Server{s}}
	}
	running := func(d Daemon, list ...Troubled) Servers {
		return Servers{Daemon: d, List: []Server{good()}, Running: []Process{{PID: 9, What: "ken serve", Since: time.Now(), Servers: list}}}
	}
	tests := []struct {
		name    string
		servers Servers
		check   string
		grade   Grade
		says    string
		fix     string // in it
	}{
		{"good", with(func(*Server) {}), "mcp:files", Good, "14 tools, 1 prompt over stdio, protocol 2025-11-25; sandbox profile imported (full), which leaves open: files, network", ""},
		{"remote", with(func(s *Server) { s.Kind, s.Profile = "http", "" }), "mcp:files", Good, "over http, protocol 2025-11-25; it runs elsewhere", ""},
		{"off", with(func(s *Server) { s.Disabled = true }), "mcp:files", Warn, "switched off", "disabled out of files in " + file},
		{"does not start", with(func(s *Server) { s.Err, s.Fix = "no program x is installed", "fix files in "+file }), "mcp:files", Bad, "no program x", "fix files in " + file},
		{"unknown", with(func(s *Server) { s.Err = "x" }), "mcp:files", Bad, "x", "look at files in " + file},
		{"login", with(func(s *Server) { s.Err, s.Fix = "nobody agreed", "ken login files" }), "mcp:files", Bad, "nobody agreed", "ken login files"},
		{"steers", with(func(s *Server) { s.Err = "a\x1b[2Jb\nc" }), "mcp:files", Bad, "a⟨U+001B⟩[2Jb c", file},
		{"waits", with(func(s *Server) { s.Waiting = 2 }), "mcp:files", Warn, "\n2 tools in quarantine", "ken extension review mcp:files"},
		{"noise", with(func(s *Server) { s.Noise, s.Sample = 3, "Welcome!" }), "mcp:files", Warn, "\nnoise on its output, 3 lines: Welcome!", "standard error"},
		{"cut", with(func(s *Server) {
			s.Problems = []capability.Problem{{Severity: capability.Warning, Message: "more than 10000 tools: the rest is cut"}}
		}), "mcp:files", Warn, "\nmore than 10000 tools", file},
		{"large", with(func(s *Server) { s.Large = []string{"wide (85 KB)"} }), "mcp:files", Warn, "\nlarge schemas: wide (85 KB)", "exclude"},
		{"long", with(func(s *Server) { s.Long = []string{"nnn…"} }), "mcp:files", Warn, "\n1 name of tools that clients see shortened: nnn…", "author"},
		{"narrower", with(func(s *Server) { s.Narrower = Narrower{Line: `"x-ken": {}`, Note: "tried"} }), "mcp:files", Good, "it can be confined; tried", "write into files in " + file + `: "x-ken": {}`},
		{"fetched", with(func(s *Server) { s.Narrower = Narrower{Note: "npx fetches it"} }), "mcp:files", Good, "not confined: it has your files and network; npx fetches it", ""},
		{"file", Servers{Problems: []capability.Problem{{Code: "mcp-file", Origin: capability.Origin{Path: "/x.json"}, Message: "no JSON", Fix: "fix it"}}}, "servers", Bad, "/x.json: no JSON", "fix it"},
		{"file warns", Servers{Problems: []capability.Problem{{Severity: capability.Warning, Origin: capability.Origin{Path: "/x.json", Line: 2}, Message: "odd"}}}, "servers", Warn, "odd", "fix /x.json:2"},
		{"well", running(Daemon{}, Troubled{Name: "files", Runs: 2}), "servers", Good, "1 server, 2 back ends; 1 without errors", ""},
		{"hangs", running(Daemon{}, Troubled{Name: "files", Down: true, Err: "it hangs", At: time.Now()}), "mcp:files", Bad, "in ken serve, process 9: ", "files in " + file},
		{"in the daemon", running(Daemon{PID: 9}, Troubled{Name: "files", Restarts: 2, Noise: 7, Sample: "x"}), "mcp:files", Warn, "in the daemon, process 9: it was started again 2 times; noise on its output, 7 lines: x", "log"},
		{"no daemon", Servers{}, "daemon", Good, "none runs", ""},
		{"daemon", running(Daemon{PID: 9, Clients: 3, Version: "v1"}), "daemon", Good, "process 9, version v1, 3 clients, since ", ""},
		{"other daemon", Servers{Daemon: Daemon{PID: 9, Other: true}}, "daemon", Warn, "another build", "end process 9"},
		{"broken daemon", Servers{Daemon: Daemon{Err: errors.New("it does not answer")}}, "daemon", Bad, "does not answer", "standalone"},
		{"nowhere", Servers{Daemon: Daemon{Unsupported: true}}, "daemon", Good, "none on this system", ""},
	}
	same := Servers{List: []Server{{Name: "x", Err: "no program"}}, Running: []Process{{PID: 1, Servers: []Troubled{{Name: "x", Down: true, Err: "no program"}}}}}
	if list := servers(same); len(list) != 3 || !strings.Contains(list[1].Message, "0 without errors") {
		t.Errorf("servers() = %+v; want one thing said once", list)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checks := servers(tt.servers)
			for _, c := range checks {
				if c.Name != tt.check || !strings.Contains(c.Message, tt.says) {
					continue
				}
				if c.Grade != tt.grade || !strings.Contains(c.Fix, tt.fix) {
					t.Errorf("%s = %s, fix %q; want %s with %q", c.Name, c.Grade, c.Fix, tt.grade, tt.fix)
				}
				if c.Grade != Good && c.Fix == "" {
					t.Errorf("%s is %s without a fix", c.Name, c.Grade)
				}
				return
			}
			t.Errorf("servers() = %+v; want %s to say %q", checks, tt.check, tt.says)
		})
	}
}
