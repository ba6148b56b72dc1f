//go:build unix

package policy_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/policy"
)

// BenchmarkVisibleClass reports what a new class of principals costs: what it may
// see of many tools of one server, under rules about that server and about a few of
// its tools.
func BenchmarkVisibleClass(b *testing.B) {
	for _, n := range []int{2000, 15_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := policy.Defaults(policy.Personal)
			s.Rules = append(s.Rules, policy.Rule{ID: "server", Effect: policy.Allow, Capabilities: []string{"mcp:many/*"}, Where: "bench:1"},
				policy.Rule{ID: "some", Effect: policy.Deny, Capabilities: []string{"mcp:many/delete_*", "mcp:many/tool_7"}, Where: "bench:2"})
			r := compile(b, s)
			caps := make([]policy.Capability, n)
			for i := range caps {
				caps[i] = made(policy.Class(1+i%5), capability.TrustUser)
				caps[i].Name, caps[i].MCP = fmt.Sprintf("tool_%d", i), true
				caps[i].ID = capability.ID("mcp:many/" + caps[i].Name)
			}
			i, before := 0, cpuTime(b)
			for b.Loop() {
				v := &policy.Viewer{Principal: who("dev", fmt.Sprint("role", i)), Surface: policy.SurfaceMCP}
				for j := range caps {
					r.Visible(v, &caps[j])
				}
				i++
			}
			b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
		})
	}
}

func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
