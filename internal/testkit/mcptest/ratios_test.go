package mcptest

import (
	"os/exec"
	"testing"
	"time"
)

// BenchmarkCompare makes the calls of BenchmarkGateways through Ken and through a bare
// pass-through on the same SDK, over stdio and over HTTP, in turns, and reports what
// Ken needs in what the pass-through needs, how long its first call took with what an
// earlier start has kept, and what it has in memory 15 s later.
func BenchmarkCompare(b *testing.B) {
	many := manyTools(b)
	relay := build(b, "ken/internal/testkit/mcptest/relay")
	settings := allowAll + "mcp: {surface: bridge}\ndiscovery: {reader: fast}\nserve: {auth: off}\n"
	servers := map[string]definition{"many": {Command: many[0], Args: many[1:]}}
	stdio, web := newPlace(b, settings, servers), newPlace(b, settings, servers)
	stdio.prepare("mcp:many/echo")
	web.prepare("mcp:many/echo")
	relayAddr, kenAddr := freeAddr(b), freeAddr(b)
	for _, way := range []struct {
		name       string
		plain, ken *contender
	}{
		{
			"stdio",
			&contender{name: "pass-through, stdio", call: echo, site: many[0], command: func() *exec.Cmd { return exec.Command(relay, many...) }},
			&contender{name: "Ken, stdio", call: echoByKen, site: many[0], command: func() *exec.Cmd { return stdio.ken("mcp", "--standalone") }},
		},
		{
			"http",
			&contender{name: "pass-through, HTTP", http: true, addr: relayAddr, call: echo, site: many[0], command: func() *exec.Cmd {
				return exec.Command(relay, append([]string{"-http", relayAddr}, many...)...)
			}},
			&contender{name: "Ken, HTTP", http: true, addr: kenAddr, call: echoByKen, site: many[0], command: func() *exec.Cmd { return web.ken("serve", "--addr", kenAddr) }},
		},
	} {
		b.Run(way.name, func(b *testing.B) {
			both := []*contender{way.plain, way.ken}
			for _, c := range both {
				*c = contender{name: c.name, http: c.http, addr: c.addr, call: c.call, site: c.site, command: c.command}
				c.start(b)
				defer c.stop()
				c.round(b) // starts what is not yet
				c.took, c.together, c.cpu, c.busy = nil, nil, 0, 0
			}
			for b.Loop() {
				for _, c := range both {
					c.round(b)
				}
			}
			b.StopTimer()
			time.Sleep(idle)
			perCall := func(c *contender) float64 { return float64(c.cpu.Microseconds()) / float64(len(c.took)) }
			rate := func(c *contender) float64 { return float64(len(c.together)) / c.busy.Seconds() }
			p, k := way.plain, way.ken
			b.ReportMetric(perCall(k)/perCall(p), "cpu-x")
			b.ReportMetric(perCall(k), "cpu-us")
			b.ReportMetric(rate(k)/rate(p), "rate-x")
			b.ReportMetric(at(k.together, .99)/at(p.together, .99), "p99-x")
			b.ReportMetric(float64(k.firstCall.Milliseconds()), "start-ms")
			b.ReportMetric(residentOf(b, k.between()), "rss-MB")
		})
	}
}
