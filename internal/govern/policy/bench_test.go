package policy_test

import (
	"fmt"
	"testing"

	"ken/capability"
	"ken/internal/govern/policy"
)

// thousand makes settings with 1,000 rules of the kinds that people write:
// about names, patterns of names, roles, folders, commands and hosts.
func thousand() policy.Settings {
	s := policy.Defaults(policy.Personal)
	s.Access.Tools["shell"] = policy.Tool{Enabled: true, Mode: policy.AccessFull}
	for i := range 1000 {
		r := policy.Rule{ID: fmt.Sprintf("r%d", i), Effect: policy.Effect(i % 3)}
		switch i % 8 {
		case 0, 1:
			r.Capabilities = []string{fmt.Sprintf("tool-%d", i)}
		case 2:
			r.Capabilities, r.Roles = []string{fmt.Sprintf("vendor%d.*", i)}, []string{"intern"}
		case 3:
			r.Roles, r.Classes, r.Effect = []string{fmt.Sprintf("role-%d", i)}, []policy.Class{policy.Exec}, policy.Deny
		case 4:
			r.Paths, r.Effect = []string{fmt.Sprintf("folder%d/**", i)}, policy.Deny
		case 5:
			r.Paths, r.Effect = []string{fmt.Sprintf("**/file%d.go", i)}, policy.Ask
		case 6:
			r.Argv, r.Effect = [][][]string{{{fmt.Sprintf("prog%d", i)}, {"push", "publish"}}}, policy.Deny
		case 7:
			r.Hosts, r.Effect = []string{fmt.Sprintf("*.h%d.example.com", i)}, policy.Deny
		}
		s.Rules = append(s.Rules, r)
	}
	return s
}

func requests() map[string][]*policy.Request {
	read, write, exec, net := ask(tool("read_file")), ask(tool("write_to_file")), ask(tool("shell")), ask(made(policy.Network, capability.TrustRemote))
	read.Intent, write.Intent, exec.Intent, net.Intent = "READ_FILE", "CODE", "EXECUTE", "EXECUTE"
	read.Facts.Paths = []policy.Path{{Name: "src/deep/file.go"}}
	write.Facts.Paths = []policy.Path{{Name: "folder4/a.go", Write: true}}
	exec.Facts.Commands = [][]string{{"prog6", "publish", "now"}}
	net.Facts.Hosts = []string{"a.h7.example.com"}
	var many []*policy.Request
	for i := range 1000 {
		q := *read
		q.Capability.Name = fmt.Sprintf("tool-%d", i)
		q.Capability.ID = capability.ID("tool:" + q.Capability.Name)
		q.Principal.Roles = []string{"dev", fmt.Sprintf("role-%d", i%10)}
		many = append(many, &q)
	}
	return map[string][]*policy.Request{"read": {read}, "write": {write}, "exec": {exec}, "network": {net}, "many": many}
}

// BenchmarkDecide is the bar: at most 5 µs with 1,000 rules.
func BenchmarkDecide(b *testing.B) {
	r := compile(b, thousand())
	for name, list := range requests() {
		b.Run("rules=1000/"+name, func(b *testing.B) {
			for _, q := range list {
				r.Decide(q)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				r.Decide(list[i%len(list)])
			}
		})
	}
}
