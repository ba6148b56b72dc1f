package serverenv

import (
	"strings"
	"testing"
)

func TestMissed(t *testing.T) {
	set := map[string]bool{}
	for name := range strings.FieldsSeq("KUBECONFIG SSH_AUTH_SOCK AWS_PROFILE HTTPS_PROXY PATH HOME KEN_HOME MY_SERVICE_URL LANG") {
		set[name] = true
	}
	for _, test := range []struct {
		p    Program
		said string
		want string
	}{
		{Program{Name: "k", Command: "/usr/bin/kubectl-mcp"}, "", "HTTPS_PROXY KUBECONFIG"},
		{Program{Name: "cluster", Command: "npx", Args: []string{"-y", "kubernetes-mcp-server"}}, "", "HTTPS_PROXY KUBECONFIG"},
		{Program{Name: "files", Command: "npx", Args: []string{"-y", "server-filesystem", "/home/me/kube/aws"}}, "", "HTTPS_PROXY"},
		{Program{Name: "repo", Command: "uvx", Args: []string{"mcp-server-git"}}, "", "HTTPS_PROXY SSH_AUTH_SOCK"},
		{Program{Name: "aws-docs", Command: "x", Env: map[string]string{"AWS_PROFILE": "dev", "HTTPS_PROXY": ""}}, "", ""},
		{Program{Name: "x", Command: "x", Env: map[string]string{"HTTPS_PROXY": ""}}, "Error: MY_SERVICE_URL is not defined, see PATH, HOME, KEN_HOME, LANG and OTHER_THING", "MY_SERVICE_URL"},
	} {
		passed := func(name string) bool { return name == "LANG" || name == "HOME" }
		got := strings.Join(Missed(test.p, test.said, func(name string) bool { return set[name] }, passed), " ")
		if got != test.want {
			t.Errorf("Missed(%v, %q) = %q, want %q", test.p, test.said, got, test.want)
		}
	}
	if got, want := Line([]string{"A", "B"}), `"env": {"A": "${A}", "B": "${B}"}`; got != want {
		t.Errorf("Line() = %s, want %s", got, want)
	}
	if got, want := Sentence([]string{"A", "B", "C"}), "A, B and C are set, and the server does not get them"; got != want {
		t.Errorf("Sentence() = %s, want %s", got, want)
	}
}
