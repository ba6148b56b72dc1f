// Package serverenv knows which variables an MCP server had when a client or a
// shell started it and does not get behind Ken: Ken passes on only a few and what
// the definition names.
package serverenv

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A Program is a server that is started by a command.
type Program struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]string // of its definition
}

// everyone are variables without which hardly a program reaches the network.
var everyone = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
}

// topics are variables of programs about something, by a word in their names.
var topics = []struct{ words, names []string }{
	{[]string{"kube", "k8s", "helm", "argo", "openshift", "istio"}, []string{"KUBECONFIG"}},
	{[]string{"git", "ssh", "sftp", "rsync"}, []string{"SSH_AUTH_SOCK", "GIT_SSH_COMMAND"}},
	{[]string{"github"}, []string{"GITHUB_TOKEN", "GH_TOKEN", "GITHUB_PERSONAL_ACCESS_TOKEN"}},
	{[]string{"gitlab"}, []string{"GITLAB_TOKEN", "GITLAB_PERSONAL_ACCESS_TOKEN"}},
	{[]string{"aws", "amazon", "s3", "bedrock", "dynamo", "cdk"}, []string{"AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}},
	{[]string{"gcp", "google", "gcloud", "bigquery", "firebase", "vertex"}, []string{"GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CONFIG"}},
	{[]string{"azure"}, []string{"AZURE_CONFIG_DIR", "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_SUBSCRIPTION_ID"}},
	{[]string{"docker", "container", "podman"}, []string{"DOCKER_HOST", "DOCKER_CONFIG", "DOCKER_CONTEXT", "CONTAINER_HOST"}},
	{[]string{"terraform", "tofu", "vault", "consul"}, []string{"VAULT_ADDR", "VAULT_TOKEN", "CONSUL_HTTP_ADDR", "TF_CLI_CONFIG_FILE"}},
	{[]string{"postgres", "psql", "pg"}, []string{"PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGSERVICE", "PGPASSFILE", "DATABASE_URL"}},
	{[]string{"playwright", "puppeteer", "browser", "chrome"}, []string{"DISPLAY", "WAYLAND_DISPLAY", "PLAYWRIGHT_BROWSERS_PATH", "PUPPETEER_EXECUTABLE_PATH"}},
	{[]string{"npx", "npm", "bunx"}, []string{"NPM_CONFIG_REGISTRY", "npm_config_registry", "NPM_CONFIG_USERCONFIG"}},
	{[]string{"uvx", "uv", "pipx", "python"}, []string{"UV_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_INDEX_URL", "VIRTUAL_ENV", "PYTHONPATH"}},
}

// reWord is what a program's words are made of, and reName a variable in a text.
var (
	reWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[a-z0-9]+`) })
	reName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[A-Z][A-Z0-9_]{2,63}\b`) })
)

// Missed returns the variables that are set and that a server probably needs and
// does not get, by name: those of its topics, and those that it names in what it
// said. Passed reports what every server gets.
func Missed(p Program, said string, set, passed func(name string) bool) []string {
	names := slices.Clone(everyone)
	// The name, the command and the first arguments, which name a package, say what
	// it is about. A path among them does not.
	about := []string{p.Name, p.Command[strings.LastIndexAny(p.Command, `/\`)+1:]}
	for _, arg := range p.Args[:min(len(p.Args), 4)] {
		if !strings.HasPrefix(arg, "/") && !strings.HasPrefix(arg, ".") {
			about = append(about, arg)
		}
	}
	words := reWord().FindAllString(strings.ToLower(strings.Join(about, " ")), -1)
	for _, t := range topics {
		if slices.ContainsFunc(words, func(word string) bool {
			return slices.ContainsFunc(t.words, func(w string) bool { return matches(word, w) })
		}) {
			names = append(names, t.names...)
		}
	}
	names = append(names, reName().FindAllString(said, -1)...)
	var out []string
	for _, name := range names {
		if _, has := p.Env[name]; !has && !slices.Contains(out, name) && !passed(name) && !strings.HasPrefix(name, "KEN_") && name != "PATH" && set(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// matches reports whether a word of a program is about something: short words
// must be the same, longer ones may go on, as in kubectl.
func matches(word, about string) bool {
	return word == about || len(about) > 3 && strings.HasPrefix(word, about)
}

// Sentence says that variables are set and not passed on.
func Sentence(names []string) string {
	if len(names) == 1 {
		return names[0] + " is set, and the server does not get it"
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + " are set, and the server does not get them"
}

// Them is the pronoun for names.
func Them(names []string) string {
	if len(names) == 1 {
		return "it"
	}
	return "them"
}

// Line is what passes variables on, for the definition of a server.
func Line(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf(`"%s": "${%s}"`, name, name))
	}
	return `"env": {` + strings.Join(all, ", ") + `}`
}
